"""Nested classes: units made of devices of other classes, on one node and alike where asked."""

from __future__ import annotations

from hypothesis import given, settings

from dovetail.core.device import Device
from dovetail.devices.allocation.request import ClassStatus, DeviceRequest
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.hierarchy import DEEPEST
from tests.devices import brute_force, fleets
from tests.devices.fleets import device, inventory, nested, selecting, units

A, B, C = (selecting(name) for name in "abc")
CORES = selecting("single-core", "a")
NUMA_NODE = nested("numa-node", {"single-core": 4}, "numa")


def cores(*numas: int) -> list[Device]:
    return [device(f"core{at}", "a", numa=str(numa)) for at, numa in enumerate(numas)]


def test_the_specifications_numa_node_is_made_of_single_cores() -> None:
    kept = inventory([CORES, NUMA_NODE], cores(0, 0, 0, 0, 1, 1, 1, 1), cores(0, 0, 1, 1, 1))
    assert kept.status("numa-node") == ClassStatus(2, 0)
    assert kept.free("numa-node").tolist() == [2, 0]
    found = kept.choose("n1", [DeviceRequest("numa-node", 1)])
    assert units(found) == {"numa-node": {f"core{at}": 1 for at in range(4)}}


def test_one_device_held_makes_its_unit_unavailable() -> None:
    kept = inventory([CORES, NUMA_NODE], cores(0, 0, 0, 0, 1, 1, 1, 1))
    found = kept.choose("n1", [DeviceRequest("single-core", 1)])
    assert found is not None
    kept.hold("pod", "n1", found)
    assert kept.status("numa-node") == ClassStatus(2, 1)
    kept.release("pod")
    assert kept.status("numa-node") == ClassStatus(2, 0)


def test_members_of_a_unit_come_from_one_node() -> None:
    kept = inventory(
        [A, B, nested("pair", {"a": 1, "b": 1})], [device("d1", "a")], [device("d2", "b")]
    )
    assert kept.status("pair") == ClassStatus(0, 0)


def test_without_keys_members_may_differ() -> None:
    classes = [A, nested("any", {"a": 2}), nested("same", {"a": 2}, "numa")]
    kept = inventory(classes, [device("d1", "a", numa="0"), device("d2", "a", numa="1")])
    assert (kept.status("any"), kept.status("same")) == (ClassStatus(1, 0), ClassStatus(0, 0))


def test_a_device_without_the_key_is_in_no_unit() -> None:
    kept = inventory([A, nested("pair", {"a": 2}, "numa")], [device("d1", "a"), device("d2", "a")])
    assert kept.status("pair") == ClassStatus(0, 0)


def test_members_that_overlap_are_told_apart() -> None:
    """Three devices make one unit only: b needs the device a could do without."""
    devices = [device("d1", "ab"), device("d2", "a"), device("d3", "a")]
    kept = inventory([A, B, nested("pair", {"a": 1, "b": 1})], devices)
    assert kept.status("pair") == ClassStatus(1, 0)
    assert units(kept.choose("n1", [DeviceRequest("pair", 1)])) == {"pair": {"d1": 1, "d2": 1}}


def test_classes_of_classes_of_classes() -> None:
    """A machine: two sockets of two cores each, with a NIC that agrees with none of them."""
    classes = [A, C, nested("socket", {"a": 2}, "numa"), nested("machine", {"socket": 2, "c": 1})]
    nic = device("nic", "c", units=2)
    assert inventory(classes, [*cores(0, 0, 1, 1), nic]).status("machine") == ClassStatus(1, 0)
    assert inventory(classes, [*cores(0, 0, 0, 1), nic]).status("machine") == ClassStatus(0, 0)
    assert inventory(classes, [*cores(0, 0, 0, 0), nic]).status("machine") == ClassStatus(1, 0)


