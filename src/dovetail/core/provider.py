"""A resource provider of Placement: one node of a tree."""

from __future__ import annotations

import msgspec


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    root_id: int
    changed_at: int
    """Unix seconds of the last write that changed the generation, the name or the parent."""
