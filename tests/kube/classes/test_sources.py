"""The devices of a node, from an annotation, from DRA drivers, from device plugins."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import MOST_UNITS, Device, DraOrigin, PluginOrigin
from dovetail.core.errors import BadDevices
from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.classes.dra import from_device_class
from dovetail.kube.classes.node_annotation import DEVICES, annotated_devices, text_of
from dovetail.kube.classes.sources import devices_of
from dovetail.podfit.objects import Node, ResourceSlice

DRIVER = "gpu.example.com"


def node(
    annotation: object = None,
    capacity: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> Node:
    written = annotation if isinstance(annotation, str) else json.dumps(annotation)
    meta = {
        "name": "n1",
        "labels": labels or {},
        "annotations": {} if annotation is None else {DEVICES: written},
    }
    amounts = capacity or {}
    status = {"capacity": amounts, "allocatable": amounts if allocatable is None else allocatable}
    return msgspec.convert({"metadata": meta, "status": status}, Node)


def slice_of(
    *devices: dict[str, Any], generation: int = 1, count: int = 1, name: str = "s1", on: str = "n1"
) -> ResourceSlice:
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": on, "devices": list(devices)}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def test_an_annotation_tells_everything_about_a_device() -> None:
    given: dict[str, Any] = {
        "name": "GPU-1",
        "kind": "nvidia-gpu",
        "vendor": "nvidia",
        "units": 2,
        "healthy": False,
        "properties": {"memory": "80G"},
    }
    assert devices_of(node([given])) == (Device(node="n1", **given),)


def test_a_device_needs_no_more_than_name_and_kind() -> None:
    assert devices_of(node([{"name": "a", "kind": "nic"}])) == (
        Device(node="n1", name="a", kind="nic"),
    )


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("[{]", "a JSON list of devices is expected"),
        ({"name": "a"}, "Expected `array`"),
        ([{"name": "a"}], "missing required field `kind`"),
        ([{"name": "a", "kind": "k", "colour": "red"}], "unknown field `colour`"),
        ([{"name": "a b", "kind": "k"}], "[0].name: 'a b'"),
        ([{"name": "a", "kind": "k"}, {"name": "a", "kind": "k"}], "[1].name: 'a' is there"),
        ([{"name": "a", "kind": ""}], "[0].kind"),
        ([{"name": "a", "kind": "k", "units": 0}], "[0].units: 0"),
        ([{"name": "a", "kind": "k", "properties": {"Kind": "x"}}], "[0].properties: 'Kind'"),
        ([{"name": "a", "kind": "x", "id": "GPU-0"}], "[0].resource and .id"),
    ],
)
def test_what_is_wrong_in_an_annotation_is_told(given: object, where: str) -> None:
    with pytest.raises(BadDevices) as refused:
        devices_of(node(given))
    assert where in str(refused.value)
    assert "node n1" in str(refused.value)


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,5}[a-z0-9]", fullmatch=True)
DEVICE = st.builds(
    partial(Device, node="n1"),
    name=NAMES,
    kind=NAMES,
    units=st.integers(1, 9),
    healthy=st.booleans(),
    properties=st.dictionaries(NAMES, st.text(max_size=5)),
    origin=st.none() | st.builds(PluginOrigin, NAMES, st.text(min_size=1, max_size=5)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(DEVICE, max_size=5, unique_by=lambda device: device.name))
def test_what_was_written_is_read(devices: list[Device]) -> None:
    assert list(annotated_devices("n1", {DEVICES: text_of(devices)})) == devices


def test_a_slice_has_attributes_and_capacities_as_properties() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {
            "type": {"string": "gpu"},
            "index": {"int": 3},
            "ecc": {"bool": True},
            "driverVersion": {"version": "535.104.5"},
            f"{DRIVER}/model": {"string": "LATEST"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }
    (found,) = devices_of(node(), [slice_of(device)])
    assert found.name == "gpu.example.com.n1.gpu-0"
    assert found.kind == "gpu"
    own = {
        "type": "gpu",
        "index": "3",
        "ecc": "true",
        "driverVersion": "535.104.5",
        "model": "LATEST",
        "memory": "80Gi",
    }
    assert found.properties == {
        **own,
        **{f"{DRIVER}/{key}": text for key, text in own.items()},
        "resource.kubernetes.io/pcieRoot": "pci0000:00",
        "Driver": DRIVER,
    }


def test_a_class_that_was_a_device_class_selects_what_it_did() -> None:
    said = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "LATEST"'
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": said}}]},
    }
    meets = compile_selector(from_device_class(device_class).selector)
    latest, other = (
        {"name": name, "attributes": {"model": {"string": model}}}
        for name, model in (("a", "LATEST"), ("b", "OLD"))
    )
    found = devices_of(node(), [slice_of(latest, other)])
    assert [meets(device.attributes) for device in found] == [True, False]


def test_without_a_type_the_driver_is_the_kind() -> None:
    (found,) = devices_of(node(), [slice_of({"name": "a"})])
    assert found.kind == DRIVER


def test_a_tainted_device_is_not_healthy() -> None:
    taint = {"key": "broken", "effect": "NoExecute"}
    (found,) = devices_of(node(), [slice_of({"name": "a", "taints": [taint]})])
    assert not found.healthy


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_of({"name": "a"}), slice_of({"name": "b"}, generation=2, name="s2")
    assert [device.name for device in devices_of(node(), [old, new])] == [f"{DRIVER}.n1.b"]


def test_a_pool_with_slices_missing_does_not_count() -> None:
    assert devices_of(node(), [slice_of({"name": "a"}, count=2)]) == ()


def test_slices_of_other_nodes_do_not_count() -> None:
    assert devices_of(node(), [slice_of({"name": "a"}, on="n2")]) == ()


@pytest.mark.parametrize(
    "about",
    [
        {"consumesCounters": [{"counterSet": "s", "counters": {}}]},
        {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]},
        {"allowMultipleAllocations": True},
        {"nodeAllocatableResourceMappings": {"cpu": {}}},
    ],
)
def test_what_is_not_handed_out_whole_and_at_once_is_left_to_dra(about: dict[str, Any]) -> None:
    assert devices_of(node(), [slice_of({"name": "a", **about})]) == ()


def test_fields_that_say_nothing_leave_a_device_here() -> None:
    about: dict[str, Any] = {"consumesCounters": [], "bindingConditions": None}
    about["allowMultipleAllocations"] = False
    assert len(devices_of(node(), [slice_of({"name": "a", **about})])) == 1


def test_a_device_of_a_slice_knows_its_driver_pool_and_name() -> None:
    (found,) = devices_of(node(), [slice_of({"name": "a"})])
    assert found.origin == DraOrigin(DRIVER, "n1", "a")


@pytest.mark.parametrize(("effect", "healthy"), [("NoSchedule", False), ("None", True)])
def test_a_taint_that_keeps_nobody_away_is_none(effect: str, healthy: bool) -> None:
    taint = {"key": "watched", "effect": effect}
    (found,) = devices_of(node(), [slice_of({"name": "a", "taints": [taint]})])
    assert found.healthy == healthy


def test_a_device_plugin_reports_a_number_and_labels_tell_the_rest() -> None:
    labels = {"nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.product": "H100", "zone": "a"}
    amounts = {"nvidia.com/gpu": "8", "cpu": "4", "hugepages-1Gi": "0", "example.com/none": "0"}
    (found,) = devices_of(node(capacity=amounts, labels=labels))
    assert found == Device(
        node="n1",
        name="nvidia.com.gpu",
        kind="nvidia.com/gpu",
        vendor="nvidia.com",
        units=8,
        properties={"memory": "81920", "product": "H100"},
    )


def test_units_that_a_plugin_took_back_are_not_there() -> None:
    (found,) = devices_of(node(capacity={"a.b/c": "8"}, allocatable={"a.b/c": "6"}))
    assert (found.units, found.healthy) == (6, True)
    (gone,) = devices_of(node(capacity={"a.b/c": "8"}, allocatable={"a.b/c": "0"}))
    assert (gone.units, gone.healthy) == (8, False)


def test_more_units_than_can_be_counted_are_as_many_as_can() -> None:
    (found,) = devices_of(node(capacity={"a.b/bytes": "64Gi"}))
    assert found.units == MOST_UNITS


def test_classes_are_no_devices() -> None:
    assert devices_of(node(capacity={"resourceclass.dovetail.dev/fast.nic": "8"})) == ()


def test_a_better_description_of_a_kind_replaces_the_plugins_number() -> None:
    described = [{"name": "gpu-0", "kind": "nvidia.com/gpu", "properties": {"memory": "80G"}}]
    found = devices_of(node(described, capacity={"nvidia.com/gpu": "8"}))
    assert [device.name for device in found] == ["gpu-0"]


def test_devices_come_in_the_order_of_first_fit() -> None:
    given = [{"name": name, "kind": kind} for name, kind in [("b", "x"), ("a", "x"), ("c", "w")]]
    assert [device.name for device in devices_of(node(given))] == ["c", "a", "b"]
