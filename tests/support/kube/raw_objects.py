"""What the in-memory API does with objects, apart from keeping them: merging, checking, telling."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from dovetail.kube.api.port import ApiConflict, ApiGone, ApiNotFound, Body
from dovetail.podfit.objects import ApiResource, KubeObject
from tests.support.kube.api_selectors import Matcher

Raw = dict[str, Any]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def copied(raw: Body) -> Raw:
    result: Raw = msgspec.json.decode(msgspec.json.encode(raw))
    return result


@dataclass(frozen=True)
class Change:
    version: int
    api: ApiResource
    old: Raw | None
    new: Raw | None
    gone: Raw | None = None
    """What was deleted, at the version of its deletion."""


def key_of(name: str, namespace: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def missing(kind: type[KubeObject], key: str) -> ApiNotFound:
    return ApiNotFound(404, "NotFound", f'{kind.API.plural} "{key}" not found')


def gone() -> ApiGone:
    return ApiGone(410, "Expired", "too old resource version")


def checked(old: Raw, new: Raw) -> None:
    """Refuse what was written for another version, or another object of the same name."""
    for name in ("resourceVersion", "uid"):
        asked = new["metadata"].get(name)
        if asked and asked != old["metadata"][name]:
            raise ApiConflict(409, "Conflict", f"{name} is {old['metadata'][name]}, not {asked}")


def merged(old: Raw, patch: Raw) -> Raw:
    """JSON merge patch: null removes, objects go into each other, all else replaces."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            there = result.get(name)
            result[name] = merged(there if isinstance(there, dict) else {}, value)
        else:
            result[name] = value
    return result


def as_seen(change: Change, matches: Matcher) -> tuple[str, Raw] | None:
    """What a watch with a selector makes of a change."""
    before = change.old is not None and matches(change.old)
    if change.new is None:
        return ("DELETED", change.gone) if before and change.gone is not None else None
    after = matches(change.new)
    if after:
        return ("MODIFIED" if before else "ADDED", change.new)
    if before:
        assert change.old is not None
        # It goes out of sight as it was, at the version that took it out.
        version = change.new["metadata"]["resourceVersion"]
        last = {**change.old, "metadata": {**change.old["metadata"], "resourceVersion": version}}
        return ("DELETED", last)
    return None
