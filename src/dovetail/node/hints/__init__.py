"""The topology manager: from what each resource would like to what all of them get. Pure."""

from __future__ import annotations

from dovetail.node.hints.explain import explain
from dovetail.node.hints.hint import (
    ANYWHERE,
    BadHint,
    Hint,
    Hints,
    from_wire,
    listed,
    mask_of,
    to_wire,
)
from dovetail.node.hints.merge import Distances, MergedHint, merge
from dovetail.node.hints.policy import BadPolicy, TopologyOptions, TopologyPolicy, check
from dovetail.node.hints.supply import masks_with_enough

__all__ = [
    "ANYWHERE",
    "BadHint",
    "BadPolicy",
    "Distances",
    "Hint",
    "Hints",
    "MergedHint",
    "TopologyOptions",
    "TopologyPolicy",
    "check",
    "explain",
    "from_wire",
    "listed",
    "mask_of",
    "masks_with_enough",
    "merge",
    "to_wire",
]
