"""Whom to move in any small world: no smaller set would do, and the moves do what they say.

Worlds have pools that several hosts share, aggregates, units, and providers of which more is in use
than there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec
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
from tests.engine.oracle import Candidate, candidates
from tests.engine.strategies import examples, one_of

Held = dict[tuple[int, str], int]
"""By provider and class."""
MOST_CLAIMS = 6


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


def without_traits(forest: Forest) -> Forest:
    """A place of which nothing is known but what it has is like many others."""
    return Forest(replace(each, traits=each.traits & {SHARING}) for each in forest)


def twice(request: Request | None) -> Request:
    """Larger than what is left where consumers still have room."""
    assert request
    groups = [
        msgspec.structs.replace(one, resources={n: 2 * a for n, a in one.resources.items()})
        for one in request.groups
    ]
    return msgspec.structs.replace(request, groups=tuple(groups))


large_requests = st.one_of(any_request, any_request.map(twice), any_request.map(twice))
parts = one_of(
    *((), (0.2,), (0.3,), (0.5,), (0.2, 0.2), (0.2, 0.5), (0.5, 0.5)),
    *((1.0,), (0.6, 0.6)),
)
"""Of what a provider has of a class: in use by one consumer, or by two; or by more than it has."""


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Request] | None:
    """A request, and a forest in which consumers hold much of what it asks for.

    Only where nothing fits, and something would without them.
    """
    request = draw(large_requests)
    assert request
    forest = with_use(draw(any_forest), ())
    if draw(st.booleans()):
        forest = without_traits(forest)
    if not brute.how_many(forest, request):
        return None
    wanted = {name for group in request.groups for name in group.resources}
    consumers = [f"c{number}" for number in range(draw(one_of(3, 4, 5, 6)))]
    held: dict[str, Held] = {}
    for provider in forest:
        for name in sorted(wanted & set(provider.inventories)):
            room = capacity(provider.inventories[name])
            for part in draw(parts):
                own = held.setdefault(draw(one_of(*consumers)), {})
                own[provider.id, name] = max(round(room * part), 1)
    world = World(with_use(forest, held.values()), held)
    return None if brute.how_many(world.forest, request) else (world, request)


any_world = worlds().filter(lambda found: found is not None)


def capacity(held: Inventory) -> int:
    return int((held.total - held.reserved) * held.ratio)


@st.composite
def claimed_worlds(draw: st.DrawFn) -> tuple[World, Request, dict[str, Request]] | None:
    """The same where each consumer holds a candidate of a request that is on record.

    The request itself is claimed as often as it fits, after another was a few times.
    """
    forest = with_use(draw(any_forest), ())
    request, other = draw(any_request), draw(any_request)
    assert request
    assert other
    world = World(forest, {})
    requests: dict[str, Request] = {}
    for asked in (*[other] * draw(one_of(1, 2)), *[request] * MOST_CLAIMS):
        found = sorted(candidates(world.forest, asked), key=repr)
        if found:
            consumer = f"c{len(requests)}"
            requests[consumer] = asked
            held = {**world.held, consumer: held_by(forest, draw(one_of(*found[:4])))}
            world = World(with_use(forest, held.values()), held)
    if not brute.how_many(forest, request) or brute.how_many(world.forest, request):
        return None
    return world, request, requests


def held_by(forest: Forest, candidate: Candidate) -> Held:
    found: Held = {}
    for name, class_name, amount in candidate.allocations:
        provider = forest.named(name)
        assert provider
        found[provider.id, class_name] = amount
    return found


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


@examples(150)
@given(claimed_worlds().filter(lambda found: found is not None))
def test_a_place_is_a_candidate_of_what_the_consumer_asked_for(
    asked: tuple[World, Request, dict[str, Request]],
) -> None:
    world, request, on_record = asked
    snapshot = loaded(world.forest)
    fleet = FleetProblem(snapshot, by_uuid(request))
    requests = {consumer: by_uuid(one) for consumer, one in on_record.items()}
    for one in found(snapshot, done(holders_of(snapshot, world.rows)), by_uuid(request)):
        plan = done(planned_moves(fleet, one, requests))
        assert plan is not None
        held = dict(world.held)
        for move in plan.moves:
            del held[move.holder.consumer]
            if move.to:
                held[move.holder.consumer] = {
                    (int(snapshot.provider_id.values[r]), n): a for (r, n), a in move.to.items()
                }
        assert brute.how_many(with_use(world.forest, held.values()), request)
        for move in plan.moves:
            consumer = move.holder.consumer
            others = [each for name, each in held.items() if name != consumer]
            beside = with_use(world.forest, others)
            found_by_all = candidates(beside, in_any_tree(on_record[consumer]))
            places = [held_by(world.forest, each) for each in found_by_all]
            if consumer in held:
                assert held[consumer] in places
            elif len(plan.moves) == 1:
                host = int(snapshot.provider_id.values[plan.root])
                for place in places:
                    after = with_use(world.forest, [*others, place])
                    assert not brute.fits(after, after.providers[host], request)


def in_any_tree(request: Request) -> Request:
    groups = tuple(msgspec.structs.replace(group, in_tree=None) for group in request.groups)
    return msgspec.structs.replace(request, groups=groups)


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
