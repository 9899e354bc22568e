"""Which devices each container uses, by the allocation on its pod."""

from __future__ import annotations

import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import Allocation
from dovetail.node.class_devices.choice import BadChoice, with_devices
from dovetail.node.common.pods import ContainerSpec, DeviceChoice, Pod
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.class_devices import GPU, GPUS
from tests.support.node.fakes import container, pod

CLASS_GPU = f"class:{GPU}"
MIB = 2**20


def allocation(*holdings: DeviceHolding, **origins: PluginOrigin) -> Allocation:
    known = {name.replace("_", "-"): origin for name, origin in origins.items()}
    plain = {each.device: PluginOrigin(GPU, f"id:{each.device}") for each in holdings}
    return Allocation("here", holdings, {**plain, **known})


def ids(own: Pod) -> dict[str, list[str]]:
    return {
        each.name: [choice.key for choices in each.chosen.values() for choice in choices]
        for each in own.containers
    }


def gpus(name: str, count: int, **more: object) -> ContainerSpec:
    return container(name, **{GPUS: count}, **more)


def test_containers_ask_for_the_devices_they_hold() -> None:
    found = with_devices(
        pod("a", gpus("one", 2), gpus("two", 1), container("none", cpu=1)),
        allocation(
            DeviceHolding("g0", 1, "gpu", "one"),
            DeviceHolding("g2", 1, "gpu", "two"),
            DeviceHolding("g1", 1, "gpu", "one"),
        ),
        {},
    )
    assert ids(found) == {"one": ["id:g0", "id:g1"], "two": ["id:g2"], "none": []}
    assert [each.requests.get(CLASS_GPU) for each in found.containers] == [2, 1, None]


def test_init_containers_use_what_later_ones_hold() -> None:
    found = with_devices(
        pod(
            "a",
            gpus("init", 2, type=ContainerType.INIT),
            gpus("side", 1, type=ContainerType.SIDECAR, restartable=True),
            gpus("main", 1),
        ),
        allocation(
            DeviceHolding("g0", 1, "gpu", "side"),
            DeviceHolding("g1", 1, "gpu", "main"),
        ),
        {},
    )
    assert ids(found) == {"init": ["id:g0", "id:g1"], "side": ["id:g0"], "main": ["id:g1"]}


def test_units_of_a_pool_without_ids_are_open_and_shared_with_init_containers() -> None:
    found = with_devices(
        pod("a", gpus("init", 1, type=ContainerType.INIT), gpus("main", 2)),
        allocation(DeviceHolding("pool", 2, "gpu", "main"), pool=PluginOrigin(GPU, "")),
        {},
    )
    assert ids(found) == {"init": ["main/pool/0"], "main": ["main/pool/0", "main/pool/1"]}
    assert found.containers[1].requests[CLASS_GPU] == 2
    assert all(not each.id for each in found.containers[1].chosen[CLASS_GPU])


def test_devices_that_nobody_on_the_node_has_are_left_alone() -> None:
    own = pod("a", gpus("main", 1))
    bare = Allocation("here", (DeviceHolding("g0", 1, "gpu", "main"),))
    assert ids(with_devices(own, bare, {})) == {"main": []}


def test_two_containers_side_by_side_with_one_device_cannot_be() -> None:
    with pytest.raises(BadChoice, match=r"containers one and two both hold .* id:g0"):
        with_devices(
            pod("a", gpus("one", 1), gpus("two", 1)),
            allocation(DeviceHolding("g0", 1, "gpu", "one"), DeviceHolding("g0", 1, "gpu", "two")),
            {},
        )


def test_a_nic_is_asked_of_the_plugin_by_the_name_that_the_pod_or_the_settings_use() -> None:
    eth1 = allocation(DeviceHolding("eth1", 1, "gpu", "main"), eth1=PluginOrigin("nic", "eth1"))
    (plain,) = with_devices(pod("a", gpus("main", 1)), eth1, {}).containers
    assert plain.requests["NIC"] == 1
    assert plain.chosen == {"NIC": (DeviceChoice(resource="nic", id="eth1"),)}
    (fast,) = with_devices(pod("a", container("main", NIC=500, **{GPUS: 1})), eth1, {}).containers
    assert fast.requests["NIC"] == 500, "it asks for bandwidth"
    named = {"NIC": "example.org/nic"}
    asking = pod("a", container("main", **{GPUS: 1, "example.org/nic": 1}))
    (other,) = with_devices(asking, eth1, named).containers
    assert set(other.chosen) == {"example.org/nic"}
    assert "NIC" not in other.requests


def test_huge_pages_are_asked_for_together_with_memory() -> None:
    pages = allocation(
        DeviceHolding("hugepages-2Mi-numa1", 3, "gpu", "main"),
        **{"hugepages-2Mi-numa1": PluginOrigin("hugepages-2Mi", "numa1")},
    )
    (bare,) = with_devices(pod("a", gpus("main", 3)), pages, {}).containers
    assert bare.requests["hugepages-2Mi"] == 3 * 2 * MIB
    assert bare.requests["memory"] == 1
    (choice,) = bare.chosen["hugepages-2Mi"]
    assert (choice.id, choice.units) == ("numa1", 3)
    own = container("main", **{GPUS: 3, "hugepages-2Mi": 16 * MIB, "memory": 64 * MIB})
    (asking,) = with_devices(pod("a", own), pages, {}).containers
    assert asking.requests["hugepages-2Mi"] == 16 * MIB, "these are the same pages"
    assert asking.requests["memory"] == 64 * MIB
