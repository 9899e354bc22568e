"""Whom to move: no smaller set of consumers would do, and after the moves the request fits."""

from __future__ import annotations

import random
from itertools import combinations

import msgspec
import pytest

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.explain import FleetProblem, any_fits
from dovetail.engine.explain.fit_test.fits import fitting
from dovetail.engine.moves import (
    Holder,
    LeavingSearch,
    LeavingSet,
    PlannedMoves,
    Requests,
    holders_of,
    planned_moves,
)
from dovetail.engine.moves.worlds import SupposedFleet
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain.test_explain import done
from tests.engine.forest import CLASSES, SHARING, Inventory, Node, grow, node
from tests.engine.test_giving_way import MOST_CALLS, most_calls

Held = list[tuple[str, int, int, int]]


def small_world(seed: int) -> tuple[Snapshot, list[Holder], Request]:
    """Two or three hosts of two NUMA nodes with a card, and up to seven consumers on each."""
    dice = random.Random(seed)
    held: Held = []
    trees: list[Node] = []
    own = 0
    for host in range(dice.choice((2, 3))):
        free = {f"n{host}{at}": dice.choice((4, 6, 8)) for at in (0, 1)}
        used = dict.fromkeys(free, 0)
        card_used = 0
        first = own + 1
        for number in range(dice.randrange(2, 8)):
            at = dice.randrange(2)
            amount = dice.choice((1, 2, 2, 4))
            if used[f"n{host}{at}"] + amount > free[f"n{host}{at}"]:
                continue
            consumer = f"c{host}-{number}"
            used[f"n{host}{at}"] += amount
            held.append((consumer, first + (1 if at == 0 else 3), CLASSES.index("VCPU"), amount))
            if at == 1 and not card_used and dice.random() < 0.6:
                card_used = 1
                held.append((consumer, first + 4, CLASSES.index("FPGA"), 1))
        trees.append(
            node(
                f"h{host}",
                node(
                    f"n{host}0",
                    node(f"x{host}"),
                    VCPU=Inventory(free[f"n{host}0"], used=used[f"n{host}0"]),
                ),
                node(
                    f"n{host}1",
                    node(f"f{host}", FPGA=Inventory(1, used=card_used)),
                    VCPU=Inventory(free[f"n{host}1"], used=used[f"n{host}1"]),
                ),
            )
        )
        own += 5
    request = Request(
        groups=(
            Group(suffix="_VM", resources={"VCPU": dice.choice((3, 4, 6, 8))}),
            Group(suffix="_ACC", resources={"FPGA": 1}),
        ),
        affinities=(Affinity(frozenset(["_VM", "_ACC"])),) if dice.random() < 0.7 else (),
    )
    snapshot = loaded(grow(*trees))
    return snapshot, done(holders_of(snapshot, held)), request


def fits_without(snapshot: Snapshot, leaving: list[Holder], request: Request) -> bool:
    world = SupposedFleet(snapshot)
    for holder in leaving:
        world.free(holder.held)
    return done(any_fits(world.snapshot(), request))


def smallest_by_trying_all(
    snapshot: Snapshot, holders: list[Holder], request: Request
) -> int | None:
    for size in range(len(holders) + 1):
        if any(fits_without(snapshot, list(some), request) for some in combinations(holders, size)):
            return size
    return None


def found(snapshot: Snapshot, holders: list[Holder], request: Request) -> list[LeavingSet]:
    search = LeavingSearch(FleetProblem(snapshot, request))
    for some in fitting(snapshot.without_usage(), request):
        for tree in () if some is None else some.tolist():
            done(search.look_at(tree))
    short = set(search.short_trees)
    done(search.take([one for one in holders if short & trees_of(snapshot, one)]))
    done(search.smallest())
    return search.found


def trees_of(snapshot: Snapshot, holder: Holder) -> set[int]:
    return {int(snapshot.tree.values[row]) for row, _ in holder.held}


@pytest.mark.parametrize("seed", range(60))
def test_no_smaller_set_would_do(seed: int) -> None:
    snapshot, holders, request = small_world(seed)
    if fits_without(snapshot, [], request):
        return
    size = smallest_by_trying_all(snapshot, holders, request)
    sets = found(snapshot, holders, request)
    assert bool(sets) == (size is not None)
    for one in sets:
        assert fits_without(snapshot, list(one.leaving), request)
        if size is not None and size <= 3:
            assert len(one.leaving) == size
            assert one.smallest


