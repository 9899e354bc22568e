"""Fit test of one tree: can it serve these constraints, as it is or with other amounts free?

The explainers of hosts, relaxations and moves ask it thousands of times about one tree, so it is
plain Python over the few rows a tree can be served from (places): its own and those shared with it.
What was found out about other trees answers most of it (`offers`). A slot's options are the rows
whose bits cover what is needed and that have room; slots that have to do with each other (`parts`)
are filled by backtracking with the rules of the search itself (`combine/rules`), the others need no
search. It ends since backtracking does, and yields as that does.
"""

from __future__ import annotations

from bisect import insort
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
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.fits import Work
from dovetail.engine.explain.fit_test.offers import Offer, Offering, Place
from dovetail.engine.explain.fit_test.parts import (
    KeptRelations,
    PartialRequest,
    PartialSlot,
    RequestPart,
    Served,
    bits,
)
from dovetail.engine.inventories import ClassInventories

SlotKey = tuple[int, str]
"""Group and class of a slot, whatever is kept of it."""
Pins = Mapping[SlotKey, Place]
"""Slots that have to be served from one place."""
NOTHING = Supply()
NO_PINS: Pins = {}
MOST_KEPT = 32
"""Layouts, and offers, of a tree; beyond that all are forgotten."""
Layout = tuple[list[list[Place]], Served]
"""By slot: the places that may serve it, and the same in bits."""


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
        self._holding: dict[str, list[Place]] = {}
        """By class: the places that have it."""
        for name in classes:
            inventories = snapshot.inventories_of(name)
            if inventories is not None:
                self._read_supplies(name, inventories, own, shared)
        self.form = conditions.form(own, shared)
        self.ancestry = self.form.ancestry
        self._bits = {place: 1 << place for place in self.places}
        self._options: dict[int, list[Place]] = {}
        """By number of the slot."""
        self._served: dict[int, int] = {}
        """The same in bits."""
        self._layouts: dict[tuple[int, ...], Layout | None] = {}
        """By the numbers of slots, without pins."""
        self._roomy: dict[tuple[str, int], list[Place]] = {}
        """By class and amount: the places that have room for it."""
        self._offers: dict[Offering, Offer] = {}
        """Some that were made, without pins."""

    def _read_supplies(
        self, name: str, inventories: ClassInventories, own: range, shared: Sequence[int]
    ) -> None:
        rows = inventories.rows.values
        low, high = rows.searchsorted((own.start, own.stop)).tolist()
        columns = (
            inventories.free,
            inventories.capacity,
            inventories.min_unit,
            inventories.max_unit,
            inventories.step_size,
        )
        values = [column.values[low:high].tolist() for column in columns]
        places = [row - own.start for row in rows[low:high].tolist()]
        for place, *held in zip(places, *values, strict=True):
            self.supplies[place, name] = Supply(*held)
        for place, row in enumerate(shared, len(own)):
            at = inventories.entry(row)
            if at is not None:
                held = [int(column.values[at]) for column in columns]
                self.supplies[place, name] = Supply(*held)
                places.append(place)
        self._holding[name] = places

    def with_free(self, free: Mapping[tuple[Place, str], int]) -> TreeProblem:
        """The same tree where so much is free instead."""
        twin = object.__new__(TreeProblem)
        vars(twin).update(vars(self))
        twin._options, twin._served, twin._layouts = {}, {}, {}
        twin._roomy, twin._offers = {}, {}
        twin.supplies = dict(self.supplies)
        for at, amount in free.items():
            old = self.supplies[at]
            twin.supplies[at] = Supply(
                amount, old.capacity, old.min_unit, old.max_unit, old.step_size
            )
        return twin

    def with_more(
        self, added: Mapping[tuple[Place, str], int], slots: Sequence[PartialSlot]
    ) -> TreeProblem:
        """The same tree where so much is there besides; a class that is new there comes whole.

        `slots` are those it will be asked for: where nothing is added of what one wants, its
        options stay.
        """
        twin = self.with_free({})
        names = {name for _, name in added}
        for slot in slots:
            if not any(name in names for name, _ in slot.amounts):
                twin._options[slot.number] = self.options(slot)
                twin._served[slot.number] = self._served[slot.number]
        twin._holding = {name: list(places) for name, places in self._holding.items()}
        for at, more in added.items():
            if at not in twin.supplies:
                insort(twin._holding.setdefault(at[1], []), at[0])
            old = twin.supplies.get(at, Supply(max_unit=more))
            twin.supplies[at] = Supply(
                old.free + more, old.capacity + more, old.min_unit, old.max_unit, old.step_size
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

    def met_by_rows(self, numbers: tuple[int, ...]) -> frozenset[int]:
        """Which of these constraints rows meet by themselves as they are: bits, of all rows."""
        own = self.rows[: self._own]
        met = self._conditions.rows_bits(numbers, own[0], own[-1] + 1)
        return frozenset(met).union(
            self._conditions.row_bits(numbers, row) for row in self.rows[self._own :]
        )

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
        found = self._options.get(slot.number)
        if found is None:
            found = self._options[slot.number] = self._serving(slot)
            self._served[slot.number] = bits(found)
        return found

    def _only(self, place: Place, slot: PartialSlot) -> list[Place]:
        has_room = all(self.has_room(place, name, amount) for name, amount in slot.amounts)
        return [place] if has_room and self._meets(place, slot) else []

    def _serving(self, slot: PartialSlot) -> list[Place]:
        places: Sequence[Place] = self._having(slot.unasked) if slot.unasked else self.places
        for name, amount in slot.amounts:
            roomy = self._with_room(name, amount)
            places = roomy if places is self.places else [each for each in places if each in roomy]
        if not slot.need:
            return list(places)
        return [place for place in places if self._meets(place, slot)]

    def _with_room(self, name: str, amount: int) -> list[Place]:
        found = self._roomy.get((name, amount))
        if found is None:
            having = self._holding.get(name, ())
            found = [place for place in having if self.has_room(place, name, amount)]
            self._roomy[name, amount] = found
        return found

    def _meets(self, place: Place, slot: PartialSlot) -> bool:
        need = slot.need
        return any(told & need == need for told in self.met(slot.group)[place])

    def _having(self, class_names: Sequence[str]) -> Sequence[Place]:
        """The places that have all of these classes, in use or not; everywhere if none has."""
        found = [
            place
            for place in self.places
            if all(self.supply(place, name).capacity > 0 for name in class_names)
        ]
        return found or self.places

    def fits(self, partial: PartialRequest, pins: Pins = NO_PINS) -> Work[bool]:
        if partial.roots & ~self.roots_met:
            return False
        laid_out = self._layout(partial, pins)
        if laid_out is None:
            return False
        options, served = laid_out
        for numbers, part in partial.parts(served):
            own = [options[at] for at in numbers]
            if not (yield from self._part_fits(part, own, is_pinned=bool(pins))):
                return False
        return True

    def _part_fits(
        self, part: RequestPart, options: Sequence[list[Place]], *, is_pinned: bool
    ) -> Work[bool]:
        if not part.offering.is_comparable:
            return (yield from self._choice(part, options)) is not None
        offer = None if is_pinned else self._offers.get(part.offering)
        if offer is None:
            offer = self._offer(part.offering, part.relations, options)
            if not is_pinned:
                if len(self._offers) >= MOST_KEPT:
                    self._offers.clear()
                self._offers[part.offering] = offer
        known = part.verdicts.of(offer)
        if known is None:
            known = (yield from self._choice(part, options)) is not None
            part.verdicts.add(offer, fits=known)
        return known

    def offer(self, partial: PartialRequest) -> Offer | None:
        """What decides, with the roots, whether the tree fits; None if offers do not tell that."""
        laid_out = self._layout(partial, NO_PINS)
        if laid_out is None or not partial.offering.is_comparable:
            return None
        return self._offer(partial.offering, partial.relations, laid_out[0])

    def _offer(
        self, offering: Offering, relations: KeptRelations, options: Sequence[list[Place]]
    ) -> Offer:
        traits = self._traits_of(relations.together) if relations.together else ()
        return offering.offer(self.form, options, self.supplies, traits)

    def assignment(self, partial: PartialRequest, pins: Pins = NO_PINS) -> Work[list[Place] | None]:
        """A place for each slot, if there are such places."""
        if partial.roots & ~self.roots_met:
            return None
        laid_out = self._layout(partial, pins)
        if laid_out is None:
            return None
        options, served = laid_out
        chosen = [found[0] for found in options]
        for numbers, part in partial.parts(served):
            places = yield from self._choice(part, [options[at] for at in numbers])
            if places is None:
                return None
            for at, place in zip(numbers, places, strict=True):
                chosen[at] = place
        return chosen

    def _layout(self, partial: PartialRequest, pins: Pins) -> Layout | None:
        """None if a slot has no options."""
        if pins:
            return self._laid_out(partial, pins)
        key = partial.slot_numbers
        if key not in self._layouts:
            if len(self._layouts) >= MOST_KEPT:
                self._layouts.clear()
            self._layouts[key] = self._laid_out(partial, pins)
        return self._layouts[key]

    def _laid_out(self, partial: PartialRequest, pins: Pins) -> Layout | None:
        options = []
        for slot in partial.slots:
            pin = pins.get((slot.group, slot.class_name)) if pins else None
            found = self.options(slot) if pin is None else self._only(pin, slot)
            if not found:
                return None
            options.append(found)
        if pins:
            return options, tuple(map(bits, options))
        return options, tuple(map(self._served.__getitem__, partial.slot_numbers))

    def _choice(
        self, part: RequestPart, options: Sequence[list[Place]]
    ) -> Work[list[Place] | None]:
        order = sorted(range(len(options)), key=lambda at: len(options[at]))
        steps = [options[at] for at in order]
        rules = self._rules(part.relations, [part.slots[at] for at in order], steps)
        if rules is None:
            return None
        for combination in Backtracking(range(len(order)), steps, rules).combinations():
            if combination is None:
                yield
                continue
            chosen = [0] * len(options)
            for at, place in zip(order, combination, strict=True):
                chosen[at] = place
            return chosen
        return None

    def _rules(
        self, relations: KeptRelations, slots: Sequence[PartialSlot], steps: Sequence[list[Place]]
    ) -> list[Rule] | None:
        """What the slots demand of each other; None if that plainly cannot be kept."""
        rules: list[Rule] = []
        suffixes = [slot.suffix for slot in slots]
        if relations.contended:
            rule = self._capacity_rule(relations.contended, slots, steps)
            if rule is None:
                return None
            rules.append(rule)
        if relations.isolated:
            isolated = [name in relations.isolated if name else None for name in suffixes]
            rules.append(IsolationRule(isolated, self._bits))
        for one in relations.affinities:
            rules.append(
                SubtreeRule(
                    [name in one.together for name in suffixes],
                    [name in one.apart for name in suffixes],
                    [sum(1 << place for place in options) for options in steps],
                    self.ancestry,
                    self._bits,
                )
            )
        if relations.together:
            giving = [
                not name and bool(slot.amounts or not slot.unasked)
                for slot, name in zip(slots, suffixes, strict=True)
            ]
            spread = giving if any(giving) else [not name for name in suffixes]
            rules.append(self._collective_rule(relations.together, spread, steps))
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
        meets = dict(enumerate(self._traits_of(together)))
        return CollectiveTraitsRule(spread, steps, meets, together.bit_count())

    def _traits_of(self, together: int) -> list[int]:
        """By place: which of the traits it has that are wanted of several together, a bit each."""
        numbers = self._conditions.demands.together
        wanted = [place for place in range(len(numbers)) if together >> place & 1]
        found = []
        for row in self.rows:
            has = self._conditions.row_bits(numbers, row)
            found.append(sum(1 << at for at, number in enumerate(wanted) if has >> number & 1))
        return found


def smallest_unit(held: Supply) -> int:
    """The least that can be had in one allocation, however much is free."""
    return -(-max(held.min_unit, 1) // held.step_size) * held.step_size
