"""A device plugin of somebody else, had by the agent alone: registered, followed, called."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.device_plugins.limits import DevicePluginDeadlines
from tests.node.device_plugins.rig import (
    RESOURCE,
    is_up,
    manager_of,
    plugin_in,
    plugin_of,
    status,
    until,
    until_up,
)

SHORT = DevicePluginDeadlines(allocate=5.0)


async def test_devices_health_and_numa_nodes_are_followed(directory: Path) -> None:
    with plugin_in(directory, devices=("GPU-0:1@1", "GPU-1:1@0,1", "bare")) as process:
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            assert {each.id: each.numa_nodes for each in plugin.devices.values()} == {
                "GPU-0:1": (1,),
                "GPU-1:1": (0, 1),
                "bare": (),
            }
            assert all(each.healthy for each in plugin.devices.values())
            process.control(unhealthy=["bare"], gone=["GPU-1:1"], add=["late@0"])
            await until(lambda: "late" in plugin.devices)
            found = {each.id: each.healthy for each in plugin.devices.values()}
            assert found == {"GPU-0:1": True, "bare": False, "late": True}
            assert [each.resource for each in manager.all()] == [RESOURCE]
            assert manager.of("vendor.com/other") is None


async def test_allocate_says_all_that_the_plugin_says(directory: Path) -> None:
    words = (
        *("--env", "GPUS={ids}", "--annotation", "vendor.com/ids={ids}"),
        *("--device-node", "/dev/zero:/dev/gpu{index}:rw", "--mount", "/opt/{safe}:/opt/gpu:ro"),
        *("--cdi", "vendor.com/gpu={safe}", "--pre-start", "--deallocate"),
    )
    with plugin_in(directory, *words) as process:
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            assert plugin.options.pre_start_required
            assert plugin.options.deallocates
            given = await plugin.allocate(["b:0"])
            assert given.envs == {"GPUS": "b:0"}
            assert given.annotations == {"vendor.com/ids": "b:0"}
            assert [
                (each.host_path, each.container_path, each.permissions) for each in given.devices
            ] == [("/dev/zero", "/dev/gpu1", "rw")]
            assert [(each.host_path, each.read_only) for each in given.mounts] == [
                ("/opt/b_0", True)
            ]
            assert given.cdi_devices == ("vendor.com/gpu=b_0",)
            await plugin.pre_start(["b:0"])
            await plugin.deallocate(["b:0"])
            assert [each["ids"] for each in process.calls("Allocate")] == [[["b:0"]]]
            assert [each["ids"] for each in process.calls("PreStartContainer")] == [["b:0"]]
            assert [each["ids"] for each in process.calls("Deallocate")] == [["b:0"]]


async def test_what_a_plugin_does_not_serve_is_not_called(directory: Path) -> None:
    with plugin_in(directory) as process:
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            await plugin.pre_start(["a:0"])
            await plugin.deallocate(["a:0"])
            assert (await plugin.allocate([])).envs == {}
            with pytest.raises(PluginError) as raised:
                await plugin.preferred(["a:0"], [], 1)
            assert raised.value.failure is PluginFailure.UNIMPLEMENTED
            usual = {"Register", "GetDevicePluginOptions", "ListAndWatch"}
            assert {each["call"] for each in process.calls()} <= usual


async def test_preferred_devices_are_asked_for(directory: Path) -> None:
    with plugin_in(directory, "--preferred", devices=("a", "b", "c")):
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            assert await plugin.preferred(["a", "b", "c"], ["a"], 2) == ("a", "c")
            with pytest.raises(PluginError) as raised:
                await plugin.preferred(["a"], [], 2)
            assert raised.value.failure is PluginFailure.GARBAGE


@pytest.mark.parametrize(
    ("ids", "words"), [(["a:0", "zz"], "zz is not among"), (["b:0"], "b:0 is unhealthy")]
)
async def test_unknown_and_unhealthy_devices_are_not_to_be_had(
    directory: Path, ids: list[str], words: str
) -> None:
    with plugin_in(directory) as process:
        process.control(unhealthy=["b:0"])
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            with pytest.raises(PluginError, match=words) as raised:
                await plugin.allocate(ids)
            assert raised.value.failure is PluginFailure.REFUSED
            assert not process.calls("Allocate")


async def test_a_plugin_that_dies_is_down_with_its_devices_and_comes_back(directory: Path) -> None:
    with plugin_in(directory) as process:
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            process.kill()
            await until(lambda: not plugin.up)
            assert plugin.down_since is not None
            assert {each.healthy for each in plugin.devices.values()} == {False}
            with pytest.raises(PluginError) as raised:
                await plugin.allocate(["a:0"])
            assert raised.value.failure is PluginFailure.DOWN
            process.start()
            await until_up(manager)
            assert plugin_of(manager) is plugin
            assert plugin.down_since is None
            assert plugin.devices["a:0"].healthy


async def test_a_plugin_is_redialled_after_a_restart_of_the_agent(directory: Path) -> None:
    """One that registers once, and never looks whether there is a new agent."""
    with plugin_in(directory, "--register-once", "--pre-start") as process:
        async with manager_of(directory) as manager:
            await until_up(manager)
            await until(lambda: "a:0" in plugin_of(manager).devices)
        async with manager_of(directory) as manager:
            # Known before it is up.
            assert "a:0" in plugin_of(manager).devices
            assert plugin_of(manager).options.pre_start_required
            plugin = await until_up(manager)
            await until(lambda: plugin.devices["a:0"].healthy)
            assert len(process.calls("Register")) == 1
            process.kill()
            await until(lambda: not plugin.up)
        async with manager_of(directory) as manager:
            assert not plugin_of(manager).devices["a:0"].healthy
            assert status(manager).state in ("waiting", "connecting", "failed")
            process.start()
            await until_up(manager)


async def test_plugins_register_again_with_a_new_agent(directory: Path) -> None:
    with plugin_in(directory) as process:
        async with manager_of(directory) as manager:
            await until_up(manager)
        (directory / "state" / "device-plugins.json").unlink()
        async with manager_of(directory) as manager:
            await until_up(manager)
            await until(lambda: len(process.calls("Register")) >= 2)


async def test_the_registration_socket_is_made_anew_if_it_goes(directory: Path) -> None:
    async with manager_of(directory) as manager:
        (directory / "plugins" / "kubelet.sock").unlink()
        await until((directory / "plugins" / "kubelet.sock").is_socket)
        with plugin_in(directory):
            await until_up(manager)
    assert not (directory / "plugins" / "kubelet.sock").exists()


async def test_a_newer_plugin_takes_over(directory: Path) -> None:
    async with manager_of(directory) as manager:
        with plugin_in(directory, "--endpoint", "old.sock", devices=("old",)) as old:
            plugin = await until_up(manager)
            await until(lambda: "old" in plugin.devices)
            with plugin_in(directory, "--endpoint", "new.sock", devices=("new",)):
                await until(lambda: "new" in plugin.devices)
                assert "old" not in plugin.devices
                assert status(manager).socket.endswith("new.sock")
                old.kill()
                assert is_up(manager)


async def test_a_plugin_that_calls_itself_otherwise_has_no_devices_by_its_old_name(
    directory: Path,
) -> None:
    renamed, at = "vendor.com/renamed", ("--endpoint", "one.sock")
    async with manager_of(directory) as manager:
        with plugin_in(directory, *at, devices=("a",)):
            old = await until_up(manager)
            manager.set_held(RESOURCE, ["a"])
        with plugin_in(directory, *at, devices=("a",), resource=renamed):
            await until_up(manager, renamed)
            await until(lambda: not old.up)
            assert status(manager).state == "waiting"
        with plugin_in(directory, *at, devices=("a",), resource="vendor.com/again"):
            await until_up(manager, "vendor.com/again")
            await until(lambda: manager.of(renamed) is None)
    with plugin_in(directory, *at, devices=("a",), resource=renamed):
        async with manager_of(directory) as manager:
            await until_up(manager, renamed)
            assert status(manager).state == "waiting"
            assert not any(each.healthy for each in plugin_of(manager).devices.values())
            with plugin_in(directory, "--endpoint", "two.sock", devices=("b",)):
                await until_up(manager)
                assert is_up(manager, renamed)


async def test_plugins_do_not_hinder_each_other(directory: Path) -> None:
    """One hangs, one is killed, one has a list without end: the fourth is as it was."""
    good, hung, dead, loud = (f"vendor.com/{each}" for each in ("good", "hung", "dead", "loud"))
    with (
        plugin_in(directory, resource=good),
        plugin_in(directory, resource=hung) as hanging,
        plugin_in(directory, resource=dead) as dying,
        plugin_in(directory, resource=loud) as flooding,
    ):
        async with manager_of(directory, deadlines=SHORT) as manager:
            for each in (good, hung, dead, loud):
                await until_up(manager, each)
            hanging.send_signal(signal.SIGSTOP)
            dying.kill()
            flooding.control(end_stream=True)
            try:
                with pytest.raises(PluginError) as raised:
                    await plugin_of(manager, hung).allocate(["a:0"])
                assert raised.value.failure is PluginFailure.TIMEOUT
                given = await asyncio.gather(
                    *(plugin_of(manager, good).allocate(["a:0"]) for _ in range(5))
                )
                assert len(given) == 5
                assert is_up(manager, good)
            finally:
                hanging.send_signal(signal.SIGCONT)


async def test_statuses_say_how_each_fares(directory: Path) -> None:
    with plugin_in(directory) as process:
        async with manager_of(directory) as manager:
            plugin = await until_up(manager)
            manager.set_held(RESOURCE, ["a:0"])
            found = status(manager)
            assert (found.mode, found.state, found.error) == ("exclusive", "up", "")
            assert (found.devices, found.healthy, found.held_by_classes) == (2, 2, 1)
            process.kill()
            await until(lambda: not plugin.up)
            found = status(manager)
            assert found.state in ("failed", "connecting", "waiting")
            assert "ListAndWatch" in found.error
            assert found.healthy == 0
