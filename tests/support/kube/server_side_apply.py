"""Server-side apply for the in-memory API: who owns which field.

Mappings are merged field by field. Of lists, `conditions` (by type), `taints` (by key and effect),
`ownerReferences` (by uid) and `webhooks` (by name) are merged by entry, as the real API does; any
other is one field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.kube.api.port import ApiConflict

Path = tuple[Any, ...]
Fields = frozenset[Path]
NAMES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation")
KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "taints": ("key", "effect"),
    "ownerReferences": ("uid",),
    "webhooks": ("name",),
}


def applied(
    old: dict[str, Any],
    body: dict[str, Any],
    managers: Mapping[str, Fields],
    who: str,
    *,
    force: bool,
) -> tuple[dict[str, Any], dict[str, Fields]]:
    """The object after `who` applied `body`, and who owns what then."""
    have, wanted = flat(old), flat(body)
    mine = frozenset(path for path in wanted if not nameplate(path))
    owned = dict(managers)
    for other, theirs in managers.items():
        if other == who:
            continue
        taken = frozenset(path for path in mine & theirs if have.get(path) != wanted[path])
        if taken and not force:
            where = ".".join(str(part) for part in min(taken, key=str))
            raise ApiConflict(409, "Conflict", f"conflict with {other!r}: .{where}")
        owned[other] = theirs - taken
    others: Fields = frozenset().union(*(owned[other] for other in owned if other != who))
    for path in owned.get(who, frozenset()) - mine - others:
        have.pop(path, None)
    have.update(wanted)
    owned[who] = mine
    return built(have), owned


def nameplate(path: Path) -> bool:
    """What tells which object it is belongs to nobody."""
    return path[0] in ("apiVersion", "kind") or (path[0] == "metadata" and path[1] in NAMES)


def flat(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every leaf by its path. An entry of a keyed list has its key as a step."""
    result: dict[Path, Any] = {}
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            result |= flat(inner, (*path, name))
    elif isinstance(value, list) and path and path[-1] in KEYS and value:
        for entry in value:
            step = tuple((key, entry.get(key, "")) for key in KEYS[path[-1]])
            result |= flat(entry, (*path, step))
    elif path:
        result[path] = value
    return result


def built(leaves: dict[Path, Any]) -> dict[str, Any]:
    """The inverse of `flat`."""
    result: dict[Any, Any] = {}
    for path, value in leaves.items():
        at = result
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = value
    return {name: listed(inner) for name, inner in result.items()}


def listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(step, tuple) for step in value):
        return [listed(inner) for inner in value.values()]
    return {name: listed(inner) for name, inner in value.items()}
