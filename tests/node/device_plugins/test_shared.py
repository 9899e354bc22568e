"""A device plugin that the agent shares with the kubelet: one holder, two who give devices out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.device_plugins import sharing
from tests.node.device_plugins.rig import (
    RESOURCE,
    FakeKubelet,
    kubelet_in,
    made,
    manager_of,
    plugin_in,
    status,
    until,
    until_up,
)
from tests.support.node.device_plugin_program import API

SHARED = {"shared": [RESOURCE]}


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "READ_SECONDS", 0.05)
    monkeypatch.setattr(sharing, "AGAIN_SECONDS", 0.2)


def health(kubelet: FakeKubelet) -> dict[str, str]:
    return kubelet.lists[-1] if kubelet.lists else {}


async def test_the_kubelet_gets_what_classes_do_not_hold(directory: Path) -> None:
    words = ("--env", "GPUS={ids}", "--preferred", "--pre-start")
    with plugin_in(directory, *words) as process:
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            plugin = await until_up(manager)
            await until(lambda: health(kubelet) == {"a:0": "Healthy", "b:0": "Healthy"})
            (registered,) = kubelet.registered
            assert registered.resource_name == RESOURCE
            assert registered.options.get_preferred_allocation_available
            await plugin.allocate(["a:0"])
            manager.set_held(RESOURCE, ["a:0"])
            await until(lambda: health(kubelet) == {"a:0": "Unhealthy", "b:0": "Healthy"})
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await kubelet.allocate("direct", ["a:0"])
            assert "a:0 is held by a pod that got it by a resource class" in (
                raised.value.details() or ""
            )
            answer = await kubelet.allocate("direct", ["b:0"])
            assert answer.container_responses[0].envs == {"GPUS": "b:0"}
            # Once by the class, once by the kubelet; the refused one never reached it.
            assert [each["ids"] for each in process.calls("Allocate")] == [[["a:0"]], [["b:0"]]]
            request = API["PreStartContainerRequest"](devices_ids=["b:0"])
            await kubelet.ask("PreStartContainer", request, "PreStartContainerResponse")
            assert [each["ids"] for each in process.calls("PreStartContainer")] == [["b:0"]]
            assert status(manager).mode == "shared"
            assert status(manager).kubelet == ""


async def test_questions_and_answers_pass_as_they_came(directory: Path) -> None:
    """With a field that nobody here declares."""
    with plugin_in(directory) as process:
        process.control(raw={"GetPreferredAllocation": "0a050a01629a0600"})
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            await until_up(manager)
            await until(lambda: kubelet.registered)
            assert kubelet.channel
            method = "/v1beta1.DevicePlugin/GetPreferredAllocation"
            asking: Any = kubelet.channel.unary_unary(method)
            answer = await asking(b"\x0a\x05\x0a\x01b\x18\x01", timeout=60)
            assert answer == bytes.fromhex("0a050a01629a0600")


async def test_what_the_kubelet_gave_out_no_class_gets(directory: Path) -> None:
    with plugin_in(directory, devices=("a", "b", "c")) as process:
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            plugin = await until_up(manager)
            await until(lambda: kubelet.registered)
            await kubelet.allocate("direct", ["a"])
            assert plugin.held_elsewhere(["a", "b"]) == ["a"]
            with pytest.raises(PluginError, match="the kubelet gave a to a pod") as raised:
                await plugin.allocate(["a", "b"])
            assert raised.value.failure is PluginFailure.REFUSED
            assert not plugin.holders.held_by_classes()
            await plugin.allocate(["b"])
            assert len(process.calls("Allocate")) == 2
            # The pod ends. The kubelet forgets it, and its checkpoint is written anew by our list.
            del kubelet.pods["direct"]
            await until(lambda: not plugin.held_elsewhere(["a"]))
            await plugin.allocate(["a"])


async def test_devices_of_init_containers_are_seen_in_the_checkpoint(directory: Path) -> None:
    with plugin_in(directory):
        async with kubelet_in(directory) as kubelet:
            kubelet.hidden = ["a:0"]
            kubelet.write()
            async with manager_of(directory, **SHARED) as manager:
                plugin = await until_up(manager)
                await until(lambda: plugin.held_elsewhere(["a:0", "b:0"]) == ["a:0"])
                with pytest.raises(PluginError, match="the kubelet gave a:0"):
                    await plugin.allocate(["a:0"])


async def test_of_two_who_want_one_device_the_first_has_it(directory: Path) -> None:
    devices = [f"d{number}" for number in range(8)]
    with plugin_in(directory, devices=devices) as process:
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            plugin = await until_up(manager)
            await until(lambda: kubelet.registered)
            found = await asyncio.gather(
                *(kubelet.allocate(f"pod-{each}", [each]) for each in devices),
                *(plugin.allocate([each]) for each in reversed(devices)),
                return_exceptions=True,
            )
            kubelets, classes = found[: len(devices)], found[len(devices) :][::-1]
            for each, direct, by_class in zip(devices, kubelets, classes, strict=True):
                refused = [isinstance(one, BaseException) for one in (direct, by_class)]
                assert refused in ([True, False], [False, True]), each
            given = [
                id_ for each in process.calls("Allocate") for ids in each["ids"] for id_ in ids
            ]
            assert sorted(given) == devices


async def test_a_restarted_kubelet_finds_the_agent_again(directory: Path) -> None:
    with plugin_in(directory) as process:
        async with manager_of(directory, **SHARED) as manager:
            plugin = await until_up(manager)
            await plugin.allocate(["a:0"])
            manager.set_held(RESOURCE, ["a:0"])
            for _ in range(3):
                async with kubelet_in(directory) as kubelet:
                    await until(lambda: health(kubelet) == {"a:0": "Unhealthy", "b:0": "Healthy"})
                    await kubelet.allocate("direct", ["b:0"])
            # A kubelet that is away changes nothing of what its pods have.
            assert plugin.held_elsewhere(["b:0"]) == ["b:0"]
            assert len(process.calls("ListAndWatch")) == 1


async def test_a_restarted_agent_knows_who_holds_what(directory: Path) -> None:
    with plugin_in(directory):
        async with kubelet_in(directory) as kubelet:
            async with manager_of(directory, **SHARED) as manager:
                await until_up(manager)
                await until(lambda: kubelet.registered)
                await kubelet.allocate("direct", ["b:0"])
            manager = made(directory, **SHARED)
            manager.set_held(RESOURCE, ["a:0"])
            seen = len(kubelet.lists)
            await manager.start()
            try:
                plugin = await until_up(manager)
                await until(lambda: len(kubelet.lists) > seen)
                # From the very first list of the new agent.
                assert all(each["a:0"] == "Unhealthy" for each in kubelet.lists[seen:])
                with pytest.raises(PluginError):
                    await plugin.allocate(["b:0"])
            finally:
                await manager.stop()


async def test_a_plugin_that_goes_is_unhealthy_at_the_kubelet_until_it_is_back(
    directory: Path,
) -> None:
    with plugin_in(directory) as process:
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            await until_up(manager)
            await until(lambda: health(kubelet).get("a:0") == "Healthy")
            process.kill()
            await until(lambda: health(kubelet) == {"a:0": "Unhealthy", "b:0": "Unhealthy"})
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await kubelet.allocate("direct", ["a:0"])
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            process.start()
            await until(lambda: health(kubelet).get("a:0") == "Healthy")
            assert len(kubelet.registered) == 1


async def test_without_a_readable_checkpoint_classes_get_nothing(directory: Path) -> None:
    with plugin_in(directory):
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            plugin = await until_up(manager)
            await until(lambda: kubelet.registered)
            kubelet.garbage = '{"Data": 7}'
            kubelet.write()
            await until(lambda: "cannot be read" in plugin.holders.unknown)
            with pytest.raises(PluginError, match="not known which devices the kubelet gave"):
                await plugin.allocate(["a:0"])
            kubelet.garbage = ""
            kubelet.write()
            await until(lambda: not plugin.holders.unknown)
            await plugin.allocate(["a:0"])


async def test_an_exclusive_plugin_is_not_shown_to_the_kubelet(directory: Path) -> None:
    with (
        plugin_in(directory, resource="vendor.com/own"),
        plugin_in(directory, devices=("a",)),
    ):
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            await until_up(manager, "vendor.com/own")
            await until_up(manager)
            await until(lambda: health(kubelet) == {"a": "Healthy"})
            assert {each.resource_name for each in kubelet.registered} == {RESOURCE}


async def test_what_the_kubelet_gave_out_before_is_not_given_by_an_exclusive_plugin(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with plugin_in(directory, devices=("a", "b")):
        async with kubelet_in(directory) as kubelet, manager_of(directory, **SHARED) as manager:
            await until_up(manager)
            await until(lambda: health(kubelet) == {"a": "Healthy", "b": "Healthy"})
            await kubelet.allocate("direct", ["a"])
        for is_new in (True, False):
            if is_new:
                (directory / "state" / "device-plugins.json").unlink()
            async with kubelet_with_a(directory), manager_of(directory) as manager:
                plugin = await until_up(manager)
                with pytest.raises(PluginError, match="the kubelet gave a to a pod"):
                    await plugin.allocate(["a"])
                await plugin.allocate(["b"])
        monkeypatch.setattr("dovetail.node.device_plugins.sharing.UNTOLD_SECONDS", 0.0)
        async with kubelet_with_a(directory) as kubelet:
            kubelet.pods = {}
            assert kubelet.written == ["a"], "it ended, and the checkpoint does not know"
            async with manager_of(directory) as manager:
                plugin = await until_up(manager)
                await until(lambda: not plugin.held_elsewhere(["a"]))
                await plugin.allocate(["a"])


@asynccontextmanager
async def kubelet_with_a(directory: Path) -> AsyncIterator[FakeKubelet]:
    """Restarted, with a pod that has the device a."""
    async with kubelet_in(directory) as kubelet:
        kubelet.pods = {"direct": ["a"]}
        kubelet.write()
        yield kubelet