def test_a_member_for_a_single_device() -> None:
    classes = [selecting("a", single=True), nested("pair", {"a": 2})]
    split = [device("d1", "a", units=3), device("d2", "a", units=3)]
    assert inventory(classes, split).status("pair") == ClassStatus(2, 0)


def test_a_class_whose_members_are_not_there_yet_has_nothing() -> None:
    kept = inventory([nested("pair", {"a": 1, "b": 1})], [device("d1", "a"), device("d2", "b")])
    requests = [DeviceRequest("pair", 1)]
    assert (kept.status("pair"), kept.choose("n1", requests)) == (ClassStatus(0, 0), None)
    assert kept.why_not("n1", requests) == (
        "class pair has a member that does not exist, goes in a circle or too deep"
    )
    kept.set_class(A)
    kept.set_class(B)
    assert kept.status("pair") == ClassStatus(1, 0)
    kept.drop_class("b")
    assert kept.status("pair") == ClassStatus(0, 0)


def test_a_class_made_again_of_other_members_is_counted_again() -> None:
    kept = inventory([A, nested("some", {"a": 2})], [device("d1", "a", units=6)])
    assert kept.status("some") == ClassStatus(3, 0)
    kept.set_class(nested("some", {"a": 3}))
    assert kept.status("some") == ClassStatus(2, 0)


def test_a_unit_and_a_member_by_itself_share_what_is_there() -> None:
    kept = inventory(
        [A, nested("pair", {"a": 2})], [device("d1", "a", units=3)], [device("d1", "a")]
    )
    assert kept.fits([DeviceRequest("pair", 1), DeviceRequest("a", 1)]).tolist() == [True, False]
    assert kept.fits([DeviceRequest("pair", 1), DeviceRequest("a", 2)]).tolist() == [False, False]


def test_a_class_that_is_part_of_itself_has_nothing() -> None:
    classes = [A, nested("x", {"y": 1}), nested("y", {"x": 1, "a": 1}), nested("z", {"a": 1})]
    kept = inventory(classes, [device("d1", "a")])
    assert [kept.status(name).allocatable for name in "xyz"] == [0, 0, 1]


def test_classes_may_be_four_levels_deep_and_a_longer_chain_has_nothing() -> None:
    chain = [nested(f"l{depth + 1}", {f"l{depth}": 1}) for depth in range(2000)]
    kept = inventory([selecting("l0", "a"), *chain], [device("d1", "a")])
    found = [kept.status(f"l{depth}").allocatable for depth in (0, DEEPEST, DEEPEST + 1, 2000)]
    assert found == [1, 1, 0, 0]


def test_a_unit_larger_than_any_node_costs_nothing_to_refuse() -> None:
    big = [nested(f"l{depth + 1}", {f"l{depth}": 1024}) for depth in range(6)]
    kept = inventory([selecting("l0", "a"), *big], [device("d1", "a", units=1000)])
    assert [kept.status(f"l{depth}").allocatable for depth in range(7)] == [1000, *[0] * 6]
    assert kept.choose("n1", [DeviceRequest("l6", 1000)]) is None


def test_a_node_of_many_alike_devices_is_counted() -> None:
    classes = [A, B, nested("quad", {"a": 3, "b": 1}, "numa")]
    devices = [
        device(f"d{at}", "ab" if at % 3 else "a", numa=str(at % 16), units=4) for at in range(128)
    ]
    assert inventory(classes, devices).status("quad") == ClassStatus(128, 0)


@settings(max_examples=80, deadline=None)
@given(fleets.class_sets(), fleets.devices(most=4))
def test_as_many_units_as_trying_everything_forms(
    classes: tuple[DeviceClass, ...], devices: tuple[Device, ...]
) -> None:
    named = {each.name: each for each in classes}
    free = {each.name: each.units if each.healthy else 0 for each in devices}
    kept = inventory(classes, devices)
    for name in ("inner", "outer"):
        formed = brute_force.formable(name, devices, free, named)
        assert kept.status(name).allocatable == formed