@pytest.mark.parametrize("seed", range(60))
def test_after_the_moves_the_request_fits_and_nobody_lost_anything(seed: int) -> None:
    snapshot, holders, request = small_world(seed)
    if fits_without(snapshot, [], request):
        return
    for one in found(snapshot, holders, request):
        plan = done(planned_moves(FleetProblem(snapshot, request), one, {}))
        assert plan is not None
        world = SupposedFleet(snapshot)
        for move in plan.moves:
            assert not move.to or plan.swap or world.has_room(move.to), "in this order"
            world.free(move.holder.held)
            world.take(move.to)
            held = sorted(move.holder.held.values())
            assert not move.to or sorted(move.to.values()) == held
        assert done(any_fits(world.snapshot(), request))


def planned(
    snapshot: Snapshot, held: Held, request: Request, requests: Requests | None = None
) -> PlannedMoves:
    leaving = found(snapshot, done(holders_of(snapshot, held)), request)[0]
    plan = done(planned_moves(FleetProblem(snapshot, request), leaving, requests or {}))
    assert plan is not None
    return plan


VCPU = CLASSES.index("VCPU")
EIGHT = Request(groups=(Group(suffix="_VM", resources={"VCPU": 8}),))


def test_a_consumer_is_moved_to_a_host_that_has_room() -> None:
    snapshot = loaded(
        grow(node("h1", VCPU=Inventory(8, used=4)), node("h2", VCPU=Inventory(6, used=2)))
    )
    plan = planned(snapshot, [("a", 1, VCPU, 4), ("b", 2, VCPU, 2)], EIGHT)
    (move,) = plan.moves
    assert (move.holder.consumer, move.to, plan.swap) == ("a", {(1, "VCPU"): 4}, False)


def test_a_consumer_that_fits_nowhere_else_has_to_leave() -> None:
    snapshot = loaded(grow(node("h1", VCPU=Inventory(8, used=4)), node("h2", VCPU=2)))
    (move,) = planned(snapshot, [("a", 1, VCPU, 4)], EIGHT).moves
    assert not move.to


def test_a_place_has_the_traits_of_the_one_that_is_left() -> None:
    fast = ["LARGE"]
    snapshot = loaded(
        grow(
            node("h1", VCPU=Inventory(8, used=4), traits=fast),
            node("h2", VCPU=4),
            node("h3", VCPU=4, traits=fast),
        )
    )
    (move,) = planned(snapshot, [("a", 1, VCPU, 4)], EIGHT).moves
    assert move.to == {(2, "VCPU"): 4}


def test_of_two_providers_the_one_above_stays_above() -> None:
    """As much is free on the second host the other way round; only the third is like the first."""
    snapshot = loaded(
        grow(
            node("h1", node("n1", VCPU=Inventory(8, used=2)), VCPU=Inventory(8, used=1)),
            node("h2", node("n2", VCPU=1), VCPU=2),
            node("h3", node("n3", VCPU=2), VCPU=1),
        )
    )
    held: Held = [("a", 1, VCPU, 1), ("a", 2, VCPU, 2)]
    groups = (Group(suffix="_X", resources={"VCPU": 8}), Group(suffix="_Y", resources={"VCPU": 8}))
    (move,) = planned(snapshot, held, Request(groups=groups)).moves
    assert move.to == {(4, "VCPU"): 1, (5, "VCPU"): 2}


def test_the_request_makes_way_where_it_has_another_place() -> None:
    """The request finds the first node first; but that is the only one that takes the consumer."""
    snapshot = loaded(
        grow(
            node(
                "h1",
                node("n0", VCPU=Inventory(4, used=3), traits=["LARGE"]),
                node("n1", VCPU=Inventory(4, used=3)),
                node("n2", VCPU=3, traits=["NET1"]),
            )
        )
    )
    held: Held = [("a", 2, VCPU, 3), ("a", 3, VCPU, 3)]
    groups = (Group(suffix="_VM", resources={"VCPU": 3}, forbidden=frozenset(["NET1"])),)
    plan = planned(snapshot, held, Request(groups=groups))
    (move,) = plan.moves
    assert move.to == {(1, "VCPU"): 3, (3, "VCPU"): 3}
    assert not plan.swap, "what a consumer holds itself is not in its way"


def test_a_consumer_leaves_the_only_place_of_another_to_it() -> None:
    snapshot = loaded(
        grow(
            node(
                "h1",
                node("n0", VCPU=Inventory(4, used=4)),
                node("n1", VCPU=Inventory(4, used=4), traits=["LARGE"]),
            ),
            node("h2", VCPU=4, traits=["LARGE"]),
            node("h3", VCPU=4),
        )
    )
    held: Held = [("a", 2, VCPU, 4), ("b", 3, VCPU, 4)]
    groups = tuple(Group(suffix=f"_{name}", resources={"VCPU": 4}) for name in "XY")
    plan = planned(snapshot, held, Request(groups=groups))
    assert {move.holder.consumer: move.to for move in plan.moves} == {
        "a": {(4, "VCPU"): 4},
        "b": {(3, "VCPU"): 4},
    }


