"""What is near an amount: the groups that a tree cannot serve without regard to it.

`refine` asks it while it looks for the largest amount that fits. Groups that ask for the same
class, lie in one subtree or are isolated are near each other, and so on. Whether a tree can serve
those with some amount does not depend on the others, so it is found out once for all trees that
look alike to them: where hosts differ in what is free of processors, those with the same cards are
one kind to groups that want cards.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.constraints import Constraint, with_amount
from dovetail.core.explanation import Reason
from dovetail.engine.explain.fit_test.alike import Kind, TreeViews
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.fleet_problem import FleetProblem
from dovetail.engine.explain.fit_test.parts import bits, members

Asked = Mapping[int, Constraint]
"""Constraints by number, in the form in which they are asked for."""


class NearGroups:
    """One amount, and what is near it."""

    def __init__(self, fleet: FleetProblem, at: int, others: Asked) -> None:
        """`others`: all that is asked for besides the amount."""
        self._fleet, self._at = fleet, at
        self._one = fleet.demands.constraints[at]
        self._near = near_constraints(self._one, others)
        self.is_of_use = any(
            one.group is not None and number not in self._near for number, one in others.items()
        )
        """Whether some group is not near."""
        self._amount = 0
        self._views: TreeViews | None = None
        self._fits: dict[Kind, bool] = {}
        self._kinds: dict[int, Kind] = {}

    def can_give(self, tree: int, amount: int) -> Work[bool]:
        """Whether the tree can serve what is near with so much; the rest it may not serve."""
        if self._views is None or amount != self._amount:
            self._look_at(amount)
            yield
        assert self._views is not None
        kind = self._kinds.get(tree)
        if kind is None:
            kind = self._kinds[tree] = self._views.kind(tree)
        if kind not in self._fits:
            self._fits[kind] = yield from self._fleet.problem(tree).fits(self._partial)
        return self._fits[kind]

    def _look_at(self, amount: int) -> None:
        demands = self._fleet.demands
        asked = {**self._near, self._at: with_amount(self._one, amount)}
        self._partial = demands.without(demands.everything & ~bits(asked), asked)
        self._views = TreeViews(self._fleet.conditions, list(asked.values()))
        self._amount, self._fits, self._kinds = amount, {}, {}


def near_constraints(one: Constraint, others: Asked) -> dict[int, Constraint]:
    """Each round adds a group, or is the last."""
    near, known = {one.group}, set[str | None]()
    links = [members(each.affinity) for each in others.values() if each.affinity is not None]
    asking: dict[str, set[str | None]] = {one.name: {one.group}}
    suffixed: set[str | None] = set()
    for each in others.values():
        if each.reason is Reason.AMOUNT:
            asking.setdefault(each.name, set()).add(each.group)
        if each.group:
            suffixed.add(each.group)
    joined = [*links, *asking.values()]
    if any(each.reason is Reason.ISOLATION for each in others.values()):
        joined.append(suffixed | {one.group} - {""})
    while near != known:
        known = set(near)
        for groups in joined:
            if groups & near:
                near |= groups
    return {at: each for at, each in others.items() if is_near(each, near)}


def is_near(one: Constraint, near: set[str | None]) -> bool:
    if one.affinity is not None:
        return bool(members(one.affinity) & near)
    if one.reason is Reason.ISOLATION:
        return any(near - {""})
    return one.group in near
