"""Plugins that answer with nonsense, hang or lie: they are told, and others are unaffected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.device_plugins.device_list import read_list
from dovetail.node.device_plugins.limits import MOST_DEVICES, MOST_RESOURCES
from dovetail.node.device_plugins.manager import DevicePluginManager
from dovetail.wire.codec import BadMessage
from tests.node.device_plugins.rig import (
    HASTY,
    HASTY_ALLOCATE,
    RESOURCE,
    is_up,
    manager_of,
    plugin_in,
    plugin_of,
    status,
    until,
    until_up,
)
from tests.support.node.device_plugin_program import API


def listing(*devices: tuple[str, str, list[int]]) -> bytes:
    made = API["ListAndWatchResponse"]()
    for id_, health, nodes in devices:
        device = made.devices.add(ID=id_, health=health)
        for node in nodes:
            device.topology.nodes.add(ID=node)
    data: bytes = made.SerializeToString()
    return data


def test_a_device_listed_twice_is_one_and_as_good_as_the_worse() -> None:
    found = read_list(listing(("a", "Healthy", [0]), ("b", "Healthy", []), ("a", "Unhealthy", [1])))
    assert {each.id: (each.healthy, each.numa_nodes) for each in found.devices.values()} == {
        "a": (False, (0, 1)),
        "b": (True, ()),
    }
    assert "1 IDs were listed twice" in found.troubles[0]


def test_devices_without_a_usable_id_are_left_out_and_said() -> None:
    found = read_list(listing(("", "Healthy", []), ("x" * 5000, "Healthy", []), ("b", "?", [])))
    assert list(found.devices) == ["b"]
    assert not found.devices["b"].healthy
    assert len(found.troubles) == 2


def test_nodes_that_no_machine_has_are_no_nodes() -> None:
    found = read_list(listing(("a", "Healthy", [-1, 3, 3, 10**12])))
    assert found.devices["a"].numa_nodes == (3,)


def test_lists_without_measure_are_no_lists() -> None:
    one = API["Device"](ID="d", health="Healthy").SerializeToString()
    many = (b"\x0a" + bytes([len(one)]) + one) * (MOST_DEVICES + 1)
    with pytest.raises(BadMessage, match=str(MOST_DEVICES)):
        read_list(many)


def test_bytes_that_are_no_text_are_no_id() -> None:
    with pytest.raises(BadMessage):
        read_list(b"\x0a\x04\x0a\x02\xff\xfe")


@pytest.mark.parametrize(
    "behaviour",
    [
        {"garbage": ["ListAndWatch"]},
        {"raw": {"ListAndWatch": "0a040a02fffe"}},
        {"hang": ["ListAndWatch"]},
        {"hang": ["GetDevicePluginOptions"]},
        {"refuse": {"GetDevicePluginOptions": "not in the mood"}},
        {"end_stream": True},
    ],
    ids="-".join,
)
async def test_a_plugin_without_a_list_is_not_up_and_tried_again(
    directory: Path, behaviour: dict[str, Any]
) -> None:
    """Each is told in the status; when it behaves again it is up."""
    with plugin_in(directory) as process:
        process.control(**behaviour)
        async with manager_of(directory, deadlines=HASTY) as manager:
            await until(lambda: manager.statuses() and status(manager).retries >= 2)
            assert status(manager).error
            process.control()
            await until_up(manager)
            given = await plugin_of(manager).allocate(["a:0"])
            assert given.envs == {}


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        ({"hang": ["Allocate"]}, PluginFailure.TIMEOUT),
        ({"garbage": ["Allocate"]}, PluginFailure.GARBAGE),
        ({"answers": 0}, PluginFailure.GARBAGE),
        ({"answers": 2}, PluginFailure.GARBAGE),
        ({"refuse": {"Allocate": "the card is on fire"}}, PluginFailure.REFUSED),
        ({"die": "Allocate"}, PluginFailure.DOWN),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else each,
)
async def test_an_allocation_that_fails_takes_nothing(
    directory: Path, behaviour: dict[str, Any], failure: PluginFailure
) -> None:
    deadlines = HASTY_ALLOCATE if "hang" in behaviour else None
    with plugin_in(directory) as process:
        async with manager_of(directory, deadlines=deadlines) as manager:
            plugin = await until_up(manager)
            process.control(**behaviour)
            with pytest.raises(PluginError) as raised:
                await plugin.allocate(["a:0"])
            assert raised.value.failure is failure
            assert RESOURCE in str(raised.value)
            assert not plugin.holders.held_by_classes()


@pytest.mark.parametrize(
    "words",
    [
        ("--env", "=x"),
        ("--mount", "relative:/there"),
        ("--device-node", "/dev/zero:there"),
        ("--device-node", "/dev/zero:/dev/x:rwx"),
        ("--cdi", "nonsense"),
    ],
    ids=lambda each: each[1],
)
async def test_what_no_container_could_be_given_is_garbage(
    directory: Path, words: tuple[str, str]
) -> None:
    with plugin_in(directory, *words):
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            with pytest.raises(PluginError) as raised:
                await plugin.allocate(["a:0"])
            assert raised.value.failure is PluginFailure.GARBAGE


async def register(directory: Path, **fields: Any) -> str:
    """The words of the refusal; empty if there is none."""
    request = API["RegisterRequest"](
        **{"version": "v1beta1", "endpoint": "x.sock", "resource_name": RESOURCE, **fields}
    )
    async with grpc.aio.insecure_channel(f"unix:{directory}/plugins/kubelet.sock") as channel:
        asking: Any = channel.unary_unary("/v1beta1.Registration/Register")
        try:
            await asking(request.SerializeToString(), timeout=60)
        except grpc.aio.AioRpcError as error:
            return error.details() or "refused"
    return ""


@pytest.mark.parametrize(
    "fields",
    [
        {"version": "v1alpha1"},
        {"version": ""},
        {"resource_name": "gpu"},
        {"resource_name": ""},
        {"resource_name": "kubernetes.io/gpu"},
        {"resource_name": "node.kubernetes.io/gpu"},
        {"resource_name": "requests.vendor.com/gpu"},
        {"resource_name": "vendor.com/" + "x" * 64},
        {"resource_name": "vendor.com/a/b"},
        {"resource_name": "vendor.com/gpu\n"},
        {"endpoint": ""},
        {"endpoint": ".."},
        {"endpoint": "../../run/containerd.sock"},
        {"endpoint": "/run/containerd.sock"},
        {"endpoint": "kubelet.sock"},
        {"endpoint": "x" * 120},
    ],
    ids=lambda each: "-".join(f"{name}={value[:30]!r}" for name, value in each.items()),
)
async def test_registrations_that_cannot_be_met_are_refused_with_the_reason(
    directory: Path, fields: dict[str, str]
) -> None:
    async with manager_of(directory) as manager:
        assert await register(directory, **fields)
        assert not manager.statuses()


async def test_no_more_resources_than_can_be_looked_after(directory: Path) -> None:
    async with manager_of(directory) as manager:
        for number in range(MOST_RESOURCES):
            told = {"resource_name": f"vendor.com/r{number}", "endpoint": f"r{number}.sock"}
            assert not await register(directory, **told)
        assert "already" in await register(directory, resource_name="vendor.com/one-more")
        assert not await register(directory, resource_name="vendor.com/r7", endpoint="r7.sock")
        assert len(manager.statuses()) == MOST_RESOURCES


async def test_one_that_calls_itself_otherwise_all_the_time_leaves_room(directory: Path) -> None:
    async with manager_of(directory) as manager:
        for number in range(MOST_RESOURCES + 1):
            assert not await register(directory, resource_name=f"vendor.com/r{number}")
        assert [each.resource for each in manager.statuses()] == [f"vendor.com/r{number}"]


async def test_a_link_to_another_socket_is_no_plugin(directory: Path) -> None:
    with plugin_in(directory, "--endpoint", "true.sock", resource="vendor.com/true"):
        async with manager_of(directory) as manager:
            await until_up(manager, "vendor.com/true")
            (directory / "plugins" / "x.sock").symlink_to("true.sock")
            assert not await register(directory)
            await until(lambda: len(manager.statuses()) == 2)
            assert status(manager).state == "waiting"
            assert not is_up(manager)


async def test_a_corrupt_record_is_set_aside(directory: Path) -> None:
    (directory / "state").mkdir()
    (directory / "state" / "device-plugins.json").write_text('{"plugins": 7')
    with plugin_in(directory):
        async with manager_of(directory) as manager:
            await until_up(manager)
    assert (directory / "state" / "device-plugins.json.corrupt-1").exists()


async def test_an_uninstalled_plugin_is_forgotten_unless_something_is_held(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dovetail.node.device_plugins.manager.GONE_SECONDS", 0.0)

    def known(manager: DevicePluginManager) -> list[str]:
        return [each.resource for each in manager.all()]

    async with manager_of(directory) as manager:
        with plugin_in(directory) as process:
            plugin = await until_up(manager)
            manager.set_held(RESOURCE, ["a:0"])
            process.kill()
            for each in (directory / "plugins").glob("vendor*.sock"):
                each.unlink()
            await until(lambda: not plugin.up and status(manager).state == "waiting")
        assert known(manager) == [RESOURCE]
        manager.set_held(RESOURCE, [])
        await until(lambda: not known(manager))
        assert not manager.statuses()
