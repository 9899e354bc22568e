"""Fit test of one tree: can it serve these constraints, as it is or with other amounts free?

The explainers of hosts, relaxations and moves ask it thousands of times about one tree, so it is
plain Python over the few rows a tree can be served from: its own and those shared with it. A slot's
options are the rows whose bits cover what is needed and that have room; slots that have nothing to
do with each other need no search, the others are filled by backtracking with the rules of the
search itself (`combine/rules`). It ends since backtracking does, and yields as that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.core.inventory import Supply
from dovetail.engine.combine.backtrack import Backtracking
from dovetail.engine.combine.rules import (
    CapacityRule,
    CollectiveTraitsRule,
    IsolationRule,
    Rule,
    SubtreeRule,
)
from dovetail.engine.explain.conditions import Conditions
from dovetail.engine.explain.demands import PartialRequest, PartialSlot
from dovetail.engine.explain.fits import Work
from dovetail.engine.inventories import ClassInventories

Place = int
"""A row that the tree can be served from, by its number in `TreeProblem.rows`."""
SlotKey = tuple[int, str]
"""Group and class of a slot, whatever is kept of it."""
Pins = Mapping[SlotKey, Place]
"""Slots that have to be served from one place."""
NOTHING = Supply()
NO_PINS: Pins = {}


class TreeProblem:
    """One tree: what its rows meet, and what they have."""

    def __init__(self, conditions: Conditions, tree: int, classes: Sequence[str]) -> None:
        snapshot = conditions.snapshot
        self.tree = tree
        self.root = int(snapshot.tree_start.values[tree])
        own, shared = snapshot.rows_of(tree), conditions.shared_rows(tree)
        self.rows = [*own, *shared]
        self.places = range(len(self.rows))
        self._conditions, self._own = conditions, len(own)
        self._met: dict[int, list[tuple[int, ...]]] = {}
        self.roots_met = conditions.row_bits(conditions.demands.roots, self.root)
        self.supplies: dict[tuple[Place, str], Supply] = {}
        for name in classes:
            inventories = snapshot.inventories_of(name)
            if inventories is not None:
                self._read_supplies(name, inventories, own, shared)
        parent = snapshot.parent.values
        at = {row: place for place, row in enumerate(self.rows)}
        self.ancestry: dict[Place, int] = {}
        """By place: the bits of itself and of those above it."""
        for place, row in enumerate(self.rows):
            mask, up = 0, row
            while up >= 0:
                mask |= 1 << at[up] if up in at else 0
                up = int(parent[up])
            self.ancestry[place] = mask
        self._bits = {place: 1 << place for place in self.places}
        self._options: dict[PartialSlot, list[Place]] = {}

    def _read_supplies(
        self, name: str, inventories: ClassInventories, own: range, shared: Sequence[int]
    ) -> None:
        rows = inventories.rows.values
        low, high = rows.searchsorted((own.start, own.stop)).tolist()
        entries = [*range(low, high)]
        entries += [at for row in shared if (at := inventories.entry(row)) is not None]
        places = {row: place for place, row in enumerate(self.rows)}
        for at in entries:
            place = places[int(rows[at])]
            self.supplies[place, name] = Supply(
                int(inventories.free.values[at]),
                int(inventories.capacity.values[at]),
                int(inventories.min_unit.values[at]),
                int(inventories.max_unit.values[at]),
                int(inventories.step_size.values[at]),
            )

    def with_free(self, free: Mapping[tuple[Place, str], int]) -> TreeProblem:
        """The same tree where so much is free instead."""
        twin = object.__new__(TreeProblem)
        vars(twin).update(vars(self))
        twin._options = {}
        twin.supplies = dict(self.supplies)
        for at, amount in free.items():
            old = self.supplies[at]
            twin.supplies[at] = Supply(
                amount, old.capacity, old.min_unit, old.max_unit, old.step_size
            )
        return twin

    def with_more(self, added: Mapping[tuple[Place, str], int]) -> TreeProblem:
        """The same tree where so much is there besides; a class that is new there comes whole."""
        twin = self.with_free({})
        for at, more in added.items():
            old = twin.supplies.get(at, Supply(max_unit=more))
            twin.supplies[at] = Supply(
                max(old.free, 0) + more,
                max(old.capacity, 0) + more,
                old.min_unit,
                max(old.max_unit, more) if not old.capacity else old.max_unit,
                old.step_size,
            )
        return twin

    def idle(self) -> TreeProblem:
        """The same tree with nothing in use."""
        return self.with_free({at: held.capacity for at, held in self.supplies.items()})

    def met(self, group: int) -> list[tuple[int, ...]]:
        """By place: the group's conditions that it meets, in each way in which it can speak."""
        found = self._met.get(group)
        if found is None:
            conditions = self._conditions
            found = conditions.of_tree(group, self.rows[: self._own], self.root)
            for row in self.rows[self._own :]:
                found.append(conditions.of_shared(group, row, self.root))
            self._met[group] = found
        return found

    def supply(self, place: Place, class_name: str) -> Supply:
        return self.supplies.get((place, class_name), NOTHING)

    def has_room(self, place: Place, class_name: str, amount: int) -> bool:
        """A negative amount: any that is smaller than its opposite."""
        held = self.supplies.get((place, class_name))
        if held is None:
            return False
        if amount < 0:
            return smallest_unit(held) <= min(held.free, held.max_unit, -amount - 1)
        return held.free >= amount and held.allows(amount)

    def options(self, slot: PartialSlot) -> list[Place]:
        found = self._options.get(slot)
        if found is None:
            places = self._having(slot.unasked) if slot.unasked else self.places
            found = self._options[slot] = [place for place in places if self._serves(place, slot)]
        return found

    def _only(self, place: Place, slot: PartialSlot) -> list[Place]:
        return [place] if self._serves(place, slot) else []

    def _serves(self, place: Place, slot: PartialSlot) -> bool:
        need = slot.need
        for told in self.met(slot.group)[place]:
            if told & need == need:
                break
        else:
            return False
        return all(self.has_room(place, name, amount) for name, amount in slot.amounts)

    def _having(self, class_names: Sequence[str]) -> Sequence[Place]:
        """The places that have all of these classes, in use or not; everywhere if none has."""
        found = [
            place
            for place in self.places
            if all(self.supply(place, name).capacity > 0 for name in class_names)
        ]
        return found or self.places

    def fits(self, partial: PartialRequest, pins: Pins = NO_PINS) -> Work[bool]:
        return (yield from self.assignment(partial, pins)) is not None

    def assignment(self, partial: PartialRequest, pins: Pins = NO_PINS) -> Work[list[Place] | None]:
        """A place for each slot, if there are such places."""
        if partial.roots & ~self.roots_met:
            return None
        slots, options = partial.slots, []
        for slot in slots:
            pin = pins.get((slot.group, slot.class_name)) if pins else None
            found = self.options(slot) if pin is None else self._only(pin, slot)
            if not found:
                return None
            options.append(found)
        chosen = [found[0] for found in options]
        bound = self._bound(partial)
        if not bound:
            return chosen
        order = sorted(bound, key=lambda at: len(options[at]))
        steps = [options[at] for at in order]
        rules = self._rules(partial, [slots[at] for at in order], steps)
        if rules is None:
            return None
        for combination in Backtracking(range(len(order)), steps, rules).combinations():
            if combination is None:
                yield
                continue
            for at, place in zip(order, combination, strict=True):
                chosen[at] = place
            return chosen
        return None

    def _bound(self, partial: PartialRequest) -> list[int]:
        """The slots that have to do with others."""
        tied = {name for one in partial.affinities for name in one.together | one.apart}
        groups = self._conditions.demands.groups
        return [
            at
            for at, slot in enumerate(partial.slots)
            if any(name in partial.contended for name, _ in slot.amounts)
            or (partial.together and not groups[slot.group].suffix)
            or (partial.isolated and groups[slot.group].suffix)
            or groups[slot.group].suffix in tied
        ]

    def _rules(
        self, partial: PartialRequest, slots: Sequence[PartialSlot], steps: Sequence[list[Place]]
    ) -> list[Rule] | None:
        """What the slots demand of each other; None if that plainly cannot be kept."""
        rules: list[Rule] = []
        suffixes = [self._conditions.demands.groups[slot.group].suffix for slot in slots]
        if partial.contended:
            rule = self._capacity_rule(partial.contended, slots, steps)
            if rule is None:
                return None
            rules.append(rule)
        if partial.isolated:
            isolated = [name in partial.isolated if name else None for name in suffixes]
            rules.append(IsolationRule(isolated, self._bits))
        for one in partial.affinities:
            rules.append(
                SubtreeRule(
                    [name in one.together for name in suffixes],
                    [name in one.apart for name in suffixes],
                    [sum(1 << place for place in options) for options in steps],
                    self.ancestry,
                    self._bits,
                )
            )
        if partial.together:
            giving = [
                bool(slot.amounts) and not name for slot, name in zip(slots, suffixes, strict=True)
            ]
            spread = giving if any(giving) else [not name for name in suffixes]
            rules.append(self._collective_rule(partial.together, spread, steps))
        return rules

    def _capacity_rule(
        self,
        contended: frozenset[str],
        slots: Sequence[PartialSlot],
        steps: Sequence[list[Place]],
    ) -> CapacityRule | None:
        wanted = [{n: amount for n, amount in slot.amounts if n in contended} for slot in slots]
        headroom: dict[tuple[Place, str], int] = {}
        for amounts, options in zip(wanted, steps, strict=True):
            for name in amounts:
                for place in options:
                    held = self.supplies[place, name]
                    headroom[place, name] = min(held.free, held.max_unit)
        for name in contended:
            there = sum(room for (_, other), room in headroom.items() if other == name)
            if there < sum(amounts.get(name, 0) for amounts in wanted):
                return None
        return CapacityRule(wanted, headroom)

    def _collective_rule(
        self, together: int, spread: Sequence[bool], steps: Sequence[list[Place]]
    ) -> CollectiveTraitsRule:
        """`spread`: by slot, whether its provider counts; one of which nothing is kept does not."""
        numbers = self._conditions.demands.together
        wanted = [place for place in range(len(numbers)) if together >> place & 1]
        meets: dict[Place, int] = {}
        for is_spread, options in zip(spread, steps, strict=True):
            for place in options if is_spread else ():
                found = self._conditions.row_bits(numbers, self.rows[place])
                meets[place] = sum(
                    1 << at for at, number in enumerate(wanted) if found >> number & 1
                )
        return CollectiveTraitsRule(spread, steps, meets, len(wanted))


def smallest_unit(held: Supply) -> int:
    """The least that can be had in one allocation, however much is free."""
    return -(-max(held.min_unit, 1) // held.step_size) * held.step_size


def largest_unit(held: Supply, most: int) -> int:
    """The most that can be had in one allocation, and no more than `most`; 0 if nothing can."""
    amount = min(held.free, held.max_unit, most) // held.step_size * held.step_size
    return amount if amount >= smallest_unit(held) else 0
