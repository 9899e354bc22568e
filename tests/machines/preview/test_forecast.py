"""How many more units of each type really fit, beside the stock and all that runs."""

from __future__ import annotations

from typing import Any

from dovetail.machines.preview.forecast import TypeForecast, forecast
from dovetail.podfit.packing import MostThatFit
from tests.machines.lab import Lab, kind, small


def forecasts(lab: Lab) -> dict[str, TypeForecast]:
    return {each.type: each for each in forecast(lab.snapshot())}


def exactly(count: int) -> MostThatFit:
    return MostThatFit(count, count)


def test_what_is_sold_held_and_possible_beside() -> None:
    lab = Lab(small(kind("small", available=3), nodes={"n1": "small", "n2": "small"}))
    lab.sold("train", "small")
    (found,) = forecast(lab.snapshot())
    assert (found.maximum, found.sold, found.held, found.short) == (3, 1, 2, 0)
    assert found.more == found.more_if_idle == exactly(5)


def test_pods_of_others_leave_less_room_and_the_blocking_node_is_named() -> None:
    lab = Lab(small(kind("small", available=2), nodes={"n1": "small", "n2": "small"}))
    lab.occupy("n1", cpu="6")
    lab.occupy("n2", cpu="14")
    (found,) = forecast(lab.snapshot())
    assert (found.more, found.more_if_idle) == (exactly(0), exactly(6))
    assert (found.node, found.words) == (
        "n1",
        "Insufficient cpu: wants 4, free 2 of 16, 2 short",
    )


def test_sleepers_move_where_that_makes_room() -> None:
    spec = small(
        kind("small", available=4),
        kind("large", cpu=16, available=0),
        nodes={"n1": ["small", "large"], "n2": ["small", "large"]},
        severalTypesPerNode=True,
    )
    lab = Lab(spec)
    # Three on one node and one on the other: a large unit fits if that one moves.
    for ordinal, place in enumerate(("n1", "n1", "n1", "n2")):
        uid = f"small-general-machine-{ordinal}"
        lab.move(uid, place)
    assert forecasts(lab)["large"].more == exactly(1)


def test_stock_that_is_short_leaves_nothing_and_says_so() -> None:
    lab = Lab(small(kind("small", cpu=8, available=1), nodes={"n1": "small"}))
    lab.occupy("n1", cpu="4")
    lab.set_spec(small(kind("small", cpu=8, available=3), nodes={"n1": "small"}))
    (found,) = forecast(lab.snapshot())
    assert (found.held, found.short, found.more) == (1, 2, exactly(0))
    assert found.words == (
        "2 of small find no room themselves: Insufficient cpu: wants 8, free 4 of 16, 4 short"
    )


def test_children_are_counted_by_their_own_size() -> None:
    half: dict[str, Any] = kind(
        "half", available=2, spec={"dependence": {"parent": "whole", "availableRatio": 0.5}}
    )
    lab = Lab(small(kind("whole", cpu=8, available=1), half, nodes={"n1": "whole"}))
    lab.sold("part", "half")
    lab.stock()
    found = forecasts(lab)
    assert (found["half"].sold, found["half"].held, found["half"].more) == (1, 1, exactly(2))
    assert (found["whole"].sold, found["whole"].held, found["whole"].more) == (0, 0, exactly(1))


def test_a_type_without_nodes() -> None:
    spec = small(kind("small"), kind("none"), nodes={"n1": "small"})
    spec["nodePool"][0]["mode"] = "maintenance"
    found = forecasts(Lab(spec))
    assert (found["none"].short, found["none"].words) == (0, "no node of the pool serves it")
    assert (found["small"].short, found["small"].words) == (2, "no node that serves it is ready")
    assert found["small"].more == exactly(0)


def test_what_would_take_too_long_is_told_as_a_range() -> None:
    lab = Lab(small(kind("small", available=2), nodes={"n1": "small", "n2": "small"}))
    (found,) = forecast(lab.snapshot(), budget=0)
    assert found.more.at_least <= 6 <= found.more.at_most
    assert not found.more.is_exact
