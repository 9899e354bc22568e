"""Devices of device plugins, as the node tells of them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.device import Device, PluginOrigin
from dovetail.kube.classes.node_annotation import DEVICES, NAME, annotated_devices, text_of
from dovetail.kube.classes.sources import devices_of
from dovetail.node.common.device_plugins import DevicePlugin, PluginDevice
from dovetail.node.report.plugin_devices import device_name, plugin_devices
from dovetail.podfit.objects import Node
from tests.node.report.listed import ListedPlugin

GPU = "vendor.com/gpu"


def told(*plugins: DevicePlugin) -> dict[str, Device]:
    found = plugin_devices("n1", plugins, lambda _resource, _id: {})
    return {each.name: each for each in found}


def test_a_device_is_told_with_health_numa_node_and_id() -> None:
    plugin = ListedPlugin(
        GPU, PluginDevice("GPU-1", numa_nodes=(1,)), PluginDevice("GPU-2", healthy=False)
    )
    assert told(plugin) == {
        "vendor.com.gpu-GPU-1": Device(
            node="n1",
            name="vendor.com.gpu-GPU-1",
            kind=GPU,
            properties={"numa": "1"},
            origin=PluginOrigin(GPU, "GPU-1"),
        ),
        "vendor.com.gpu-GPU-2": Device(
            node="n1",
            name="vendor.com.gpu-GPU-2",
            kind=GPU,
            healthy=False,
            origin=PluginOrigin(GPU, "GPU-2"),
        ),
    }


def test_who_reads_it_knows_vendor_and_id_besides() -> None:
    written = text_of(tuple(told(ListedPlugin(GPU, PluginDevice("0000:3b:00.0"))).values()))
    meta = {"name": "n1", "annotations": {DEVICES: written}}
    (found,) = devices_of(msgspec.convert({"metadata": meta}, Node))
    assert (found.kind, found.vendor, found.properties) == (
        GPU,
        "vendor.com",
        {"id": "0000:3b:00.0"},
    )
    assert found.origin == PluginOrigin(GPU, "0000:3b:00.0")


def test_what_the_kubelet_gave_to_a_pod_cannot_be_had() -> None:
    plugin = ListedPlugin(
        GPU, PluginDevice("a"), PluginDevice("b"), PluginDevice("c", healthy=False)
    )
    plugin.elsewhere = {"a", "c"}
    found = told(plugin)
    assert [each.healthy for each in found.values()] == [False, True, False]
    assert found["vendor.com.gpu-a"].properties == {"held-by": "kubelet"}
    assert found["vendor.com.gpu-c"].properties == {}


def test_while_the_kubelet_does_not_say_only_what_classes_have_can_be_had() -> None:
    plugin = ListedPlugin(GPU, PluginDevice("a"), PluginDevice("b"))
    plugin.held_elsewhere_unknown = "no kubelet"
    found = plugin_devices("n1", [plugin], lambda _resource, _id: {}, lambda _resource: {"b"})
    assert [each.healthy for each in found] == [False, True]


def test_resources_whose_names_run_together_keep_their_devices_apart() -> None:
    found = told(
        ListedPlugin("v.com/a", PluginDevice("b-c")), ListedPlugin("v.com/a-b", PluginDevice("c"))
    )
    assert len(found) == 2
    assert {each.origin for each in found.values()} == {
        PluginOrigin("v.com/a", "b-c"),
        PluginOrigin("v.com/a-b", "c"),
    }


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("GPU-8f1b6a2c", "vendor.com.gpu-GPU-8f1b6a2c"),
        ("0000:3b:00.0", "vendor.com.gpu-0000-3b-00.0-b98f3623bd"),
        ("0000-3b-00.0", "vendor.com.gpu-0000-3b-00.0"),
    ],
)
def test_names_stay_what_they_are(id_: str, name: str) -> None:
    assert device_name(GPU, id_) == name


IDS = st.text(min_size=1, max_size=120)


@given(st.sets(IDS, min_size=1, max_size=8))
def test_whatever_ids_there_are_the_node_can_tell_of_all_of_them(ids: set[str]) -> None:
    found = told(ListedPlugin(GPU, *(PluginDevice(each) for each in ids)))
    assert all(NAME.fullmatch(each) for each in found)
    assert {each.origin for each in found.values()} == {PluginOrigin(GPU, each) for each in ids}
    written = text_of(tuple(found.values()))
    assert annotated_devices("n1", {DEVICES: written}) == tuple(found.values())
