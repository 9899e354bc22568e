"""When pressure is measured again."""

from __future__ import annotations

from unittest.mock import patch

from dovetail.core.request import Group, Request
from dovetail.engine.rank import PressureWatch, Typical
from dovetail.engine.rank.demand import demand_of
from dovetail.engine.rank.pressure.held import HeldDemand, held_demand_in_steps
from dovetail.engine.rank.pressure.watch import has_moved
from dovetail.engine.work import finished
from tests.engine.answers import loaded
from tests.engine.forest import Inventory, grow, node


def test_it_is_measured_again_when_more_than_a_hundredth_of_the_free_devices_moved() -> None:
    assert not has_moved([1000], [990])
    assert has_moved([1000], [989])
    assert has_moved([1000], [1011])


def test_of_several_classes_one_is_enough() -> None:
    assert has_moved([1000, 10], [1000, 9])


def test_where_nothing_was_free_anything_is_a_change() -> None:
    assert not has_moved([0], [0])
    assert has_moved([0], [1])


def test_a_class_of_which_more_than_all_is_in_use_is_not_measured_for_every_request() -> None:
    hosts = [node("over", FPGA=Inventory(4, used=1000)), node("free", FPGA=4), node("more", FPGA=4)]
    snapshot = loaded(grow(*hosts))
    typical = Typical(((Request(groups=(Group(suffix="_A", resources={"FPGA": 1}),)), 1),))
    held = finished(held_demand_in_steps(snapshot, typical, demand_of(snapshot, typical)))
    watch = PressureWatch()
    with patch.object(
        HeldDemand, "prices", autospec=True, side_effect=HeldDemand.prices
    ) as measure:
        for _ in range(3):
            finished(watch.prices(snapshot, held))
        assert measure.call_count == 1
        snapshot.update_usage([(2, 4, 2)])
        finished(watch.prices(snapshot, held))
        assert measure.call_count == 2, "a quarter of what is free was taken"
