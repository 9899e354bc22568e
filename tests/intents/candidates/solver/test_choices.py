"""The cheapest clusters of one unit: the greedy way on its parts is exact."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.intents.candidates.solver.choices import held_by
from dovetail.intents.candidates.solver.problem import AppUnit, UnitPart

CLUSTERS = 6
some = st.frozensets(st.integers(0, CLUSTERS - 1))


@st.composite
def units(draw: st.DrawFn) -> AppUnit:
    parts = tuple(
        UnitPart(draw(st.integers(1, 2)), bytes(draw(st.integers(0, 1)) for _ in range(CLUSTERS)))
        for _ in range(draw(st.integers(1, 3)))
    )
    return AppUnit(
        apps=(0,),
        mask=1,
        count=sum(part.count for part in parts),
        parts=parts,
        order=tuple(draw(st.permutations(range(CLUSTERS)))),
        requires=(),
        required_by=(),
    )


def serves(unit: AppUnit, held: tuple[int, ...]) -> bool:
    slots = [part.members for part in unit.parts for _ in range(part.count)]
    return any(
        all(members[cluster] for cluster, members in zip(order, slots, strict=True))
        for order in permutations(held)
    )


@settings(max_examples=200, deadline=None)
@given(units(), some, some)
def test_it_is_the_cheapest_of_all(
    unit: AppUnit, forced: frozenset[int], forbidden: frozenset[int]
) -> None:
    """By any costs that keep the order: so each of its clusters is no later than another's."""
    forbidden -= forced
    places = {cluster: place for place, cluster in enumerate(unit.order)}
    possible = [
        sorted(places[cluster] for cluster in held)
        for held in combinations(range(CLUSTERS), unit.count)
        if forced <= set(held) and not forbidden & set(held) and serves(unit, held)
    ]
    found = held_by(unit, forced, forbidden)
    if not possible:
        assert found is None
        return
    assert found is not None
    assert all(unit.parts[part].members[cluster] for cluster, part in found.items())
    ours = sorted(places[cluster] for cluster in found)
    assert ours in possible
    assert all(
        mine <= theirs for other in possible for mine, theirs in zip(ours, other, strict=True)
    )
