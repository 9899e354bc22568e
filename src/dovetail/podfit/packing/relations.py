"""Relations among the pods of a set: who cannot share a node or a domain with whom, who has to be
near whom, and who is counted when others are spread.

Packing reads them once for each question. What pods that are on nodes already demand, or offer, is
no relation: it decides which rows a kind may go to (`rows_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import selects
from dovetail.podfit.filters import FILTERS, disks, ports
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.selectors import matches
from dovetail.podfit.terms import TopologySpread

U = TypeVar("U")

NODE = ""
"""The topology in which each node is a domain of its own, whatever its labels are."""


class ApartFrom(msgspec.Struct, frozen=True, order=True):
    """Two kinds, or one twice, of which no two pods are in one domain of the topology."""

    topology: str
    one: int
    other: int


class NearTo(msgspec.Struct, frozen=True):
    """A kind of which each pod wants pods of these kinds in its domains, or some there already."""

    kind: int
    wanted: tuple[int, ...]

    @property
    def is_of_itself(self) -> bool:
        """Its first pod may go anywhere."""
        return self.kind in self.wanted


class SpreadAmong(msgspec.Struct, frozen=True):
    """A kind, one of its constraints, and the kinds that are counted.

    A kind has all of its constraints here, or none if no kind of the set is counted for any.
    """

    kind: int
    constraint: TopologySpread
    counted: tuple[int, ...]


class Relations(msgspec.Struct, frozen=True):
    apart: tuple[ApartFrom, ...]
    near: tuple[NearTo, ...]
    spread: tuple[SpreadAmong, ...]

    def kinds(self) -> set[int]:
        """Those that any other, or another of their own, makes a difference to."""
        found = {kind for each in self.apart for kind in (each.one, each.other)}
        found |= {kind for near in self.near for kind in (near.kind, *near.wanted)}
        return found | {kind for spread in self.spread for kind in (spread.kind, *spread.counted)}

    def looks(self) -> set[tuple[int, int]]:
        """Pairs of which the first, when it is placed, is asked where the other is."""
        found = {(near.kind, kind) for near in self.near for kind in near.wanted}
        return found | {(one.kind, kind) for one in self.spread for kind in one.counted}

    def renumbered(self, numbers: Sequence[int]) -> Relations:
        """By the new numbers of kinds."""
        new = numbers.__getitem__
        return Relations(
            tuple(
                ApartFrom(each.topology, *sorted((new(each.one), new(each.other))))
                for each in self.apart
            ),
            tuple(NearTo(new(each.kind), tuple(map(new, each.wanted))) for each in self.near),
            tuple(
                SpreadAmong(new(each.kind), each.constraint, tuple(map(new, each.counted)))
                for each in self.spread
            ),
        )


def relations_among(nodes: Nodes, requests: Sequence[PodRequest]) -> Relations:
    """Kinds are numbered as they stand here."""
    apart = {
        *_apart_by_use([each.ports for each in requests], ports.is_conflict),
        *_apart_by_use([each.disks for each in requests], disks.is_conflict),
        *_apart_by_term(nodes, requests),
    }
    return Relations(
        apart=tuple(sorted(apart)),
        near=tuple(_near(nodes, requests)),
        spread=tuple(_spread(requests)),
    )


def _apart_by_use(
    uses: Sequence[Sequence[U]], is_conflict: Callable[[U, U], bool]
) -> Iterator[ApartFrom]:
    """Pods that use the same of a node, ports or disks. `uses`: by kind."""
    using = [(at, each) for at, each in enumerate(uses) if each]
    for at, ours in using:
        for other, theirs in using:
            if other <= at and any(is_conflict(one, another) for one in ours for another in theirs):
                yield ApartFrom(NODE, other, at)


def _apart_by_term(nodes: Nodes, requests: Sequence[PodRequest]) -> Iterator[ApartFrom]:
    for at, request in enumerate(requests):
        for term in request.pod_anti_affinity:
            for other, met in enumerate(requests):
                if selects(nodes, term, met.selectable):
                    yield ApartFrom(term.topology_key, min(at, other), max(at, other))


def _near(nodes: Nodes, requests: Sequence[PodRequest]) -> Iterator[NearTo]:
    for at, request in enumerate(requests):
        if request.pod_affinity:
            wanted = tuple(
                other
                for other, met in enumerate(requests)
                if all(selects(nodes, term, met.selectable) for term in request.pod_affinity)
            )
            if wanted:
                yield NearTo(at, wanted)


def _spread(requests: Sequence[PodRequest]) -> Iterator[SpreadAmong]:
    for at, request in enumerate(requests):
        of_one = [
            SpreadAmong(at, constraint, _counted(request, constraint, requests))
            for constraint in request.spread
        ]
        if any(each.counted for each in of_one):
            yield from of_one


def _counted(
    request: PodRequest, constraint: TopologySpread, requests: Sequence[PodRequest]
) -> tuple[int, ...]:
    if not constraint.selector:
        # As in the filter: an empty selector counts nobody.
        return ()
    return tuple(
        at
        for at, other in enumerate(requests)
        if other.namespace == request.namespace and matches(constraint.selector, other.labels)
    )


def rows_for(nodes: Nodes, request: PodRequest, relations: Relations, kind: int) -> Mask:
    """By row, whether the node may have a pod of the kind, as far as others of the set and amounts
    have no say in it."""
    moving = {Reason.POD_AFFINITY} if any(each.kind == kind for each in relations.near) else set()
    if any(each.kind == kind for each in relations.spread):
        moving.add(Reason.TOPOLOGY_SPREAD)
    mask = nodes.present.copy()
    for step in FILTERS:
        if step.TOKEN is not Reason.AMOUNT:
            rule = step.passing_if_idle if step.TOKEN in moving else step.passing
            passing = rule(nodes, request)
            if passing is not None:
                mask &= passing
    return mask
