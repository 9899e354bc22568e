"""The reference's own defects in allocation candidates, each recognised as narrowly as can be.

1  amounts of one group are added into another's when group_policy is not none;
2  a choice of sharing providers only, for the unsuffixed group, is kept for one anchor only;
3  a sharing provider below the root of another tree ends in a 500;
5  a group without resources ignores its in_tree, and matches nothing without a positive condition;
6  an unknown trait or class is refused only if the search gets that far before finding nothing.
(4 is about writes.) A difference is explained only if it is of the kind the defect makes, for a
query and a world in which the defect can act.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property

from tests.differential.comparison import MAPPINGS, Expectation, Found, Request
from tests.differential.oracle import Candidate, Choice, Oracle
from tests.differential.query import Group, Query
from tests.differential.wire import Answer
from tests.differential.world import SHARES, World

Reached = dict[Candidate, set[str]]
"""Candidates with the anchors they can be reached from."""


def explain(oracle: Oracle, query: Query, status: int, given: Found | None) -> frozenset[int]:
    """Which defects turn the right answer into what the reference gave; empty if none do."""
    view = _View(oracle, query)
    if given is None:
        return frozenset({3}) if status == 500 and view.crashes() else frozenset()
    if given.summaries != view.wire.summaries(given.requests):
        return frozenset()
    numbers = {5} if set(view.base) != set(oracle.candidates(query)) else set[int]()
    if given.requests != Counter(map(view.wire.request, view.base)):
        others = view.losses_and_sums(given.requests)
        if not others:
            return frozenset()
        numbers |= others
    return frozenset(numbers)


def can_crash(world: World) -> bool:
    """Whether defect 3 can act in this world at all."""
    return any(it.parent and SHARES in it.traits for it in world.providers)


def overlooks_name(theirs: Answer, ours: Answer) -> bool:
    """Defect 6: nothing found where the other side says that a name is unknown."""
    if theirs.status != 200 or ours.status != 400:
        return False
    told = ours.body["errors"][0]["detail"]
    unknown = "No such trait(s)" in told or "No such resource class" in told
    return unknown and not theirs.body["allocation_requests"]


class _View:
    """One query on one world, as the reference goes about it."""

    def __init__(self, oracle: Oracle, query: Query) -> None:
        self.oracle, self.query = oracle, query
        self.world = oracle.world
        self.wire = Expectation(oracle, query)
        self.choices = {group.suffix: self._choices(group) for group in query.groups}

    def _choices(self, group: Group) -> list[Choice]:
        """The choices of a group, with defect 5."""
        if group.resources:
            return self.oracle.choices(self.query, group)
        known = group.in_tree is None or group.in_tree in self.world.by_uuid
        if not known or not (group.required or group.member_of):
            return []
        return self.oracle.choices(self.query, replace(group, in_tree=None))

    @cached_property
    def base(self) -> Reached:
        """The right candidates but for defect 5."""
        return self.oracle.combine(self.query, self.choices)

    def crashes(self) -> bool:
        """Defect 3: groups are searched in order, and the unsuffixed one meets a provider of a
        tree whose root neither it nor an earlier group has looked at."""
        seen: set[str] = set()
        for group in self.query.groups:
            if not group.suffix:
                anchors, givers = self._considered(group)
                return not {self.world.roots[uuid] for uuid in givers} <= anchors | givers | seen
            if not self.choices[group.suffix]:
                return False
            chosen = {uuid for it in self.choices[group.suffix] for uuid in it.providers}
            seen |= {self.world.roots[uuid] for uuid in chosen}
        return False

    def _considered(self, group: Group) -> tuple[set[str], set[str]]:
        """Anchors whose tree can give every class, traits aside, and who would give them."""
        anchors: set[str] = set()
        givers: set[str] = set()
        for root in set(self.world.roots.values()):
            each = [list(self.oracle.givers(group, root, name)) for name in group.resources]
            if self.oracle.root_fits(self.query, root) and all(each):
                anchors.add(root)
                givers |= {it.uuid for several in each for it in several}
        return anchors, givers

    @cached_property
    def several_anchors(self) -> dict[frozenset[tuple[str, str, int]], set[str]]:
        """Unsuffixed choices that several anchors have, which only sharing providers allow."""
        anchors = defaultdict(set)
        for choice in self.choices.get("", []):
            anchors[choice.parts].add(choice.anchor)
        return {parts: roots for parts, roots in anchors.items() if len(roots) > 1}

    @cached_property
    def summed(self) -> set[tuple[str, str]]:
        """Providers and classes where the unsuffixed group can meet another: defect 1."""
        if self.query.policy == "none":
            return set()
        spread = {(it.anchor, *part) for it in self.choices.get("", []) for part in it.parts}
        met = {(anchor, uuid, name) for anchor, uuid, name, _ in spread}
        alone = [it for suffix, each in self.choices.items() if suffix for it in each]
        return {
            (uuid, name)
            for it in alone
            for uuid, name, _ in it.parts
            if (it.anchor, uuid, name) in met
        }

    def losses_and_sums(self, given: Counter[Request]) -> set[int]:
        """Defects 1 and 2, together or alone; empty if they are not enough."""
        base = self._by_shape()
        shapes = Counter(map(self._shape, given.elements()))
        right = Counter({shape: len(several) for shape, several in base.items()})
        if not shapes <= right:
            return set()
        numbers = set[int]()
        for request in given - Counter(map(self.wire.request, self.base)):
            if not any(_adds(request, self.wire.request(it)) for it in base[self._shape(request)]):
                return set()
            numbers.add(1)
        for shape in right - shapes:
            excuse = self._excuse(base[shape])
            if excuse is None:
                return set()
            numbers.add(excuse)
        return numbers if numbers != {2} or self._one_anchor_each(given) else set()

    def _by_shape(self) -> dict[Request, list[Candidate]]:
        found = defaultdict(list)
        for candidate in self.base:
            found[self._shape(self.wire.request(candidate))].append(candidate)
        return found

    def _shape(self, request: Request) -> Request:
        """The request without the amounts defect 1 can spoil."""
        taken, mapped = request
        kept = (
            (uuid, name, 0 if (uuid, name) in self.summed else amount)
            for uuid, name, amount in taken
        )
        return frozenset(kept), mapped

    def _excuse(self, candidates: list[Candidate]) -> int | None:
        """The defect that may have lost one of these."""
        if len(self.query.groups) > 1 and any(
            it.spread in self.several_anchors for it in candidates
        ):
            return 2
        taken = {(uuid, name) for it in candidates for uuid, name, _ in it.allocations}
        return 1 if taken & self.summed else None

    def _one_anchor_each(self, given: Counter[Request]) -> bool:
        """Defect 2 alone: each unsuffixed choice is there as one of its anchors has it."""
        if self.query.minor < MAPPINGS:
            return True  # without mappings there is no telling which choice a request has made
        for parts, anchors in self.several_anchors.items():
            reached = {it: at for it, at in self.base.items() if it.spread == parts}
            left = {it for it in reached if self.wire.request(it) in given}
            if not any(left == {it for it, at in reached.items() if a in at} for a in anchors):
                return False
        return True


def _adds(request: Request, right: Request) -> bool:
    """Whether the request is the right one with some amounts too large."""
    amounts = {(uuid, name): amount for uuid, name, amount in right[0]}
    return all(amount >= amounts[uuid, name] for uuid, name, amount in request[0])
