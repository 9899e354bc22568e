"""Whom to move in any small world: no smaller set would do, and the moves do what they say.

Worlds have pools that several hosts share, aggregates, units, and providers of which more is in use
than there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.request import Request
from dovetail.engine.explain import FleetProblem
from dovetail.engine.moves import EXACT_MOVES, HeldRow, PlannedMoves, holders_of, planned_moves
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain import brute
from tests.engine.explain.test_explain import any_forest, any_request, done
from tests.engine.forest import CLASSES, SHARING, Forest, Inventory, Provider
from tests.engine.moves.test_moves import found
from tests.engine.strategies import examples, one_of

Held = dict[tuple[int, str], int]
"""By provider and class."""


@dataclass(frozen=True)
class World:
    forest: Forest
    held: dict[str, Held]
    """By consumer."""

    @property
    def rows(self) -> list[HeldRow]:
        return [
            (consumer, provider, CLASSES.index(name), amount)
            for consumer, held in self.held.items()
            for (provider, name), amount in held.items()
        ]

    def without(self, gone: Iterable[str]) -> Forest:
        stay = [held for consumer, held in self.held.items() if consumer not in gone]
        return with_use(self.forest, stay)


def with_use(forest: Forest, held: Iterable[Held]) -> Forest:
    used: Counter[tuple[int, str]] = Counter()
    for each in held:
        used.update(each)
    return Forest(
        replace(
            provider,
            inventories={
                name: replace(inventory, used=used[provider.id, name])
                for name, inventory in provider.inventories.items()
            },
        )
        for provider in forest
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Request] | None:
    """A request, and a forest in which consumers hold much of what it asks for.

    Only where nothing fits, and something would without them.
    """
    request = draw(any_request)
    forest = with_use(draw(any_forest), ())
    if request is None or not brute.how_many(forest, request):
        return None
    wanted = {name for group in request.groups for name in group.resources}
    consumers = [f"c{number}" for number in range(draw(one_of(3, 4, 5, 6)))]
    held: dict[str, Held] = {}
    for provider in forest:
        for name in sorted(wanted & set(provider.inventories)):
            room = capacity(provider.inventories[name])
            for part in draw(one_of((), (1.0,), (1.0,), (0.5, 0.5), (0.6, 0.6), (0.3, 0.6))):
                own = held.setdefault(draw(one_of(*consumers)), {})
                own[provider.id, name] = max(round(room * part), 1)
    world = World(with_use(forest, held.values()), held)
    return None if brute.how_many(world.forest, request) else (world, request)


any_world = worlds().filter(lambda found: found is not None)


def capacity(held: Inventory) -> int:
    return int((held.total - held.reserved) * held.ratio)


def smallest(world: World, request: Request) -> int | None:
    """The fewest consumers whose leaving gives a candidate, EXACT_MOVES at most."""
    for size in range(1, EXACT_MOVES + 1):
        for gone in combinations(world.held, size):
            if brute.how_many(world.without(gone), request):
                return size
    return None


@examples(300)
@given(any_world)
def test_no_smaller_set_would_do(asked: tuple[World, Request]) -> None:
    world, request = asked
    snapshot = loaded(world.forest)
    sets = found(snapshot, done(holders_of(snapshot, world.rows)), by_uuid(request))
    size = smallest(world, request)
    assert sets
    for one in sets:
        assert brute.how_many(world.without({each.consumer for each in one.leaving}), request)
        assert len(one.leaving) == size if size else len(one.leaving) > EXACT_MOVES
        assert one.smallest or not size


@examples(300)
@given(any_world)
def test_after_the_moves_the_request_fits_beside_all_who_moved(
    asked: tuple[World, Request],
) -> None:
    world, request = asked
    snapshot = loaded(world.forest)
    fleet = FleetProblem(snapshot, by_uuid(request))
    for one in found(snapshot, done(holders_of(snapshot, world.rows)), by_uuid(request)):
        plan = done(planned_moves(fleet, one, {}))
        assert plan is not None
        held = dict(world.held)
        for move in plan.moves:
            own = held.pop(move.holder.consumer)
            if not move.to:
                continue
            to = {(int(snapshot.provider_id.values[r]), n): a for (r, n), a in move.to.items()}
            check_place(world.forest, own, to)
            if not plan.swap:
                check_room(with_use(world.forest, held.values()), to)
            held[move.holder.consumer] = to
        check_outcome(world, plan, held, request)


def check_place(forest: Forest, own: Held, to: Held) -> None:
    """As much as before, of providers like those before."""
    assert sorted(to.values()) == sorted(own.values())
    assert Counter(name for _, name in to) == Counter(name for _, name in own)
    needed = [traits(forest.providers[at]) for at in {at for at, _ in own}]
    given_ = [traits(forest.providers[at]) for at in {at for at, _ in to}]
    assert all(any(some <= other for other in given_) for some in needed)


def traits(provider: Provider) -> frozenset[str]:
    return provider.traits - {SHARING}


def check_room(forest: Forest, to: Held) -> None:
    """There is room as things are, in an amount that can be had."""
    for (at, name), amount in to.items():
        held = forest.providers[at].inventories[name]
        assert held.used + amount <= capacity(held)
        assert held.min_unit <= amount <= held.max_unit
        assert amount % held.step_size == 0


def check_outcome(
    world: World, plan: PlannedMoves, held: dict[str, Held], request: Request
) -> None:
    after = with_use(world.forest, held.values())
    assert brute.how_many(after, request)
    moved: Sequence[str] = [move.holder.consumer for move in plan.moves if move.to]
    for consumer in moved:
        others = [each for name, each in held.items() if name != consumer]
        check_room(with_use(world.forest, others), held[consumer])
