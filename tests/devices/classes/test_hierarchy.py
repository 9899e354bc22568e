"""Nested classes are resolved against the classes there are, or it is said why not."""

from __future__ import annotations

from dovetail.devices.classes import hierarchy
from dovetail.devices.classes.documents import DeviceClass, Member


def nested(name: str, *members: str | tuple[str, int]) -> DeviceClass:
    pairs = (each if isinstance(each, tuple) else (each, 1) for each in members)
    return DeviceClass(name, members=tuple(Member(*pair) for pair in pairs))


def problems(*classes: DeviceClass) -> dict[str, list[str]]:
    found = hierarchy.problems_by_class({cls.name: cls for cls in classes})
    return {name: [str(each) for each in problems] for name, problems in found.items()}


CORE = DeviceClass("core")


def test_sound_classes_have_no_problems() -> None:
    assert problems(CORE, nested("numa", ("core", 4)), nested("node", ("numa", 2), "core")) == {}


def test_an_unknown_member_is_named() -> None:
    assert problems(nested("numa", "core")) == {
        "numa": ["spec.members[0].class: there is no class 'core'"]
    }


def test_an_unknown_member_below_is_told_with_the_way_to_it() -> None:
    found = problems(CORE, nested("numa", "core", "nic"), nested("node", "core", "numa"))
    assert found["node"] == ["spec.members[1].class: there is no class 'nic' (node > numa > nic)"]


def test_circles_are_told_by_every_class_on_or_above_them() -> None:
    found = problems(nested("a", "b"), nested("b", "c"), nested("c", "b"))
    assert found == {
        "a": ["spec.members[0].class: goes in a circle: a > b > c > b"],
        "b": ["spec.members[0].class: goes in a circle: b > c > b"],
        "c": ["spec.members[0].class: goes in a circle: c > b > c"],
    }


def test_depth_is_limited() -> None:
    chain = [nested(f"c{at}", f"c{at + 1}") for at in range(5)]
    found = problems(*chain, DeviceClass("c5"))
    assert list(found) == ["c0"]
    assert "is nested deeper than 4 levels: c0 > c1 > c2 > c3 > c4 > c5" in found["c0"][0]


def test_a_unit_of_more_devices_than_a_node_has_is_refused() -> None:
    found = problems(CORE, nested("numa", ("core", 100)), nested("node", ("numa", 100)))
    assert found == {
        "node": ["spec.members: one unit takes 10000 devices: at most 4096 are possible"]
    }


def test_a_class_is_checked_as_if_it_were_added() -> None:
    others = {"a": nested("a", "b")}
    assert not hierarchy.problems_of(CORE, others)
    (found,) = hierarchy.problems_of(nested("b", "a"), others)
    assert found.message == "goes in a circle: b > a > b"


def test_what_a_unit_is_made_of() -> None:
    classes = {
        cls.name: cls for cls in (CORE, DeviceClass("nic"), nested("numa", ("core", 4), "nic"))
    }
    node = nested("node", ("numa", 2), "nic")
    assert hierarchy.device_count(node, classes) == 11
    assert hierarchy.leaves(node, classes) == {"core", "nic"}