def test_a_place_is_what_the_consumer_asked_for_where_that_is_on_record() -> None:
    """Not the nearest place that looks the same, but the one in the aggregate it asked for."""
    snapshot = loaded(
        grow(
            node("h1", VCPU=Inventory(8, used=4), traits=["LARGE"], aggregates=["a"]),
            node("h2", VCPU=4, traits=["LARGE"], aggregates=["b"]),
            node("h3", VCPU=4, aggregates=["a"]),
        )
    )
    held: Held = [("a", 1, VCPU, 4)]
    (group,) = by_uuid(
        Request(groups=(Group(resources={"VCPU": 4}, member_of=(frozenset(["a"]),)),))
    ).groups
    asked = Request(groups=(msgspec.structs.replace(group, in_tree=snapshot.uuid(0)),))
    (like,) = planned(snapshot, held, EIGHT).moves
    (recorded,) = planned(snapshot, held, EIGHT, {"a": asked}).moves
    assert like.to == {(1, "VCPU"): 4}
    assert recorded.to == {(2, "VCPU"): 4}


def test_larger_sets_have_no_part_that_would_do() -> None:
    held: Held = [(f"c{at}", 1, VCPU, 1) for at in range(8)]
    snapshot = loaded(grow(node("h1", VCPU=Inventory(8, used=8))))
    request = Request(groups=(Group(suffix="_VM", resources={"VCPU": 5}),))
    (one,) = found(snapshot, done(holders_of(snapshot, held)), request)
    assert len(one.leaving) == 5
    assert one.smallest, "the bound says that five have to leave"


def test_two_consumers_that_have_to_change_places_swap() -> None:
    """Each takes what the other frees, and neither has room before the other is gone."""
    memory = CLASSES.index("MEMORY_MB")
    left = node("left", VCPU=Inventory(4, used=2), MEMORY_MB=Inventory(2, used=1), FPGA=1)
    right = node("right", VCPU=Inventory(2, used=1), MEMORY_MB=Inventory(4, used=2), VF=1)
    snapshot = loaded(grow(node("host", left, right)))
    held: Held = [("a", 2, VCPU, 2), ("a", 2, memory, 1), ("b", 3, VCPU, 1), ("b", 3, memory, 2)]
    request = Request(
        groups=(
            Group(suffix="_X", resources={"VCPU": 3, "FPGA": 1}),
            Group(suffix="_Y", resources={"MEMORY_MB": 3, "VF": 1}),
        )
    )
    plan = planned(snapshot, held, request)
    assert plan.swap
    assert plan.leaving.smallest
    assert {move.holder.consumer: move.to for move in plan.moves} == {
        "a": {(2, "VCPU"): 2, (2, "MEMORY_MB"): 1},
        "b": {(1, "VCPU"): 1, (1, "MEMORY_MB"): 2},
    }
    first, second = plan.moves
    assert (first.after, second.after) == ((), (first.holder.consumer,))


def test_looking_at_a_host_gives_way_at_each_group() -> None:
    snapshot = loaded(grow(node("h1", VCPU=Inventory(200, used=150))))
    groups = tuple(Group(suffix=f"_{at}", resources={"VCPU": 1}) for at in range(100))
    search = LeavingSearch(FleetProblem(snapshot, Request(groups=groups)))
    assert sum(1 for _ in search.look_at(0)) >= 100


@pytest.mark.parametrize("amount", [1, 40])
def test_those_who_share_a_pool_are_looked_at_in_small_steps(amount: int) -> None:
    hosts, each = 100, 60
    disk = CLASSES.index("DISK_GB")
    sizes = {f"c{at}": 1 + at % 1000 for at in range(hosts * each)}
    full = Inventory(sum(sizes.values()), used=sum(sizes.values()))
    pool = node("pool", DISK_GB=full, traits=[SHARING], aggregates=["a"])
    held_vcpu = Inventory(each, used=each)
    own = [node(f"h{at}", VCPU=held_vcpu, aggregates=["a"]) for at in range(hosts)]
    snapshot = loaded(grow(pool, *own))
    held = [(name, 2 + at // each, VCPU, 1) for at, name in enumerate(sizes)]
    held += [(name, 1, disk, size) for name, size in sizes.items()]
    assert most_calls(holders_of(snapshot, held)) < MOST_CALLS
    request = Request(groups=(Group(resources={"VCPU": amount, "DISK_GB": 700 * amount}),))
    search = LeavingSearch(FleetProblem(snapshot, request))
    for tree in range(1, hosts + 1):
        assert most_calls(search.look_at(tree)) < MOST_CALLS
    assert most_calls(search.take(done(holders_of(snapshot, held)))) < MOST_CALLS
    assert most_calls(search.smallest()) < MOST_CALLS
    assert search.found
    assert all(len(one.leaving) >= amount for one in search.found)
