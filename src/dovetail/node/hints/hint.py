"""Hints: on which NUMA nodes a resource could be, and whether that would be good.

A set of nodes is a mask: bit n stands for node n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import CpuSet
from dovetail.node.wire.resource_plugin import ListOfTopologyHints, TopologyHint


class BadHint(DovetailError):
    """A hint for nodes that the machine does not have."""


class Hint(NamedTuple):
    mask: int | None
    """None: any node."""
    preferred: bool

    @property
    def nodes(self) -> CpuSet | None:
        return None if self.mask is None else CpuSet.of_mask(self.mask)


ANYWHERE = Hint(None, preferred=True)

Hints = Sequence[Hint] | None
"""Of one resource. None: it has no preference; none at all: it cannot be anywhere."""


def mask_of(nodes: Iterable[int]) -> int:
    return CpuSet(nodes).mask


def from_wire(hint: TopologyHint, nodes: CpuSet) -> Hint:
    """`nodes` are those of the machine. A hint without any is for all of them, as in `to_wire`."""
    unknown = CpuSet(hint.nodes) - nodes
    if unknown:
        raise BadHint(f"a hint names NUMA node {unknown}, but this machine has {nodes}")
    return Hint(mask_of(hint.nodes) if hint.nodes else None, preferred=hint.preferred)


def to_wire(hint: Hint) -> TopologyHint:
    nodes = hint.nodes or ()
    return TopologyHint(nodes=tuple(sorted(nodes)), preferred=hint.preferred)


def listed(hints: Hints) -> ListOfTopologyHints | None:
    """The value of a resource's entry in an answer, which is left out if there is none."""
    return None if hints is None else ListOfTopologyHints(hints=tuple(map(to_wire, hints)))
