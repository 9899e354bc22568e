"""Static analysis of classes: each kind of finding, what it says, and that nothing is made up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.selectors.condition_text import read
from dovetail.core.selectors.selector import Selector, compile_selector
from dovetail.devices.classes.documents import DeviceClass, Member
from dovetail.devices.classes.lint import LintFinding, LintKind, is_one_off, lint
from tests.devices.selectors import devices, selectors


def cls(name: str, *branches: str) -> DeviceClass:
    return DeviceClass(name, tuple(read(branch) for branch in branches))


def gpu(name: str, memory: str, *, units: int = 1, healthy: bool = True, **more: str) -> Device:
    return Device(
        node="n",
        name=name,
        kind="gpu",
        units=units,
        healthy=healthy,
        properties={"memory": memory, **more},
    )


FLEET = (gpu("g0", "16G"), gpu("g1", "40G", units=2), gpu("g2", "80G", units=4))


def findings(*classes: DeviceClass, fleet: tuple[Device, ...] = FLEET) -> list[LintFinding]:
    return list(lint(classes, fleet))


def test_a_class_without_fault_has_no_findings() -> None:
    assert findings(cls("big", "Kind=gpu,memory>=30G")) == []


def test_empty_by_contradiction_and_by_saying_nothing() -> None:
    assert findings(cls("never", "memory>2G,memory<1G"), DeviceClass("blank")) == [
        LintFinding(
            "never",
            LintKind.EMPTY,
            "selector 0 can be met by no device: memory Gt 2G and memory Lt 1G",
        ),
        LintFinding("blank", LintKind.EMPTY, "has no expressions, so it selects nothing"),
    ]


def test_one_selector_of_several_can_be_empty() -> None:
    (found,) = findings(cls("part", "memory>2G", "!Kind"))
    assert found.message == "selector 1 can be met by no device: Kind DoesNotExist"


def test_unreachable_names_the_keys_that_no_device_has() -> None:
    assert findings(cls("huge", "memory>1T"), cls("linked", "nvlink,Kind=gpu")) == [
        LintFinding("huge", LintKind.UNREACHABLE, "selects no device of this fleet"),
        LintFinding(
            "linked", LintKind.UNREACHABLE, "selects no device of this fleet; no device has nvlink"
        ),
    ]


def test_unreachable_because_all_are_unhealthy() -> None:
    fleet = (gpu("g", "80G", healthy=False),)
    (found,) = findings(cls("big", "memory>30G"), fleet=fleet)
    assert found == LintFinding("big", LintKind.UNREACHABLE, "selects only unhealthy devices")


def test_a_nested_class_is_as_reachable_as_its_parts() -> None:
    pair = DeviceClass("pair", members=(Member("huge"), Member("big")))
    found = findings(cls("huge", "memory>1T"), cls("big", "memory>30G"), pair)
    assert [each for each in found if each.class_name == "pair"] == [
        LintFinding(
            "pair", LintKind.UNREACHABLE, "no device of this fleet is selected by its part huge"
        )
    ]


def test_broken_nesting_is_told() -> None:
    (found,) = findings(DeviceClass("pair", members=(Member("none"),)))
    assert (found.kind, found.message) == (
        LintKind.BROKEN,
        "spec.members[0].class: there is no class 'none'",
    )


def test_subsumed_for_any_device_is_told_apart_from_on_this_fleet() -> None:
    found = findings(cls("a", "memory>=40G"), cls("b", "memory>20G"), cls("c", "memory<100G"))
    assert found == [
        LintFinding("a", LintKind.SUBSUMED, "selects nothing beside b, for any device"),
        LintFinding("a", LintKind.SUBSUMED, "selects nothing beside c, on this fleet"),
        LintFinding("b", LintKind.IDENTICAL, "selects the same as a, on this fleet"),
        LintFinding("b", LintKind.SUBSUMED, "selects nothing beside c, on this fleet"),
    ]


def test_identical_for_any_device() -> None:
    assert findings(cls("a", "memory>=40G"), cls("b", "memory>=40000M")) == [
        LintFinding("a", LintKind.IDENTICAL, "selects the same as b, for any device"),
        LintFinding("b", LintKind.IDENTICAL, "selects the same as a, for any device"),
    ]


def test_overlapping_counts_the_units_shared() -> None:
    assert findings(cls("low", "memory<50G"), cls("high", "memory>30G")) == [
        LintFinding(
            "low",
            LintKind.OVERLAPPING,
            "of its 3 units on this fleet some are shared with high (2)",
        ),
        LintFinding(
            "high",
            LintKind.OVERLAPPING,
            "of its 6 units on this fleet some are shared with low (2)",
        ),
    ]


def test_row_15_keys_that_are_nearly_right() -> None:
    fleet = (*FLEET, gpu("g3", "1G", ECC="yes"))
    found = findings(cls("slips", "kind=gpu", "memry>1G", "ecc"), fleet=fleet)
    assert [each.message for each in found if each.kind is LintKind.NEAR_MISS] == [
        "key 'ecc' is not 'ECC', which 1 device has: case matters",
        "key 'kind' is not 'Kind', which 4 devices have: case matters",
        "no device has the key 'memry', but 'memory' is there: 4 devices have it",
    ]


def test_row_15_a_key_that_devices_write_in_two_ways() -> None:
    odd = Device(node="n", name="odd", kind="gpu", properties={"Memory": "80G"})
    (found,) = findings(cls("big", "memory>30G"), fleet=(*FLEET, odd))
    assert found.message == "key 'memory' is not 'Memory', which 1 device has: case matters"


def test_row_19_another_dimension_is_a_warning_on_the_class() -> None:
    fleet = (*FLEET, gpu("bare", "80000000000"), gpu("bare2", "90000000000"))
    (found,) = findings(cls("big", "Kind=gpu,memory>30G"), fleet=fleet)
    assert found == LintFinding(
        "big",
        LintKind.DIMENSION,
        "can never hold on 2 devices of this fleet: memory is '80000000000', a bare number:"
        " not comparable with '30G', an amount with a unit",
    )


def test_without_a_fleet_only_what_is_certain_is_told() -> None:
    found = findings(cls("a", "memory>2G"), cls("b", "memory>1G"), cls("c", "x"), fleet=())
    assert found == [
        LintFinding("a", LintKind.SUBSUMED, "selects nothing beside b, for any device")
    ]


def test_many_others_are_counted_not_listed() -> None:
    classes = [cls(f"c{at}", "memory>30G") for at in range(9)]
    found = findings(*classes)
    assert len(found) == 9
    assert found[0].message == "selects the same as c1, c2, c3, c4, c5 and 3 more, for any device"


@settings(max_examples=60, deadline=None)
@given(st.lists(selectors(2), min_size=2, max_size=4), st.lists(devices(), max_size=5))
def test_nothing_is_made_up(chosen: list[Selector], fleet: list[Device]) -> None:
    classes = [DeviceClass(f"c{at}", each) for at, each in enumerate(chosen)]
    picked = {
        each.name: {
            at for at, one in enumerate(fleet) if compile_selector(each.selector)(one.attributes)
        }
        for each in classes
    }
    for found in lint(classes, fleet):
        mine = picked[found.class_name]
        others = [picked[name] for name in picked if f" {name}" in found.message]
        match found.kind:
            case LintKind.UNREACHABLE:
                assert not mine
            case LintKind.IDENTICAL:
                assert all(mine == other for other in others)
            case LintKind.SUBSUMED:
                assert all(mine <= other for other in others)
            case LintKind.OVERLAPPING:
                assert all(mine & other and mine - other and other - mine for other in others)


def test_one_character_off() -> None:
    assert is_one_off("memory", "memry")
    assert is_one_off("memory", "memoryy")
    assert is_one_off("memory", "nemory")
    assert is_one_off("a", "")
    assert not is_one_off("memory", "memory")
    assert not is_one_off("memory", "mmeory")
    assert not is_one_off("memory", "mem")
