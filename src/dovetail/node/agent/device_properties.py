"""What a file says of the devices of device plugins (TOML or YAML); the publisher asks for it.

By resource and ID, where `*` and `?` stand for anything, properties:

    ["vendor.com/gpu"."GPU-8f1b*"]
    memory = "80G"

Of all entries that a device's ID fits each is taken, and of two that say one thing, the later.
The file is read again when it changes. While it cannot be read, what was read before counts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from fnmatch import translate
from pathlib import Path
from typing import Any

import structlog
import yaml

from dovetail.core.device import HELD_BY, RESERVED
from dovetail.core.errors import DovetailError

LOG = structlog.get_logger("dovetail.node.agent")

ID = "id"
NOT_TO_BE_SAID = (*RESERVED, ID, HELD_BY)
"""Properties that a device has by itself."""
YAML_ENDINGS = (".yaml", ".yml", ".json")

Entries = Mapping[str, tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]]
"""By resource: which IDs, and what of them."""


class BadProperties(DovetailError):
    """A file of properties that cannot be used, with the place in it."""


class DeviceProperties:
    """Of devices, by resource and ID, as the file says now; without a file: nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: Entries = {}
        self._seen: object = None
        self._error = ""

    def look(self) -> None:
        """Read the file if it is another; what is wrong with it is logged, once."""
        if self._path is None:
            return
        try:
            at = self._path.stat()
            seen = (at.st_ino, at.st_mtime_ns, at.st_size)
        except OSError as error:
            self._fail(f"{self._path}: {error.strerror}")
            self._seen = None
            return
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._entries = read(self._path)
        except BadProperties as error:
            self._fail(str(error))
            return
        self._error = ""
        LOG.info("device properties read", file=str(self._path), resources=len(self._entries))

    def of(self, resource: str, id_: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for pattern, properties in self._entries.get(resource, ()):
            if pattern.fullmatch(id_):
                found |= properties
        return found

    def _fail(self, error: str) -> None:
        if error != self._error:
            kept = "what it said before" if self._entries else "nothing"
            LOG.error("device properties not read", error=error, kept=kept)
        self._error = error


def read(path: Path) -> Entries:
    """Raises BadProperties."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise BadProperties(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadProperties(f"{path}: {error}") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Entries:
    """Raises BadProperties."""
    try:
        written = yaml.safe_load(text) if name.endswith(YAML_ENDINGS) else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadProperties(f"{name}: {error}") from None
    resources = _table(name, written or {}, "resources, as vendor.com/gpu")
    return {resource: _entries(f"{name}: {resource}", ids) for resource, ids in resources.items()}


def _entries(place: str, ids: Any) -> tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]:
    return tuple(
        (re.compile(translate(pattern)), _properties(f"{place}: {pattern}", properties))
        for pattern, properties in _table(place, ids, "IDs of devices, as GPU-8f1b*").items()
    )


def _properties(place: str, properties: Any) -> dict[str, str]:
    found = {}
    for key, value in _table(place, properties, "properties").items():
        if not key or key in NOT_TO_BE_SAID:
            raise BadProperties(f"{place}: {key!r} cannot be the name of a property")
        if isinstance(value, bool):
            found[key] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[key] = str(value)
        else:
            raise BadProperties(
                f'{place}: {key}: a text, a number, true or false is expected, as "80G"'
            )
    return found


def _table(place: str, value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise BadProperties(f"{place}: a table is expected, by {what}")
    return value
