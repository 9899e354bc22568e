"""Classes and their DeviceClasses select the same devices; what has no counterpart is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from dovetail.core.device import Device
from dovetail.core.selectors.condition_text import read, write
from dovetail.core.selectors.selector import Selector, compile_selector
from dovetail.devices.classes.cel import matches, parse
from dovetail.devices.classes.documents import BadClass, DeviceClass, Member
from dovetail.devices.classes.dra import (
    Untranslatable,
    cel_device_of,
    from_device_class,
    to_device_class,
)
from tests.devices.selectors import devices, selectors

O = "dovetail.dev"  # noqa: E741
GPU = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'


def cls(*branches: str) -> DeviceClass:
    return DeviceClass("c", tuple(read(branch) for branch in branches))


def cel(given: DeviceClass) -> str:
    text = to_device_class(given)["spec"]["selectors"][0]["cel"]["expression"]
    assert isinstance(text, str)
    return text


def device_class(*expressions: str, **more: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {"selectors": selectors, **more},
    }


def back(*expressions: str) -> list[str]:
    return [write(branch) for branch in from_device_class(device_class(*expressions)).selector]


def refused(*expressions: str, **more: Any) -> dict[str, str]:
    with pytest.raises(Untranslatable) as caught:
        from_device_class(device_class(*expressions, **more))
    return {each.path: each.message for each in caught.value.problems}


@settings(max_examples=150, deadline=None)
@given(selectors(), devices())
def test_a_class_and_its_translation_select_the_same(selector: Selector, device: Device) -> None:
    """Evaluated without an error, too: that would end an allocation."""
    text = cel(DeviceClass("c", selector))
    assert matches(parse(text), cel_device_of(device)) is compile_selector(selector)(
        device.attributes
    )


@settings(max_examples=150, deadline=None)
@given(selectors(), devices())
def test_there_and_back_selects_the_same(selector: Selector, device: Device) -> None:
    again = from_device_class(to_device_class(DeviceClass("c", selector)))
    assert compile_selector(again.selector)(device.attributes) is compile_selector(selector)(
        device.attributes
    )


def test_an_amount_is_looked_for_before_it_is_compared() -> None:
    assert cel(cls("Kind in (gpu),memory>=30G")) == (
        f'"Kind" in device.attributes["{O}"] && device.attributes["{O}"].Kind == "gpu" && '
        f'"memory" in device.capacity["{O}"] && '
        f'device.capacity["{O}"].memory.compareTo(quantity("30G")) >= 0'
    )


def test_the_whole_document() -> None:
    assert to_device_class(cls("!mig", "Driver in (a.example,b.example)")) == device_class(
        f'(!("mig" in device.attributes["{O}"])) ||\n(device.driver in ["a.example", "b.example"])'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("speed>40GBPS", f'device.capacity["rate.{O}"].speed.compareTo(quantity("40G")) > 0'),
        ("speed>5GB/s", f'device.capacity["rate.{O}"].speed.compareTo(quantity("40G")) > 0'),
        ("memory<80GB", f'device.capacity["{O}"].memory.compareTo(quantity("80G")) < 0'),
        ("cores<=8", f'device.capacity["number.{O}"].cores.compareTo(quantity("8")) <= 0'),
        ("v>v1.10", f'device.attributes["version.{O}"].v.compareTo(semver("1.10.0")) > 0'),
        ("in=x", f'device.attributes["{O}"]["in"] == "x"'),
        (
            "gpu.example.com/memory>30G",
            f'{CAPACITY}.memory.compareTo(quantity("30G")) > 0',
        ),
    ],
)
def test_each_dimension_has_its_place(text: str, expected: str) -> None:
    assert cel(cls(text)).endswith(expected)


def test_a_class_that_selects_nothing_is_false() -> None:
    assert cel(DeviceClass("c")) == cel(DeviceClass("c", ((),))) == "false"


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (DeviceClass("c", members=(Member("a"),)), "spec.members", "not made of others"),
        (DeviceClass("c", single_device=True), "spec.singleDevice", "whole devices"),
        (cls("Kind", "x,my-key"), "[1].matchExpressions[1]", "key 'my-key': a name of at most 32"),
        (cls("x" * 33), "[0].matchExpressions[0]", "at most 32"),
        (cls("v>1.2.3.4"), "[0].matchExpressions[0]", "'1.2.3.4' is no semantic version"),
        (cls("a.example/speed>1Gbps"), "[0].matchExpressions[0]", "no way to publish a rate"),
        (cls("A_B/speed>1G"), "[0].matchExpressions[0]", "'A_B' is no domain"),
        (cls("Driver>1G"), "[0].matchExpressions[0]", "Driver is text"),
        (cls('Driver=""'), "[0].matchExpressions[0]", "never empty"),
        (cls(*(f"Kind=k{at}" for at in range(200))), "spec.resourceSelector", "characters"),
    ],
)
def test_what_a_device_class_cannot_say_is_told_at_its_field(
    given: DeviceClass, path: str, message: str
) -> None:
    with pytest.raises(Untranslatable) as caught:
        to_device_class(given)
    (problem,) = caught.value.problems
    assert problem.path.endswith(path)
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "branches"),
    [
        ("true", ["Kind"]),
        ("false", []),
        ('device.driver == "gpu.example.com"', ["Driver in (gpu.example.com)"]),
        ('"gpu.example.com" == device.driver', ["Driver in (gpu.example.com)"]),
        ('device.driver != "x"', ["Driver notin (x)"]),
        (f'{GPU}.model == "big"', ["gpu.example.com/model in (big)"]),
        (f'{GPU}["model"] in ["a", "b"]', ["gpu.example.com/model in (a,b)"]),
        (f'{GPU}.model != "big"', ["gpu.example.com/model,gpu.example.com/model notin (big)"]),
        (f'!("model" in {GPU}) || {GPU}.model != "a"', ["gpu.example.com/model notin (a)"]),
        (f'{GPU}.model != "a" || !has({GPU}.model)', ["gpu.example.com/model notin (a)"]),
        (f"{GPU}.ecc", ["gpu.example.com/ecc in (true)"]),
        (f"!{GPU}.ecc", ["gpu.example.com/ecc in (false)"]),
        (f"{GPU}.ecc == false", ["gpu.example.com/ecc in (false)"]),
        (f"{GPU}.index == 3", ["gpu.example.com/index in (3)"]),
        (f"{GPU}.index < 3", ["gpu.example.com/index<3"]),
        (f"!(3 > {GPU}.index)", ["gpu.example.com/index>=3"]),
        (f"has({GPU}.model)", ["gpu.example.com/model"]),
        (f"!has({CAPACITY}.memory)", ["!gpu.example.com/memory"]),
        (f'{CAPACITY}.memory.isGreaterThan(quantity("1G"))', ["gpu.example.com/memory>1G"]),
        (f'!{CAPACITY}.memory.isLessThan(quantity("1G"))', ["gpu.example.com/memory>=1G"]),
        (f'0 <= {CAPACITY}.memory.compareTo(quantity("1G"))', ["gpu.example.com/memory>=1G"]),
        (
            f'{CAPACITY}.memory != quantity("1G")',
            ["gpu.example.com/memory<1G", "gpu.example.com/memory>1G"],
        ),
        (f'{GPU}.driver.isGreaterThan(semver("1.2.3"))', ["gpu.example.com/driver>1.2.3"]),
        (f'device.capacity["{O}"].m.isLessThan(quantity("512"))', ["m<512B"]),
        (f'device.capacity["rate.{O}"].s.isLessThan(quantity("40G"))', ["s<40000000000bps"]),
        (f'device.capacity["number.{O}"].n.isLessThan(quantity("500m"))', ["n<0.5"]),
        (
            f"{GPU}.a && ({GPU}.b || {GPU}.c)",
            [
                "gpu.example.com/a in (true),gpu.example.com/b in (true)",
                "gpu.example.com/a in (true),gpu.example.com/c in (true)",
            ],
        ),
    ],
)
def test_natural_ways_to_write_it(text: str, branches: list[str]) -> None:
    assert back(text) == branches


def test_all_selectors_have_to_be_met_and_none_is_everything() -> None:
    assert back(f"{GPU}.a", f"{GPU}.b") == [
        "gpu.example.com/a in (true),gpu.example.com/b in (true)"
    ]
    assert back() == ["Kind"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{GPU}.model.matches("a.*")', "at character 43: this cannot be said by a resource"),
        ('true && "x" in device.attributes', "at character 13: this cannot be said"),
        ("device.allowMultipleAllocations", "this cannot be said by a resource class"),
        ("cel.bind(a, b, c)", "this cannot be said by a resource class"),
        (f"{GPU}.a == {GPU}.b", "a value that gpu.example.com/a can have is expected"),
        (f'"x" in device.capacity["{O}"]', "that x is an amount with a unit, whichever"),
        (f'!("x" in device.capacity["{O}"])', "that x is not an amount with a unit"),
        (f'device.attributes["{O}"].x', "this cannot be said by a resource class"),
        (f'device.attributes["{O}"].x == true', "a value that x can have is expected"),
        (f'device.attributes["{O}"].x > 1', "> is understood for whole numbers of drivers'"),
        (f'{CAPACITY}.m.isLessThan(quantity("1K"))', "'1K' is no quantity"),
        (f'{CAPACITY}.m.isLessThan(semver("1.0.0"))', "quantity(...) or semver(...) is expected"),
        (f'{GPU}.v.isLessThan(semver("1.0.0-rc1"))', "a version of three numbers is expected"),
        (f'{CAPACITY}.m == "1G"', "gpu.example.com/m is compared as text"),
        ("1 == 2", "an attribute or a capacity of the device is expected on one side"),
        ("a ? b : c", "at character 3: '?' is not expected here"),
        (" && ".join(f"({GPU}.a{n} || {GPU}.b{n})" for n in range(9)), "more than 256 alternat"),
    ],
)
def test_what_a_class_cannot_say_is_told_with_its_place(text: str, message: str) -> None:
    problems = refused(text)
    assert list(problems) == ["spec.selectors[0].cel.expression"]
    assert problems["spec.selectors[0].cel.expression"].startswith("at character ")
    assert message in problems["spec.selectors[0].cel.expression"]


def test_what_else_a_device_class_has_is_told() -> None:
    assert refused("true", config=[{"opaque": {}}], extendedResourceName="example.com/gpu") == {
        "spec.config": "resource classes have nothing like it",
        "spec.extendedResourceName": "resource classes have nothing like it",
    }
    with pytest.raises(Untranslatable, match=r"kind: 'Pod': DeviceClass is expected"):
        from_device_class({**device_class("true"), "kind": "Pod"})
    with pytest.raises(Untranslatable, match=r"metadata.name: is missing"):
        from_device_class({})
    with pytest.raises(Untranslatable, match=r"spec: is missing"):
        from_device_class({**device_class("true"), "spec": None})
    with pytest.raises(Untranslatable, match=r"selectors\[0\].cel.expression: text of at most"):
        from_device_class({**device_class(), "spec": {"selectors": [{}]}})


def test_the_name_has_to_be_one_of_a_class() -> None:
    with pytest.raises(BadClass, match=r"metadata.name: has 60 characters"):
        from_device_class({**device_class("true"), "metadata": {"name": "c" * 60}})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"my-key": "1"}, "my-key: key 'my-key': a name"),
        ({"a": "x" * 65}, "a: a plain key and 64 characters are possible"),
        ({"v": "1.2.3.4"}, "v: '1.2.3.4' is no semantic version"),
        ({"Driver": ""}, "Driver: a driver's name is never empty"),
    ],
)
def test_devices_that_cannot_be_published_are_told(
    properties: dict[str, str], message: str
) -> None:
    device = Device(node="n", name="d", kind="k", properties=properties)
    with pytest.raises(Untranslatable, match="'d' cannot be translated") as caught:
        cel_device_of(device)
    assert message in str(caught.value)
