"""How many devices a node can tell of, and what is said if there are more."""

from __future__ import annotations

import uuid
from random import Random

import pytest

from dovetail.core.device import Device
from dovetail.kube.classes.node_annotation import (
    ALL_ANNOTATIONS,
    DEVICES,
    LEFT_TO_OTHERS,
    TooManyDevices,
    publish,
    text_of,
)
from dovetail.node.common.device_plugins import PluginDevice
from dovetail.node.report.plugin_devices import plugin_devices
from dovetail.podfit.objects import Node
from tests.node.report.listed import ListedPlugin
from tests.support.kube.cluster import Cluster
from tests.support.kube.memory import MemoryApi


def gpus(count: int) -> tuple[Device, ...]:
    rng = Random(1)
    ids = [f"GPU-{uuid.UUID(int=rng.getrandbits(128))}" for _ in range(count)]
    listed = (PluginDevice(each, numa_nodes=(0,)) for each in ids)
    return plugin_devices("n1", [ListedPlugin("nvidia.com/gpu", *listed)], lambda _a, _b: {})


async def test_a_thousand_devices_are_told() -> None:
    api = MemoryApi()
    await api.create(Node, {"metadata": {"name": "n1"}})
    await publish(api, "n1", gpus(1000))
    told = await api.get(Node, "n1")
    assert told.metadata.annotations[DEVICES] == text_of(gpus(1000))


async def test_more_than_fit_are_refused_with_numbers_and_nothing_is_changed() -> None:
    api = MemoryApi()
    await api.create(Node, {"metadata": {"name": "n1"}})
    await publish(api, "n1", gpus(2))
    with pytest.raises(TooManyDevices, match=r"2000 devices take .* KiB, and at most 240 KiB"):
        await publish(api, "n1", gpus(2000))
    told = await api.get(Node, "n1")
    assert told.metadata.annotations[DEVICES] == text_of(gpus(2))


def test_a_real_api_server_takes_what_is_not_refused(cluster: Cluster) -> None:
    cluster.add_nodes(1, prefix="full")
    path = "/api/v1/nodes/full-0"
    text = "x" * (ALL_ANNOTATIONS - LEFT_TO_OTHERS)
    status, said = cluster.request("PATCH", path, {"metadata": {"annotations": {DEVICES: text}}})
    assert status == 200, said
    text += "x" * LEFT_TO_OTHERS
    status, said = cluster.request("PATCH", path, {"metadata": {"annotations": {DEVICES: text}}})
    cluster.kubectl("delete", "node", "full-0")
    assert (status, b"Too long" in said) == (422, True)
