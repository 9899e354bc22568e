"""JSON Schema of candidate queries, by the microversion that brought it; both doors check by it.

Patterns and bounds are the API's contract; so is the text of a refusal, which quotes the schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.rest.server.http import Version
from dovetail.rest.server.validation import Schema

Document = dict[str, Any]

NUMBERED = "[1-9][0-9]*"
SUFFIX = "[a-zA-Z0-9_-]{1,64}"
STRING: Document = {"type": "string"}


def closed(properties: Document, required: tuple[str, ...] = (), **more: Any) -> Document:
    """An object with no other members than these."""
    needed = {"required": list(required)} if required else {}
    return {
        "type": "object",
        "properties": properties,
        **more,
        **needed,
        "additionalProperties": False,
    }


class VersionedSchema:
    """The schema in force at each version: the newest not newer than it."""

    def __init__(
        self, by_version: dict[Version, Document], unique: Callable[[Any], list[Any]] | None = None
    ) -> None:
        newest_first = sorted(by_version.items(), reverse=True)
        self._schemas = [(v, Schema(d, unique)) for v, d in newest_first]

    def at(self, version: Version) -> Schema:
        return next(schema for since, schema in self._schemas if version >= since)


LIMIT = {
    "limit": {
        "type": ["integer", "string"],
        "pattern": "^[1-9][0-9]*$",
        "minimum": 1,
        "minLength": 1,
    }
}
POLICY = {"group_policy": {"type": "string", "enum": ["none", "isolate"]}}


def by_group(suffix: str, *keys: str) -> Document:
    return {"patternProperties": {f"^{key}({suffix})?$": STRING for key in keys}}


GROUP_KEYS = ("resources", "required", "member_of", "in_tree")
GROUP_EXTENSIONS = ("attributes", "class")
"""Dovetail's own: conditions on attributes, and classes of devices."""
RELATIONS = {"root_required": STRING, "same_subtree": STRING}
EXTENSIONS = {
    "root_member_of": STRING,
    "isolate": STRING,
    "rank": STRING,
    "scores": {"type": "string", "enum": ["0", "1"]},
}
"""Dovetail's own: what the specification left for later, and which candidates are best."""
LIST_CANDIDATES = VersionedSchema(
    {
        10: closed({"resources": STRING}, ("resources",)),
        16: closed({"resources": STRING, **LIMIT}, ("resources",)),
        17: closed({"resources": STRING, **LIMIT, "required": STRING}, ("resources",)),
        21: closed(
            {"resources": STRING, **LIMIT, "required": STRING, "member_of": STRING}, ("resources",)
        ),
        25: closed({**LIMIT, **POLICY}, **by_group(NUMBERED, *GROUP_KEYS[:3])),
        31: closed({**LIMIT, **POLICY}, **by_group(NUMBERED, *GROUP_KEYS)),
        33: closed({**LIMIT, **POLICY}, **by_group(SUFFIX, *GROUP_KEYS)),
        35: closed({**LIMIT, **POLICY, "root_required": STRING}, **by_group(SUFFIX, *GROUP_KEYS)),
        36: closed(
            {**LIMIT, **POLICY, **RELATIONS, **EXTENSIONS},
            **by_group(SUFFIX, *GROUP_KEYS, *GROUP_EXTENSIONS),
        ),
    }
)
