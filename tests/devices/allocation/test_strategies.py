"""Which device and which node each strategy takes, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.strategies import Strategy
from tests.devices.fleets import device, inventory, selecting, units

WIDE, RARE, X, Y = selecting("a"), selecting("b"), selecting("x"), selecting("y")


def placed(
    kept: DeviceInventory, pods: Sequence[Sequence[DeviceRequest]], strategy: Strategy
) -> int:
    """Pods that found a place, one after the other, each on the node the strategy likes best."""
    count = 0
    for number, requests in enumerate(pods):
        fit = kept.fits(requests, strategy)
        if fit.any():
            scores = kept.scores(requests, strategy)
            row = max(fit.nonzero()[0].tolist(), key=lambda at: (scores[at], -at))
            found = kept.choose(f"n{row + 1}", requests, strategy)
            assert found is not None
            assert kept.hold(f"pod{number}", f"n{row + 1}", found) == ()
            count += 1
    return count


def test_first_fit_takes_the_first_and_likes_all_nodes_alike() -> None:
    kept = inventory([WIDE, RARE], [device("d1", "ab"), device("d2", "a")], [device("d1", "a")])
    assert units(kept.choose("n1", [DeviceRequest("a", 1)])) == {"a": {"d1": 1}}
    assert kept.scores([DeviceRequest("a", 1)], Strategy.FIRST_FIT).tolist() == [0, 0]


def test_best_fit_takes_the_device_fewest_classes_select_then_the_emptiest() -> None:
    devices = [device("d1", "ab"), device("d2", "a", units=3), device("d3", "a", units=2)]
    kept = inventory([WIDE, RARE], devices)
    assert units(kept.choose("n1", [DeviceRequest("a", 3)], Strategy.BEST_FIT)) == {
        "a": {"d3": 2, "d2": 1}
    }


def test_best_fit_likes_the_node_that_has_least_left() -> None:
    kept = inventory([WIDE], [device("d1", "a", units=3)], [device("d1", "a", units=2)])
    first, second = kept.scores([DeviceRequest("a", 2)], Strategy.BEST_FIT).tolist()
    assert 0 <= first < second <= 1


def test_spread_takes_the_device_and_the_node_that_have_most_left() -> None:
    kept = inventory(
        [WIDE], [device("d1", "a", units=2), device("d2", "a", units=3)], [device("d", "a")]
    )
    assert units(kept.choose("n1", [DeviceRequest("a", 2)], Strategy.SPREAD)) == {"a": {"d2": 2}}
    first, second = kept.scores([DeviceRequest("a", 1)], Strategy.SPREAD).tolist()
    assert 1 >= first > second >= 0


def test_scarce_aware_keeps_what_rare_classes_need() -> None:
    """d1 is the only device of a rare class; d2 is one of many of two common ones."""
    here = [device("d1", "ab"), device("d2", "a", x="", y="")]
    elsewhere = [device(f"d{at}", "a", x="", y="") for at in range(9)]
    kept = inventory([WIDE, RARE, X, Y], here, elsewhere)
    requests = [DeviceRequest("a", 1)]
    assert units(kept.choose("n1", requests, Strategy.SCARCE_AWARE)) == {"a": {"d2": 1}}
    assert units(kept.choose("n1", requests, Strategy.BEST_FIT)) == {"a": {"d1": 1}}


def test_scarce_aware_likes_the_node_that_spends_least() -> None:
    kept = inventory([WIDE, RARE], [device("d1", "ab")], [device("d1", "a")], [])
    first, second, third = kept.scores([DeviceRequest("a", 1)], Strategy.SCARCE_AWARE).tolist()
    assert (second, third) == (1, 0)
    assert 0 < first < 1


def test_scarcity_follows_the_fleet() -> None:
    """What was rare is so no longer once there is more of it than of the other."""
    both = [device("d1", "ab"), device("d2", "a", x="")]
    kept = inventory([WIDE, RARE, X], both, both[:1], both[1:])
    kept.set_node("n4", [device("d", x="")])
    requests = [DeviceRequest("a", 1)]
    assert units(kept.choose("n1", requests, Strategy.SCARCE_AWARE)) == {"a": {"d2": 1}}
    _, rare, common, _ = kept.scores(requests, Strategy.SCARCE_AWARE).tolist()
    assert rare < common
    kept.set_node("n4", [device(f"d{at}", "b") for at in range(5)])
    assert units(kept.choose("n1", requests, Strategy.SCARCE_AWARE)) == {"a": {"d1": 1}}
    _, common, rare, _ = kept.scores(requests, Strategy.SCARCE_AWARE).tolist()
    assert rare < common


def test_scarce_aware_places_more_pods_than_first_fit() -> None:
    """Twenty small requests, then ten that only the large devices can meet."""
    nodes = [[device("d1", "ab"), device("d2", "a"), device("d3", "a")] for _ in range(10)]
    pods = [[DeviceRequest("a", 1)]] * 20 + [[DeviceRequest("b", 1)]] * 10
    found = {
        each: placed(inventory([WIDE, RARE], *nodes), pods, each)
        for each in (Strategy.FIRST_FIT, Strategy.SCARCE_AWARE)
    }
    # First fit fills node after node, large devices included.
    assert found == {Strategy.FIRST_FIT: 23, Strategy.SCARCE_AWARE: 30}


def test_scarce_aware_places_more_pods_than_best_fit_where_many_common_classes_overlap() -> None:
    nodes = [[device("d1", "ab"), device("d2", "a", x="", y="")] for _ in range(4)]
    nodes.append([device(f"d{at}", "a", x="", y="") for at in range(8)])
    pods = [[DeviceRequest("a", 1)]] * 12 + [[DeviceRequest("b", 1)]] * 4
    found = {
        each: placed(inventory([WIDE, RARE, X, Y], *nodes), pods, each)
        for each in (Strategy.BEST_FIT, Strategy.SCARCE_AWARE)
    }
    assert found[Strategy.SCARCE_AWARE] == 16
    assert found[Strategy.BEST_FIT] < 16


@pytest.mark.parametrize("strategy", [each for each in Strategy if each.weighs])
def test_a_strategy_gives_way_where_its_liking_would_refuse(strategy: Strategy) -> None:
    """Whatever it likes for a, b can have but one device."""
    kept = inventory([WIDE, RARE], [device("d1", "ab"), device("d2", "a", units=3)])
    requests = [DeviceRequest("a", 3), DeviceRequest("b", 1)]
    assert units(kept.choose("n1", requests, strategy)) == {"a": {"d2": 3}, "b": {"d1": 1}}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["", "a", "b", "ab"]), max_size=3), min_size=1, max_size=3),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=8),
    st.sampled_from(list(Strategy)),
)
def test_scores_are_from_zero_to_one(
    flags: list[list[str]], classes: list[str], strategy: Strategy
) -> None:
    nodes = [[device(f"d{at}", each) for at, each in enumerate(one)] for one in flags]
    kept = inventory([WIDE, RARE], *nodes)
    requests = [DeviceRequest(each, 1) for each in classes[:2]]
    placed(kept, [[DeviceRequest(each, 1)] for each in classes[2:]], strategy)
    scores = kept.scores(requests, strategy)
    assert scores.shape == (len(nodes),)
    assert ((scores >= 0) & (scores <= 1)).all()
