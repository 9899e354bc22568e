"""Sets of pods on sets of nodes: packed, unpackable or undecided, and right in each."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.podfit.objects import Pod
from dovetail.podfit.packing import (
    STEPS,
    MostThatFit,
    Packed,
    PodsToPack,
    Undecided,
    Unpackable,
    most,
    pack,
)
from tests.podfit.building import REQUIRED, Fleet, Json, node, pod
from tests.podfit.packing.brute import Brute, Kinds, to_pack
from tests.podfit.packing.sets import fleet, kinds_by_amounts, kinds_with

SEEDS = st.integers(min_value=0, max_value=2**32)


def assert_right(a_fleet: Fleet, kinds: Kinds, budget: int | None = None) -> None:
    """As trying everything finds; with a budget it may be undecided, but not wrong."""
    brute = Brute(a_fleet, kinds)
    found = pack(a_fleet.table, to_pack(kinds), budget=STEPS if budget is None else budget)
    match found:
        case Packed(assignment=assignment):
            assert [sum(on.values()) for on in assignment] == [count for _, count in kinds]
            assert brute.accepts(assignment)
        case Unpackable():
            assert not brute.fits()
            assert brute.accepts(found.assignment)
            if found.is_most:
                assert (found.kind, found.fitting) == brute.first_too_many()
        case Undecided():
            assert budget is not None


@settings(max_examples=200, deadline=None)
@given(SEEDS)
def test_amounts_and_eligibility_equal_trying_everything(seed: int) -> None:
    rng = Random(seed)
    assert_right(fleet(rng), kinds_by_amounts(rng))


@pytest.mark.parametrize(
    "demands",
    [
        ("ports",),
        ("disks",),
        ("apart",),
        ("near",),
        ("spread",),
        ("apart", "near"),
        ("near", "spread"),
        ("apart", "near", "spread", "ports", "disks"),
    ],
    ids=" and ".join,
)
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_demands_of_each_other_equal_trying_every_order(
    demands: tuple[str, ...], seed: int
) -> None:
    rng = Random(seed)
    assert_right(fleet(rng), kinds_with(rng, *demands))


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(min_value=0, max_value=40))
def test_with_hardly_any_budget_it_is_undecided_but_never_wrong(seed: int, budget: int) -> None:
    rng = Random(seed)
    a_fleet = fleet(rng)
    kinds = rng.choice((kinds_by_amounts(rng), kinds_with(rng, "apart", "near", "spread")))
    assert_right(a_fleet, kinds, budget)


def test_a_budget_of_nothing_decides_nothing() -> None:
    found = pack(Fleet([node("a")]).table, to_pack([(pod("p"), 1)]), budget=0)
    assert found == Undecided(0)


def term(app: str, topology: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}


def packed(a_fleet: Fleet, *kinds: tuple[Pod, int]) -> tuple[Mapping[str, int], ...]:
    found = pack(a_fleet.table, to_pack(kinds))
    assert isinstance(found, Packed)
    return found.assignment


def unpackable(
    a_fleet: Fleet, *kinds: tuple[Pod, int], among: list[str] | None = None
) -> Unpackable:
    found = pack(a_fleet.table, to_pack(kinds), among=among)
    assert isinstance(found, Unpackable)
    return found


def test_pods_that_are_many_and_nodes_that_are_alike_are_counted_not_listed() -> None:
    thousand = Fleet([node(f"n{at}", cpu="64", memory="256Gi") for at in range(1000)])
    on = packed(
        thousand,
        (pod("large", requests={"cpu": "40", "memory": "128Gi"}), 1000),
        (pod("small", requests={"cpu": "8"}), 3000),
    )
    assert [sum(each.values()) for each in on] == [1000, 3000]
    assert set(on[0].values()) == {1}
    assert set(on[1].values()) == {3}


def test_what_first_fit_gets_wrong_is_searched_for() -> None:
    """Kind by kind both of the large go to one node, and four of the small do not to the other."""
    two = Fleet([node("a", cpu="10"), node("b", cpu="10")])
    large, small = packed(
        two, (pod("large", requests={"cpu": "4"}), 2), (pod("small", requests={"cpu": "3"}), 4)
    )
    assert large == {"a": 1, "b": 1}
    assert small == {"a": 2, "b": 2}


def test_the_blocking_node_is_named_with_what_it_is_short_of() -> None:
    three = Fleet([node("a", cpu="4"), node("b", cpu="7"), node("c", cpu="5")])
    found = unpackable(three, (pod("p", requests={"cpu": "4"}), 4))
    assert (found.kind, found.fitting, found.wanted, found.node) == (0, 3, 4, "b")
    assert found.words == (
        "3 of 4 fit; node b comes nearest to one more:"
        " Insufficient cpu: wants 4, free 3 of 7, 1 short"
    )


def test_the_first_kind_that_is_too_many_is_to_blame() -> None:
    one = Fleet([node("a", cpu="8")])
    found = unpackable(
        one,
        (pod("first", requests={"cpu": "3"}), 2),
        (pod("second", requests={"cpu": "1"}), 3),
        (pod("third", requests={"cpu": "1"}), 1),
    )
    assert (found.kind, found.fitting, found.wanted) == (1, 2, 3)
    assert found.assignment == ({"a": 2}, {"a": 2}, {})


def test_what_could_not_be_found_out_in_time_is_said_to_be_open() -> None:
    """That three are too many is seen at once; where two of them go is found without a search."""
    two = Fleet([node("a"), node("b")])
    kinds = to_pack([(pod("p", requests={"cpu": "3"}), 3), (pod("q"), 1)])
    found = pack(two.table, kinds, budget=0)
    assert isinstance(found, Unpackable)
    assert not found.is_most
    assert found.assignment == ({"a": 1, "b": 1}, {})
    assert found.words.startswith("at least 2 of 3 fit; node a comes nearest to one more: ")


def test_nodes_that_are_not_among_those_asked_for_take_nothing() -> None:
    two = Fleet([node("a"), node("b")])
    kind = (pod("p", requests={"cpu": "4"}), 1)
    found = pack(two.table, to_pack([kind]), among=["b", "unknown"])
    assert found == Packed(({"b": 1},))
    twice = unpackable(two, (kind[0], 2), among=["b"])
    assert twice.node == "b"
    assert twice.explanation.total == 1


def test_without_nodes_nothing_fits_and_nothing_blocks() -> None:
    found = unpackable(Fleet([]), (pod("p"), 1))
    assert found.node is None
    assert found.words == "0 of 1 fit: there is no node"


def test_a_node_that_no_pod_of_the_kind_may_go_to_says_why() -> None:
    labelled = Fleet([node("a", {"size": "s"})])
    found = unpackable(labelled, (pod("p", nodeSelector={"size": "l"}), 1))
    assert found.words.endswith("nodeSelector wants label size=l, which is 's'")


def test_a_full_node_blocks_not_an_empty_one_of_no_use() -> None:
    two = Fleet([node("full", {"size": "l"}), node("useless", {"size": "s"})])
    kind = pod("p", nodeSelector={"size": "l"}, requests={"cpu": "3"})
    assert unpackable(two, (kind, 2)).node == "full"


def test_no_pods_fit_anywhere() -> None:
    assert packed(Fleet([]), (pod("p"), 0)) == ({},)
    assert packed(Fleet([])) == ()


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_the_table_is_as_it_was(seed: int) -> None:
    rng = Random(seed)
    a_fleet = fleet(rng)
    kinds = rng.choice(
        (kinds_by_amounts(rng), kinds_with(rng, "apart", "near", "spread", "ports", "disks"))
    )
    asked = [
        each for each, _ in (*kinds, *kinds_with(rng, "apart", "near", "spread", "ports", "disks"))
    ]

    def seen() -> list[object]:
        return [(a_fleet.fitting(each), a_fleet.scores(each)) for each in asked]

    before = seen()
    first = pack(a_fleet.table, to_pack(kinds))
    assert seen() == before
    assert pack(a_fleet.table, to_pack(kinds)) == first


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from([(), ("apart",), ("near",), ("spread",)]))
def test_how_many_more_fit_equals_trying_every_number(seed: int, demands: tuple[str, ...]) -> None:
    rng = Random(seed)
    a_fleet, kinds = fleet(rng, nodes=2), kinds_with(rng, *demands)
    *beside, (kind, _) = [(each, min(count, 2)) for each, count in kinds]
    brute = Brute(a_fleet, [*beside, (kind, 7)])
    counts = [count for _, count in beside]
    numbers = [number for number in range(8) if brute.fits([*counts, number])]
    found = most(a_fleet.table, to_pack([(kind, 1)])[0].request, beside=to_pack(beside))
    if max(numbers, default=0) < 7:
        assert found.is_exact
        assert found.at_least == max(numbers, default=0)
    else:
        assert found.at_least >= 7


def test_a_forecast_of_a_thousand_nodes_is_exact() -> None:
    thousand = Fleet([node(f"n{at}", cpu="64", memory="256Gi") for at in range(1000)])
    small, large = to_pack(
        [(pod("s", requests={"cpu": "7"}), 1), (pod("l", requests={"cpu": "40"}), 1)]
    )
    assert most(thousand.table, small.request) == MostThatFit(9000, 9000)
    beside = [PodsToPack(large.request, 500)]
    assert most(thousand.table, small.request, beside=beside) == MostThatFit(6000, 6000)
    assert most(thousand.table, small.request, among=["n7"]) == MostThatFit(9, 9)


def test_nothing_more_fits_where_the_rest_does_not() -> None:
    kind, *beside = to_pack([(pod("p"), 1), (pod("q", requests={"cpu": "5"}), 1)])
    assert most(Fleet([node("a")]).table, kind.request, beside=beside) == MostThatFit(0, 0)


def test_more_may_fit_where_less_does_not() -> None:
    """The pods beside want one of the kind near."""
    app = pod(
        "app", affinity={"podAffinity": {REQUIRED: [term("cache", "kubernetes.io/hostname")]}}
    )
    cache = pod("cache", {"app": "cache"}, requests={"cpu": "2"})
    found = most(
        Fleet([node("a"), node("b")]).table,
        to_pack([(cache, 1)])[0].request,
        beside=to_pack([(app, 1)]),
    )
    assert found == MostThatFit(4, 4)
