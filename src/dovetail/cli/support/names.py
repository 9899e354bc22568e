"""Names of providers looked up from UUIDs and back, by asking the server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dovetail.cli.support.client import ServerClient
from dovetail.cli.support.exits import RequestRefused

Names = dict[str, dict[str, Any]]
"""name, uuid, host and host_uuid of providers, by the key that was asked for."""

AT_ONCE = 50_000
UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


def is_uuid(text: str) -> bool:
    return UUID.fullmatch(text) is not None


def look_up(server: ServerClient, keys: Iterable[str]) -> Names:
    """The providers known by these names or UUIDs."""
    wanted = list(dict.fromkeys(keys))
    found: Names = {}
    for start in range(0, len(wanted), AT_ONCE):
        asked = {"providers": wanted[start : start + AT_ONCE]}
        found |= server.call("POST", "/dovetail/v1/names", asked)["providers"]
    return found


def uuid_of(server: ServerClient, key: str) -> str:
    found = look_up(server, [key])
    if key not in found:
        raise RequestRefused(f"No provider has the name or UUID {key!r}.")
    uuid: str = found[key]["uuid"]
    return uuid
