"""When pressure is measured again."""

from __future__ import annotations

from dovetail.engine.rank.pressure.watch import has_moved


def test_it_is_measured_again_when_more_than_a_hundredth_of_the_free_devices_moved() -> None:
    assert not has_moved([1000], [990])
    assert has_moved([1000], [989])
    assert has_moved([1000], [1011])


def test_of_several_classes_one_is_enough() -> None:
    assert has_moved([1000, 10], [1000, 9])


def test_where_nothing_was_free_anything_is_a_change() -> None:
    assert not has_moved([0], [0])
    assert has_moved([0], [1])
