"""What a tree lacks, group by group: a bound on the changes that it needs.

`conflicts` asks it before each fit test. A group needs what one of its places leaves unmet to be
dropped, or its amounts. Many trees lack the same, so bounds are kept by what is lacking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dovetail.engine.explain.fit_test.demands import Demands, Kept
from dovetail.engine.explain.fit_test.parts import bits
from dovetail.engine.explain.fit_test.tree_problem import TreeProblem

GroupLack = tuple[Kept, frozenset[Kept]]
"""The amounts of a group, and what places leave unmet of it: one or the other has to go."""

PlacesSeen = tuple[tuple[int, ...], frozenset[int]]
"""Constraints, and which of them places meet: a bit each."""


class Lacks:
    """Bounds of the trees of one request."""

    def __init__(self, demands: Demands) -> None:
        self._demands = demands
        self._of_tree: dict[int, tuple[GroupLack, ...]] = {}
        self._of_places_seen: dict[PlacesSeen, frozenset[Kept]] = {}
        self._bounds: dict[tuple[GroupLack, ...], dict[Kept, int]] = {}

    def fewest_changes(self, tree: TreeProblem, dropped: Kept) -> int:
        """At least so many constraints have to change beside those dropped."""
        lacks = self._of_tree.get(tree.tree)
        if lacks is None:
            lacks = self._of_tree[tree.tree] = tuple(self._find(tree))
        bounds = self._bounds.setdefault(lacks, {})
        found = bounds.get(dropped)
        if found is None:
            found = bounds[dropped] = sum(
                min((one & ~dropped).bit_count() for one in (amounts, *unmet))
                for amounts, unmet in lacks
            )
        return found

    def _find(self, tree: TreeProblem) -> Iterator[GroupLack]:
        demands = self._demands
        unmet = [at for place, at in enumerate(demands.roots) if not tree.roots_met >> place & 1]
        if unmet:
            yield bits(unmet), frozenset([bits(unmet)])
        for number, group in enumerate(demands.groups):
            # Of the unsuffixed group the classes may come from different providers.
            single = [{name: at} for name, at in group.amounts.items()]
            slots = [group.amounts] if group.suffix else single
            lacking = [self._of_places(tree, number, amounts) for amounts in slots]
            if lacking and 0 not in (most := max(lacking, key=fewest_bits)):
                yield demands.amount_bits[number], most

    def _of_places(
        self, tree: TreeProblem, number: int, amounts: Mapping[str, int]
    ) -> frozenset[Kept]:
        group = self._demands.groups[number]
        numbers = (*amounts.values(), *group.conditions)
        # In a suffixed group a row meets what it meets, whatever its root says.
        seen = (
            tree.met_by_rows(numbers)
            if group.suffix
            else self._met_by_places(tree, number, [*amounts.values()])
        )
        key = (numbers, seen)
        known = self._of_places_seen.get(key)
        if known is not None:
            return known
        found = {bits(at for bit, at in enumerate(numbers) if not met >> bit & 1) for met in seen}
        # A place that leaves more unmet than another bounds nothing.
        known = self._of_places_seen[key] = frozenset(
            one for one in found if not any(less != one and less & one == less for less in found)
        )
        return known

    def _met_by_places(
        self, tree: TreeProblem, number: int, amounts: Sequence[int]
    ) -> frozenset[int]:
        """Bits of the amounts that places have room for, and of what they meet, as each speaks."""
        wanted = [self._demands.constraints[at] for at in amounts]
        return frozenset(
            bits(
                bit for bit, one in enumerate(wanted) if tree.has_room(place, one.name, one.amount)
            )
            | told << len(wanted)
            for place, ways in zip(tree.places, tree.met(number), strict=True)
            for told in ways
        )


def fewest_bits(sets: frozenset[Kept]) -> int:
    return min(map(int.bit_count, sets))
