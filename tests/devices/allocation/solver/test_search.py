"""An assignment is refused only if trying everything finds none either."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.problem import Bundle, DeviceDemand, DevicePlace
from dovetail.devices.allocation.solver.search import SearchGivenUp, assign
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.documents import DeviceClass
from tests.devices import brute_force, fleets
from tests.devices.fleets import device, inventory, nested, selecting

A, B, C = 1, 2, 4


def place(mask: int, free: int = 1, shape: int = 0, **attributes: str) -> DevicePlace:
    return DevicePlace(shape, mask, attributes, free)


def first_fit(places: list[DevicePlace], *bundles: DeviceDemand | Bundle) -> object:
    return assign(places, [as_bundle(each) for each in bundles], cheapest=False)


def as_bundle(bundle: DeviceDemand | Bundle) -> Bundle:
    return Bundle(1, (bundle,)) if isinstance(bundle, DeviceDemand) else bundle


def single(bit: int, count: int) -> Bundle:
    return Bundle(1, (DeviceDemand(bit, count),), same=None)


def agreeing(count: int, *demands: DeviceDemand, same: str = "numa") -> Bundle:
    return Bundle(count, demands, same=(same,))


def test_first_fit_takes_devices_in_order() -> None:
    places = [place(A | B, 2), place(A, 2), place(B, 2)]
    assert first_fit(places, DeviceDemand(A, 3), DeviceDemand(B, 1)) == [{0: 2, 1: 1}, {2: 1}]


def test_nobody_moves_over_who_need_not() -> None:
    """The second could have the first device if the first moved; it takes the third instead."""
    places = [place(A | B), place(A), place(B)]
    assert first_fit(places, DeviceDemand(A, 1), DeviceDemand(B, 1)) == [{0: 1}, {2: 1}]


def test_a_demand_moves_over_for_one_that_has_no_other_device() -> None:
    assert first_fit([place(A | B), place(A)], DeviceDemand(A, 1), DeviceDemand(B, 1)) == [
        {1: 1},
        {0: 1},
    ]


def test_several_move_over_one_after_the_other() -> None:
    places = [place(A | B | C), place(A | B), place(A)]
    met = first_fit(places, DeviceDemand(A, 1), DeviceDemand(B, 1), DeviceDemand(C, 1))
    assert met == [{2: 1}, {1: 1}, {0: 1}]


def test_units_move_over_in_bulk() -> None:
    places = [place(A | B, 1_000_000), place(A, 1_000_000)]
    met = first_fit(places, DeviceDemand(A, 1_000_000), DeviceDemand(B, 1_000_000))
    assert met == [{1: 1_000_000}, {0: 1_000_000}]


def test_the_most_preferred_devices_are_used_even_if_somebody_has_to_move() -> None:
    places = [place(A | B), place(A), place(B)]
    bundles = [as_bundle(DeviceDemand(A, 1)), as_bundle(DeviceDemand(B, 1))]
    met = assign(places, bundles, cheapest=True)
    assert met == [{1: 1}, {0: 1}]


def test_a_device_that_lacks_a_key_agrees_with_none() -> None:
    assert first_fit([place(A)], agreeing(1, DeviceDemand(A, 1))) is None


def test_many_alike_devices_cost_no_more_than_few() -> None:
    """Asking one too many of a hundred alike devices would take for ever to try out."""
    places = [place(A, 3, numa=str(number % 10)) for number in range(100)]
    assert first_fit(places, *[single(A, 2)] * 101) is None
    assert first_fit(places, *[agreeing(1, DeviceDemand(A, 16))] * 16) is None


def test_many_sets_cost_no_more_than_few() -> None:
    """Neither time nor depth follows their number."""
    places = [place(A, 2 * 10**6 + 1, numa=numa) for numa in "01"]
    pairs = agreeing(1_500_000, DeviceDemand(A, 2))
    assert first_fit(places, pairs) == [{0: 2_000_000, 1: 1_000_000}]
    within = Bundle(
        700_000, (DeviceDemand(A, 1),), (Bundle(2, (DeviceDemand(A, 1),), same=None),), ("numa",)
    )
    assert first_fit(places, within) == [{0: 2_000_001, 1: 99_999}]


def test_bins_that_can_be_packed_in_few_ways_only() -> None:
    """Each large demand has to leave room for a small one."""
    places = [place(A, 100 + number, shape=number) for number in range(14)]
    demands = [single(A, 51 + number) for number in range(14)] + [single(A, 47)] * 14
    found = first_fit(places, *demands)
    assert isinstance(found, list)
    assert {len(taken) for taken in found} == {1}
    for at, each in enumerate(places):
        assert sum(taken.get(at, 0) for taken in found) <= each.free


def test_a_fragmented_node_is_seen_to_be_too_small_at_once() -> None:
    """Enough cores in all, of eight NUMA nodes that all have another number left."""
    left = (3, 5, 7, 2, 9, 4, 11, 6)
    places = [place(A, free, numa=str(at)) for at, free in enumerate(left)]
    fours = agreeing(5, DeviceDemand(A, 4))
    assert first_fit(places, fours, agreeing(3, DeviceDemand(A, 6))) is not None
    bundles = [fours, agreeing(4, DeviceDemand(A, 6))]
    assert assign(places, bundles, cheapest=False, most_steps=200) is None


def test_what_nobody_can_wait_for_is_given_up_and_not_called_impossible() -> None:
    """Bin packing: no two devices are alike, and nothing is left over but what nobody needs."""
    chance = random.Random(4)
    places, demands = [], []
    for number in range(20):
        parts = [chance.randrange(20, 60) for _ in range(4)]
        places.append(place(A, sum(parts), shape=number))
        demands += [single(A, part) for part in parts]
    with pytest.raises(SearchGivenUp):
        first_fit(places, *demands)


# What is pruned as alike, and what must not be


def test_a_value_that_has_a_set_already_is_not_like_one_that_is_untouched() -> None:
    places = [place(A, numa=numa) for numa in "012012"]
    found = first_fit(places, *[agreeing(1, DeviceDemand(A, 2))] * 3)
    assert found == [{0: 1, 3: 1}, {1: 1, 4: 1}, {2: 1, 5: 1}]


def test_values_that_differ_in_what_another_bundle_looks_at_are_not_alike() -> None:
    places = [place(A, numa=numa, slot=slot) for numa, slot in ("00", "00", "10", "11")]
    found = first_fit(
        places, agreeing(1, DeviceDemand(A, 2)), agreeing(1, DeviceDemand(A, 2), same="slot")
    )
    assert found == [{2: 1, 3: 1}, {0: 1, 1: 1}]


def test_values_that_differ_in_devices_a_bundle_has_no_use_for_are_not_alike() -> None:
    """Only on numa 0 has the first wish another device to move to."""
    places = [place(A | B, 4, numa="1"), place(A | B, 4, numa="0"), place(A, 4, numa="0")]
    first = agreeing(2, DeviceDemand(A, 2), DeviceDemand(B, 2))
    found = first_fit(places, first, agreeing(1, DeviceDemand(B, 2)))
    assert found == [{0: 4, 1: 2, 2: 2}, {1: 2}]


def test_bundles_of_different_families_do_not_wait_for_each_other() -> None:
    places = [place(A | B if numa == "1" else A, numa=numa) for numa in "0101"]
    places += [place(C, numa=numa) for numa in "2323"]
    found = first_fit(places, *(agreeing(1, DeviceDemand(bit, 2)) for bit in (B, A, C, C)))
    assert found == [{1: 1, 3: 1}, {0: 1, 2: 1}, {4: 1, 6: 1}, {5: 1, 7: 1}]


def test_single_demands_of_different_kinds_do_not_wait_for_each_other() -> None:
    places = [place(A, 2, 0), place(A | B, 2, 1), place(C, 3, 2), place(C, 3, 2)]
    demands = [single(bit, 2) for bit in (B, A, C, C)]
    assert first_fit(places, *demands) == [{1: 2}, {0: 2}, {2: 2}, {3: 2}]


@st.composite
def plain_problems(draw: st.DrawFn) -> tuple[list[DevicePlace], list[DeviceDemand]]:
    masks = st.integers(1, 7)
    places = draw(st.lists(st.builds(place, masks, st.integers(1, 2)), min_size=1, max_size=4))
    demands = st.builds(DeviceDemand, st.sampled_from([A, B, C]), st.integers(1, 2))
    return places, draw(st.lists(demands, min_size=1, max_size=3))


def sets_used(places: list[DevicePlace], demands: list[DeviceDemand]) -> set[tuple[int, ...]]:
    """Every multiset of places that meets the demands, unit by unit."""
    found: set[tuple[tuple[int, ...], tuple[int, ...]]] = {((), tuple(p.free for p in places))}
    for bit in [each.bit for each in demands for _ in range(each.count)]:
        found = {
            (tuple(sorted((*used, at))), (*left[:at], left[at] - 1, *left[at + 1 :]))
            for used, left in found
            for at, each in enumerate(places)
            if left[at] and each.mask & bit
        }
    return {used for used, _ in found}


@settings(max_examples=100, deadline=None)
@given(plain_problems(), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_devices_used_are_the_best_that_can_be(
    drawn: tuple[list[DevicePlace], list[DeviceDemand]], costs: list[int]
) -> None:
    places, demands = drawn
    price = sorted(costs)
    possible = sets_used(places, demands)
    met = assign(places, [as_bundle(each) for each in demands], cheapest=True)
    assert (met is not None) == bool(possible)
    if met is not None:
        paid = sum(price[at] * units for taken in met for at, units in taken.items())
        assert paid == min(sum(price[at] for at in used) for used in possible)


@settings(max_examples=150, deadline=None)
@given(
    fleets.class_sets(),
    fleets.devices(),
    fleets.requests((*fleets.LEAVES, "inner", "outer")),
    st.sampled_from([each for each in Strategy if each is not Strategy.STRICT_FIRST_FIT]),
)
def test_a_pod_is_refused_only_if_brute_force_over_all_assignments_also_finds_none(
    classes: tuple[DeviceClass, ...],
    devices: tuple[Device, ...],
    requests: list[DeviceRequest],
    strategy: Strategy,
) -> None:
    named = {each.name: each for each in classes}
    numbered = [msgspec.structs.replace(ask, container=str(at)) for at, ask in enumerate(requests)]
    free = {each.name: each.units if each.healthy else 0 for each in devices}
    kept = inventory(classes, devices)
    found = kept.choose("n1", numbered, strategy)
    assert (found is not None) == brute_force.can_be_met(requests, devices, free, named)
    assert kept.fits(requests, strategy).tolist() == [found is not None]
    assert bool(kept.why_not("n1", requests)) == (found is None)
    if found is not None:
        assert brute_force.is_met(numbered, found, devices, named)


@settings(max_examples=80, deadline=None)
@given(fleets.class_sets(), fleets.devices(), fleets.requests((*fleets.LEAVES, "inner")))
def test_strict_first_fit_is_right_where_it_finds_something(
    classes: tuple[DeviceClass, ...], devices: tuple[Device, ...], requests: list[DeviceRequest]
) -> None:
    numbered = [msgspec.structs.replace(ask, container=str(at)) for at, ask in enumerate(requests)]
    kept = inventory(classes, devices)
    found = kept.choose("n1", numbered, Strategy.STRICT_FIRST_FIT)
    assert kept.fits(numbered, Strategy.STRICT_FIRST_FIT).tolist() == [found is not None]
    if found is not None:
        assert brute_force.is_met(numbered, found, devices, {each.name: each for each in classes})


def test_nested_units_and_single_devices_share_what_is_there() -> None:
    """A unit of `pair` moves to the other NUMA node, since `whole` needs all of a device there."""
    classes = [selecting("a"), selecting("b", single=True), nested("pair", {"a": 2}, "numa")]
    devices = [device("d1", "ab", units=2, numa="0"), device("d2", "a", units=2, numa="1")]
    found = inventory(classes, devices).choose(
        "n1", [DeviceRequest("pair", 1), DeviceRequest("b", 2)]
    )
    assert fleets.units(found) == {"pair": {"d2": 2}, "b": {"d1": 2}}
