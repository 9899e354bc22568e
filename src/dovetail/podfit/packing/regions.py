"""Regions: nodes that are in the same domains of every topology that relations are about.

To relations among pods it makes no difference which node of a region a pod is on. So they are
decided by region, and the solver finds the nodes. Regions that could be exchanged for one another
with all that is on them are a class, and the search looks at one of those that are alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from dovetail.core.columns import Mask, Numbers
from dovetail.podfit.domains import Domains, selected_by_all
from dovetail.podfit.filters import spread
from dovetail.podfit.packing.node_classes import ApartMarks, ClassRows
from dovetail.podfit.packing.question import Question
from dovetail.podfit.packing.relations import ApartFrom, NearTo, Relations, SpreadAmong
from dovetail.podfit.packing.solver.problem import NodeClass
from dovetail.podfit.selectors import matches


class SpreadCounts(msgspec.Struct, frozen=True):
    """A constraint of a kind, and the pods that are there already."""

    among: SpreadAmong
    topology: int
    own: int
    """What one pod of the kind adds."""
    there: list[int]
    """By domain, the pods that count."""
    domains: list[bool]
    """By domain, whether it counts."""
    rows: Mask
    """Nodes whose pods count."""


class NearPods(msgspec.Struct, frozen=True):
    """Affinity of a kind, and the pods that are there already."""

    near: NearTo
    topologies: tuple[int, ...]
    """Of its terms."""
    there: tuple[list[bool], ...]
    """By term and domain, whether a pod that is wanted is there."""
    is_anywhere: bool
    """Whether one is in a domain of any term: a pod that wants its like is not the first."""


class Region(msgspec.Struct, frozen=True):
    domains: tuple[int, ...]
    """By topology; 0 is none."""
    classes: tuple[ClassRows, ...]


class RegionClass(msgspec.Struct, frozen=True):
    """Regions that are the same to every relation and have the same nodes."""

    regions: tuple[Region, ...]
    domains: tuple[int, ...]
    """By topology: 0 is none; of a private one, that of the first region."""
    private: tuple[bool, ...]
    """By topology: no other region is in the domain."""
    counted: tuple[bool, ...]
    """By spread constraint: pods on its nodes count."""
    nodes: tuple[NodeClass, ...]

    @property
    def is_one_node(self) -> bool:
        return len(self.nodes) == 1 and self.nodes[0].size == 1


class RegionMap(msgspec.Struct, frozen=True):
    """Topologies are numbered."""

    apart: tuple[tuple[int, int, int], ...]
    """Topology, and the two kinds."""
    near: tuple[NearPods, ...]
    spread: tuple[SpreadCounts, ...]
    classes: tuple[RegionClass, ...]
    elsewhere: tuple[ClassRows, ...]
    """Nodes that none of the related kinds may go to."""


def region_map(question: Question, beyond: Sequence[ApartFrom], apart: ApartMarks) -> RegionMap:
    """`beyond`: pairs that are a matter of more than one node."""
    relations = question.relations
    terms = [question.kinds[each.kind].request.pod_affinity for each in relations.near]
    topologies = sorted(
        {each.topology for each in beyond}
        | {term.topology_key for each in terms for term in each}
        | {each.constraint.topology_key for each in relations.spread}
    )
    spreads = tuple(_spread_counts(question, each, topologies) for each in relations.spread)
    nears = tuple(_near_pods(question, each, topologies) for each in relations.near)
    related = {kind for each in beyond for kind in (each.one, each.other)}
    related |= Relations((), relations.near, relations.spread).kinds()
    domains, numbers = _numbered_regions(question, topologies, spreads, related)
    classes = question.node_classes(apart, numbers)
    regions = _regions(domains, classes)
    return RegionMap(
        apart=tuple((topologies.index(each.topology), each.one, each.other) for each in beyond),
        near=nears,
        spread=spreads,
        classes=tuple(_region_classes(regions, spreads, nears)),
        elsewhere=tuple(each for each in classes if each.region < 0),
    )


def _spread_counts(
    question: Question, among: SpreadAmong, topologies: Sequence[str]
) -> SpreadCounts:
    nodes, request = question.nodes, question.kinds[among.kind].request
    eligible = nodes.present & spread.with_labels(nodes, request.spread)
    rows = spread.rows_counted(nodes, request, among.constraint, eligible)
    domains = Domains(nodes, among.constraint.topology_key)
    return SpreadCounts(
        among=among,
        topology=topologies.index(among.constraint.topology_key),
        own=int(matches(among.constraint.selector, request.labels)),
        there=domains.sums(spread.pod_counts(nodes, request, among.constraint) * rows).tolist(),
        domains=domains.containing(np.flatnonzero(rows)).tolist(),
        rows=rows,
    )


def _near_pods(question: Question, near: NearTo, topologies: Sequence[str]) -> NearPods:
    nodes, terms = question.nodes, question.kinds[near.kind].request.pod_affinity
    rows = nodes.pods.rows(selected_by_all(nodes, terms))
    there = tuple(Domains(nodes, term.topology_key).containing(rows).tolist() for term in terms)
    return NearPods(
        near=near,
        topologies=tuple(topologies.index(term.topology_key) for term in terms),
        there=there,
        is_anywhere=any(map(any, there)),
    )


def _numbered_regions(
    question: Question,
    topologies: Sequence[str],
    spreads: Sequence[SpreadCounts],
    related: Collection[int],
) -> tuple[list[tuple[int, ...]], Numbers]:
    """The domains of each region, and by row of the question the number of its region; -1 where no
    related kind may go."""
    rows, labels = question.rows, question.nodes.labels
    columns = [labels.column(each).numbers[rows] for each in topologies]
    flags = [each.rows[rows] for each in spreads]
    within: Mask = np.zeros(len(rows), np.bool_)
    for kind in related:
        within |= question.kinds[kind].kind.rows[rows]
    keys = np.stack([*columns, *flags], axis=1).astype(np.int64)
    numbers: Numbers = np.full(len(rows), -1, np.int32)
    found, inverse = np.unique(keys[within], axis=0, return_inverse=True)
    numbers[within] = inverse.reshape(-1)
    return [tuple(each[: len(topologies)]) for each in found.tolist()], numbers


def _regions(domains: Sequence[tuple[int, ...]], classes: Sequence[ClassRows]) -> list[Region]:
    by_region: list[list[ClassRows]] = [[] for _ in domains]
    for each in classes:
        if each.region >= 0:
            by_region[each.region].append(each)
    for members in by_region:
        # In one order, so that regions of a class have like nodes at like places.
        members.sort(key=lambda each: (each.node_class.kinds, each.node_class.free, each.rows))
    return [Region(of, tuple(members)) for of, members in zip(domains, by_region, strict=True)]


class _Likeness(NamedTuple):
    """What regions of one class have in common."""

    domains: tuple[int, ...]
    """By topology; -1 is one that is private, as `private` of `RegionClass` has it."""
    counted: tuple[bool, ...]
    spread: tuple[tuple[int, bool], ...]
    near: tuple[bool, ...]
    nodes: tuple[NodeClass, ...]


def _region_classes(
    regions: Sequence[Region], spreads: Sequence[SpreadCounts], nears: Sequence[NearPods]
) -> Iterator[RegionClass]:
    members = Counter((at, of) for each in regions for at, of in enumerate(each.domains))
    found: dict[_Likeness, list[Region]] = {}
    for each in regions:
        row, domains = each.classes[0].rows[0], each.domains
        likeness = _Likeness(
            domains=tuple(
                -1 if of and members[at, of] == 1 else of for at, of in enumerate(domains)
            ),
            counted=tuple(bool(one.rows[row]) for one in spreads),
            spread=tuple(
                (one.there[domains[one.topology]], one.domains[domains[one.topology]])
                for one in spreads
            ),
            near=tuple(
                there[domains[topology]]
                for one in nears
                for topology, there in zip(one.topologies, one.there, strict=True)
            ),
            nodes=tuple(one.node_class for one in each.classes),
        )
        found.setdefault(likeness, []).append(each)
    for likeness, alike in found.items():
        yield RegionClass(
            regions=tuple(alike),
            domains=alike[0].domains,
            private=tuple(of < 0 for of in likeness.domains),
            counted=likeness.counted,
            nodes=likeness.nodes,
        )
