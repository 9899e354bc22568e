"""What one tree has and lacks: a finding for each constraint of the request.

Constraints are judged together, not each by itself. First for the tree with nothing in use: as many
as can be kept at once are; the others can *never* be met beside them. Of those that could be, as
many as can be kept at once now are *met*; the others are *short*. So all that is met is met by one
choice of providers, nothing is called impossible on a host that would fit if it were empty, and a
host fits exactly if every constraint is met.

A group that cannot be served as a whole is looked at where it comes nearest: at a provider that
could serve it if nothing were in use, if there is one, and else at the one that meets most. Each
step is a fit test of one tree: about as many as there are constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dovetail.core.constraints import Constraint
from dovetail.core.explanation import Reason
from dovetail.core.inventory import Supply
from dovetail.core.request import Request
from dovetail.engine.explain.additions import NOTHING, additions
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.demands import Demands, Kept
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.offers import Place
from dovetail.engine.explain.fit_test.parts import PartialRequest, bits
from dovetail.engine.explain.fit_test.tree_problem import NO_PINS, Pins, SlotKey, TreeProblem
from dovetail.engine.snapshot import Snapshot


class ClassShortage(msgspec.Struct, frozen=True):
    """A class that groups contend for: what they want together, and what its providers have."""

    class_name: str
    wanted: int
    free: int
    capacity: int


class ProviderFinding(msgspec.Struct, frozen=True):
    """A constraint, whether the tree meets it, and the row that comes nearest to it."""

    constraint: Constraint
    met: bool
    ever: bool
    """Whether it could be met, beside all others that could be, if nothing were in use."""
    row: int | None = None
    supply: Supply | None = None
    """Of a resource class."""
    shortages: Sequence[ClassShortage] = ()
    """Of a class that several groups ask for."""

    @property
    def reason(self) -> Reason:
        """Enough may be free, but not to be had in such an amount."""
        supply, wanted = self.supply, self.constraint.amount
        if supply is not None and supply.free >= wanted and not supply.allows(wanted):
            return Reason.UNITS
        return self.constraint.reason


Addition = tuple[int, str, int]
"""What would have to be there besides: row, class, amount."""


class HostFindings(msgspec.Struct, frozen=True):
    """What one tree has and lacks."""

    root: int
    """The row of its root."""
    findings: Sequence[ProviderFinding]
    additions: Sequence[Addition] = ()
    """With these it would fit; none if it fits, or if it lacks more than amounts."""
    fewest_additions: bool = True
    """Whether fewer of them, or less of one, would certainly not do."""


def findings(snapshot: Snapshot, request: Request, tree: int) -> Work[list[ProviderFinding]]:
    """Of every constraint, in order."""
    found = yield from host_findings(Conditions(snapshot, Demands(request)), tree)
    return list(found.findings)


def host_findings(conditions: Conditions, tree: int) -> Work[HostFindings]:
    demands = conditions.demands
    names = {name for group in demands.groups for name in group.amounts}
    problem = TreeProblem(conditions, tree, sorted(names))
    judgement = TreeJudgement(demands, problem)
    found = yield from judgement.findings()
    added = NOTHING
    if not all(one.met for one in found):
        added = yield from additions(demands, problem)
    entries = [(problem.rows[place], name, more) for (place, name), more in added.amounts.items()]
    return HostFindings(problem.root, found, entries, added.smallest)


class TreeJudgement:
    """One tree, judged with nothing in use and as it is now."""

    def __init__(self, demands: Demands, now: TreeProblem) -> None:
        self._demands, self._now, self._idle = demands, now, now.idle()
        self._pins: dict[SlotKey, Place] = {}
        """Where groups are looked at that cannot be served as a whole."""

    def findings(self) -> Work[list[ProviderFinding]]:
        ever = yield from self._keep(self._idle, self._demands.droppable)
        ever = yield from self._keep_most(ever)
        met = yield from self._keep(self._now, ever)
        yield
        chosen = yield from self._now.assignment(self._demands.only(met), self._pins)
        assert chosen is not None
        slots = self._demands.only(met).slots
        places = {
            (slot.group, slot.class_name): place for slot, place in zip(slots, chosen, strict=True)
        }
        shared = self._demands.shared
        found = []
        for at, one in enumerate(self._demands.constraints):
            if at == shared:
                found.append(self._of_contention(one, ever, met, places))
            else:
                is_met, could = bool(met >> at & 1), bool(ever >> at & 1)
                found.append(self._finding(at, one, is_met, could, places))
        return found

    def _keep(self, tree: TreeProblem, allowed: Kept) -> Work[Kept]:
        """As many of the constraints as the tree can keep at once, groups as a whole first."""
        demands = self._demands
        if (yield from self._fits(tree, allowed)):
            return allowed
        kept: Kept = 0
        for place, at in enumerate(demands.roots):
            kept |= (tree.roots_met >> place & 1) << at
        kept &= allowed
        torn: list[int] = []
        for number, group in enumerate(demands.groups):
            whole = bits(group.numbers) & allowed
            if self._is_pinned(number):
                torn.append(number)
            elif (yield from self._fits(tree, kept | whole)):
                kept |= whole
            else:
                torn.append(number)
            yield
        for number in torn:
            kept = yield from self._keep_part(tree, kept, number, allowed)
        for at in demands.relations:
            kept = yield from self._add(tree, kept, at, allowed)
        return kept

    def _keep_most(self, kept: Kept) -> Work[Kept]:
        """What the tree could keep beside these if groups were not looked at in one place each.

        First at providers that have all classes of their group, then at any. What is left out then
        can never be met beside the rest, wherever the groups are served.
        """
        idle, demands = self._idle, self._demands
        for partial in (demands.only, demands.only_anywhere):
            for at in range(len(demands.constraints)):
                more = kept | (1 << at & demands.droppable)
                if more != kept and (yield from idle.fits(partial(more))):
                    kept = more
                yield
        ways: list[tuple[PartialRequest, Pins]] = [
            (demands.only(kept), self._pins),
            (demands.only(kept), NO_PINS),
            (demands.only_anywhere(kept), NO_PINS),
        ]
        chosen = None
        for asked, pins in ways:
            chosen = chosen or (yield from idle.assignment(asked, pins))
        assert chosen is not None
        for slot, place in zip(demands.only(kept).slots, chosen, strict=True):
            if (slot.group, slot.class_name) in self._pins:
                self._pins[slot.group, slot.class_name] = place
        return kept

    def _keep_part(self, tree: TreeProblem, kept: Kept, number: int, allowed: Kept) -> Work[Kept]:
        group = self._demands.groups[number]
        if not self._is_pinned(number):
            for name in [""] if group.suffix else group.amounts:
                self._pins[number, name] = self._nearest(tree, number, name, allowed)
        for at in group.numbers:
            kept = yield from self._add(tree, kept, at, allowed)
            yield
        return kept

    def _add(self, tree: TreeProblem, kept: Kept, at: int, allowed: Kept) -> Work[Kept]:
        more = kept | (1 << at & allowed)
        if more == kept:
            return kept
        return more if (yield from self._fits(tree, more)) else kept

    def _fits(self, tree: TreeProblem, kept: Kept) -> Work[bool]:
        return (yield from tree.fits(self._demands.only(kept), self._pins))

    def _is_pinned(self, number: int) -> bool:
        return any(group == number for group, _ in self._pins)

    def _nearest(self, tree: TreeProblem, number: int, class_name: str, allowed: Kept) -> Place:
        """Where a slot is best looked at; the first of equals.

        With nothing in use it meets all that is allowed, if that can be; then it meets most now,
        and then it lacks least, now and ever.
        """
        group, now, idle = self._demands.groups[number], self._now, self._idle
        amounts = [
            self._demands.constraints[at]
            for name, at in group.amounts.items()
            if class_name in ("", name)
        ]
        need = [place for place, at in enumerate(group.conditions) if allowed >> at & 1]

        def distance(place: Place) -> tuple[int, int, float, float]:
            told = max(
                (sum(met >> at & 1 for at in need) for met in tree.met(number)[place]), default=0
            )
            missed = len(need) - told
            never = sum(not idle.has_room(place, one.name, one.amount) for one in amounts)
            short = sum(not now.has_room(place, one.name, one.amount) for one in amounts)
            return (
                missed + never,
                short,
                sum(lacking(now.supply(place, one.name).free, one.amount) for one in amounts),
                sum(lacking(idle.supply(place, one.name).free, one.amount) for one in amounts),
            )

        return min(tree.places, key=distance)

    # -- what is told ----------------------------------------------------------------------------

    def _finding(
        self, at: int, one: Constraint, met: bool, ever: bool, places: dict[SlotKey, Place]
    ) -> ProviderFinding:
        demands, now = self._demands, self._now
        if at in demands.roots:
            return ProviderFinding(one, met, ever, now.root)
        if at in demands.relations:
            return ProviderFinding(one, met, ever)
        number = next(n for n, group in enumerate(demands.groups) if group.suffix == one.group)
        group = demands.groups[number]
        if one.reason is Reason.AMOUNT:
            place = places[number, "" if group.suffix else one.name]
            supply = now.supply(place, one.name)
            return ProviderFinding(one, met, ever, now.rows[place], supply)
        bit = 1 << list(group.conditions).index(at)
        candidates = [place for (owner, _), place in places.items() if owner == number]
        # Of several providers the one that spoils it.
        place = min(
            candidates,
            key=lambda place: any(told & bit for told in now.met(number)[place]),
            default=0,
        )
        return ProviderFinding(one, met, ever, now.rows[place])

    def _of_contention(
        self, one: Constraint, ever: Kept, met: Kept, places: dict[SlotKey, Place]
    ) -> ProviderFinding:
        """Not met where an amount is not for want of room, but because other groups take it."""
        outdone = {False: set[str](), True: set[str]()}
        for number, group in enumerate(self._demands.groups):
            for name, at in group.amounts.items():
                if name not in one.names:
                    continue
                place = places[number, "" if group.suffix else name]
                amount = self._demands.constraints[at].amount
                if not met >> at & 1 and self._now.has_room(place, name, amount):
                    outdone[False].add(name)
                if not ever >> at & 1 and self._idle.has_room(place, name, amount):
                    outdone[True].add(name)
        short = outdone[False] | outdone[True]
        shortages = [self._shortage(name) for name in sorted(short)]
        return ProviderFinding(one, not short, not outdone[True], shortages=shortages)

    def _shortage(self, name: str) -> ClassShortage:
        wanted = sum(
            self._demands.constraints[group.amounts[name]].amount
            for group in self._demands.groups
            if name in group.amounts
        )
        held = [supply for (_, other), supply in self._now.supplies.items() if other == name]
        return ClassShortage(
            name, wanted, total(each.free for each in held), total(each.capacity for each in held)
        )


def lacking(free: int, amount: int) -> float:
    """The share of an amount that is not there."""
    return max(0, amount - max(free, 0)) / amount


def total(amounts: Iterable[int]) -> int:
    return sum(max(amount, 0) for amount in amounts)
