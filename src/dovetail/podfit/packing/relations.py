"""Relations among the pods of a set: who cannot share a node or a domain with whom, who has to be
near whom, and who is counted when others are spread.

Packing reads them once for each question. What pods that are on nodes already demand, or offer, is
no relation: it decides which rows a kind may go to (`rows_for`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.podfit.domains import selects
from dovetail.podfit.filters import FILTERS, ports
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.selectors import matches
from dovetail.podfit.terms import TopologySpread


class ApartFrom(msgspec.Struct, frozen=True, order=True):
    """Two kinds, or one twice, of which no two pods are in one domain of the topology."""

    topology: str
    one: int
    other: int


class NearTo(msgspec.Struct, frozen=True):
    """A kind of which each pod wants pods of these kinds in its domains, or some there already."""

    kind: int
    wanted: tuple[int, ...]


class SpreadAmong(msgspec.Struct, frozen=True):
    """A kind, one of its constraints, and the kinds that are counted.

    A kind has all of its constraints here, or none if no kind of the set is counted for any.
    """

    kind: int
    constraint: TopologySpread
    counted: tuple[int, ...]


class Relations(msgspec.Struct, frozen=True):
    ports: tuple[tuple[int, int], ...]
    """Kinds that cannot share a node for their host ports."""
    apart: tuple[ApartFrom, ...]
    near: tuple[NearTo, ...]
    spread: tuple[SpreadAmong, ...]


def relations_among(nodes: Nodes, requests: Sequence[PodRequest]) -> Relations:
    """Kinds are numbered as they stand here."""
    return Relations(
        ports=tuple(
            (one, other)
            for other, second in enumerate(requests)
            for one, first in enumerate(requests[: other + 1])
            if any(
                ports.is_conflict(ours, theirs) for ours in first.ports for theirs in second.ports
            )
        ),
        apart=tuple(sorted(set(_apart(nodes, requests)))),
        near=tuple(_near(nodes, requests)),
        spread=tuple(_spread(requests)),
    )


def _apart(nodes: Nodes, requests: Sequence[PodRequest]) -> list[ApartFrom]:
    return [
        ApartFrom(term.topology_key, min(at, other), max(at, other))
        for at, request in enumerate(requests)
        for term in request.pod_anti_affinity
        for other, met in enumerate(requests)
        if selects(nodes, term, met.selectable)
    ]


def _near(nodes: Nodes, requests: Sequence[PodRequest]) -> list[NearTo]:
    found = []
    for at, request in enumerate(requests):
        if request.pod_affinity:
            wanted = tuple(
                other
                for other, met in enumerate(requests)
                if all(selects(nodes, term, met.selectable) for term in request.pod_affinity)
            )
            if wanted:
                found.append(NearTo(at, wanted))
    return found


def _spread(requests: Sequence[PodRequest]) -> list[SpreadAmong]:
    found = []
    for at, request in enumerate(requests):
        of_one = [
            SpreadAmong(at, constraint, _counted(request, constraint, requests))
            for constraint in request.spread
        ]
        if any(each.counted for each in of_one):
            found += of_one
    return found


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
