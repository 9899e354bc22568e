"""Drafts: copies of what a chart has, into which edits are written, each with its reason.

`requirements`, `node_rules` and `claims` write into the draft of a pod template, `editing` into
drafts of objects. The original is never touched. A field that has its value already is no edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

RawObject = dict[str, Any]
"""JSON as it came: fields may be missing or null."""


class ManifestEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One field that was changed."""

    where: str
    """The object: `StatefulSet core-fwall`."""
    path: str
    """`spec.template.spec.containers[nginx].resources.requests[cpu]`."""
    before: Any
    """None: it was not there."""
    after: Any
    why: str


class Draft:
    """A copy of `original`, and what was changed in it. `prefix` stands before all paths."""

    def __init__(self, original: Mapping[str, Any], where: str, prefix: str = "") -> None:
        self.value: RawObject = copy_of(original)
        self.where, self._prefix = where, prefix
        self.edits: list[ManifestEdit] = []

    def put(self, parent: RawObject, key: str, value: Any, *, path: str, why: str) -> None:
        before = parent.get(key)
        if before != value:
            parent[key] = value
            self.edits.append(
                ManifestEdit(
                    where=self.where,
                    path=f"{self._prefix}{path}",
                    before=copy_of(before),
                    after=copy_of(value),
                    why=why,
                )
            )


def copy_of(value: Any) -> Any:
    """Of JSON: `deepcopy` does the same, and takes ten times as long."""
    if isinstance(value, Mapping):
        return {key: copy_of(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [copy_of(each) for each in value]
    return value


def child(parent: RawObject, key: str) -> RawObject:
    """The object of that name, made if it is missing or null."""
    if parent.get(key) is None:
        parent[key] = {}
    found: RawObject = parent[key]
    return found


def items(parent: Mapping[str, Any], key: str) -> list[RawObject]:
    return parent.get(key) or []
