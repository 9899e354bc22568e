"""How plugins come to be known, and what becomes of those that cannot be used."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket as sockets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from dovetail.aio.backoff import doubling
from dovetail.core.errors import DovetailError
from dovetail.node.registry.registration import FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS
from dovetail.node.registry.registry import Registry
from dovetail.node.wire.registration import GET_INFO, NOTIFY_REGISTRATION_STATUS, PluginInfo
from dovetail.node.wire.resource_plugin import ALLOCATE, ResourcePluginOptions, TopologyHint
from dovetail.wire.rpc import Method, Refused, Served
from tests.node.registry.rig import (
    HASTY,
    REQUEST,
    Pinner,
    is_up,
    plugin_at,
    registry_of,
    serving,
    state,
    status,
    until_state,
)
from tests.support.loops import eventually


async def test_a_plugin_that_is_there_already_is_registered(directory: Path) -> None:
    plugin = Pinner(with_topology_alignment=True, need_reconcile=True)
    async with plugin_at(directory / "cpu.sock", plugin), registry_of(directory) as registry:
        await eventually(lambda: is_up(registry))
        found = registry.of("cpu")
        assert found
        assert found.options == ResourcePluginOptions(
            with_topology_alignment=True, need_reconcile=True
        )
        assert found.down_since is None
        assert [each.plugin_registered for each in plugin.told] == [True]
        answer = await found.call(ALLOCATE, REQUEST)
        assert answer.allocation_result
        assert answer.allocation_result.resource_allocation["cpu"].allocation_result == "0"
        told = status(registry, directory / "cpu.sock")
        assert told
        assert (told.resource, told.up, told.versions) == ("cpu", True, ("v1alpha1",))
        assert (told.error, told.retries, told.next_retry, told.legacy) == ("", 0, None, False)


async def test_one_that_comes_later_even_in_a_new_subdirectory(directory: Path) -> None:
    async with registry_of(directory / "made" / "by us") as registry:
        below = directory / "made" / "by us" / "vendor"
        below.mkdir()
        async with plugin_at(below / "memory.sock", Pinner("memory")):
            await eventually(lambda: is_up(registry, "memory"))


async def test_all_are_listed_by_name(directory: Path) -> None:
    async with (
        registry_of(directory) as registry,
        plugin_at(directory / "1.sock", Pinner("nic")),
        plugin_at(directory / "2.sock", Pinner("cpu")),
    ):
        registry.remember("memory", ResourcePluginOptions(need_reconcile=True))
        await eventually(lambda: is_up(registry, "cpu") and is_up(registry, "nic"))
        assert [each.resource for each in registry.all()] == ["cpu", "memory", "nic"]


async def test_what_is_no_socket_or_has_a_dot_is_left_alone(directory: Path) -> None:
    (directory / "state.json").write_text("{}")
    (directory / ".hidden").mkdir()
    async with (
        plugin_at(directory / ".draft.sock", Pinner("draft")),
        plugin_at(directory / ".hidden" / "a.sock", Pinner("hidden")),
        registry_of(directory) as registry,
        plugin_at(directory / "cpu.sock", Pinner()),
    ):
        await eventually(lambda: is_up(registry))
        assert [each.resource for each in registry.statuses()] == ["cpu"]


async def test_a_directory_named_twice_gives_each_plugin_once(directory: Path) -> None:
    (directory / "real").mkdir()
    (directory / "link").symlink_to("real")
    plugin = Pinner()
    async with (
        plugin_at(directory / "real" / "cpu.sock", plugin),
        registry_of(directory / "link", directory / "real") as registry,
    ):
        await eventually(lambda: is_up(registry))
        assert len(registry.statuses()) == 1


async def test_a_directory_that_is_deleted_is_made_again(directory: Path) -> None:
    """Plugins wait for it: they do not make it themselves."""
    own = directory / "own"
    async with registry_of(own) as registry, plugin_at(own / "cpu.sock", Pinner()):
        await eventually(lambda: is_up(registry))
        shutil.rmtree(own)
        await eventually(lambda: not is_up(registry))
        await eventually(lambda: is_up(registry))


async def test_a_directory_that_cannot_be_made_is_no_reason_not_to_see_others(
    directory: Path,
) -> None:
    lost, other = directory / "lost", directory / "other"
    async with registry_of(lost, other) as registry:
        lost.rmdir()
        lost.write_text("a file")
        async with plugin_at(other / "cpu.sock", Pinner()):
            await eventually(lambda: is_up(registry))
            assert list(registry.troubles) == [f"directory {lost}"]
            lost.unlink()
            await eventually(lost.is_dir)
            await eventually(lambda: not registry.troubles)


async def test_names_that_are_no_text_are_left_alone(directory: Path) -> None:
    with sockets.socket(sockets.AF_UNIX) as strange:
        strange.bind(os.fsencode(directory) + b"/\xff.sock")
        async with registry_of(directory) as registry, plugin_at(directory / "cpu.sock", Pinner()):
            await eventually(lambda: is_up(registry))
            assert [each.resource for each in registry.statuses()] == ["cpu"]


async def test_one_is_forgotten_only_if_nobody_is_there_who_may_be_it(directory: Path) -> None:
    silent = directory / "silent.sock"
    async with registry_of(directory) as registry:
        async with plugin_at(directory / "cpu.sock", Pinner()):
            await eventually(lambda: is_up(registry))
            assert not registry.forget("cpu"), "it is up"
        with sockets.socket(sockets.AF_UNIX) as listening:
            listening.bind(str(silent))
        await eventually(lambda: list(registry.registrations) == [str(silent)])
        assert not registry.forget("cpu"), "nobody knows who is there"
        silent.unlink()
        await eventually(lambda: not registry.registrations)
        assert registry.forget("cpu")
        assert registry.of("cpu") is None
        assert not registry.statuses()
        assert not registry.forget("cpu")


async def test_one_that_goes_is_down_and_stays_known(directory: Path) -> None:
    async with registry_of(directory) as registry:
        async with plugin_at(directory / "cpu.sock", Pinner()):
            await eventually(lambda: is_up(registry))
        await eventually(lambda: not is_up(registry))
        found = registry.of("cpu")
        assert found
        assert found.down_since is not None
        await eventually(lambda: [each.state for each in registry.statuses()] == ["gone"])


async def test_one_that_is_made_again_is_registered_again(directory: Path) -> None:
    async with registry_of(directory) as registry:
        first = Pinner(need_reconcile=False)
        async with plugin_at(directory / "cpu.sock", first):
            await eventually(lambda: is_up(registry))
        second = Pinner(need_reconcile=True)
        async with plugin_at(directory / "cpu.sock", second):
            await eventually(lambda: is_up(registry) and second.told)
            found = registry.of("cpu")
            assert found
            assert found.options.need_reconcile


async def test_one_that_dies_without_removing_its_socket_is_down_at_once(directory: Path) -> None:
    """As after SIGKILL: nobody listens, the file stays."""
    socket = directory / "cpu.sock"
    async with registry_of(directory) as registry:
        async with plugin_at(socket, Pinner()) as server:
            await eventually(lambda: is_up(registry))
            server.inode = None
        assert socket.exists()
        await eventually(lambda: not is_up(registry))
        await eventually(lambda: state(registry, socket) == "failed")


async def test_what_was_known_before_a_restart_is_down_until_it_registers(directory: Path) -> None:
    async with registry_of(directory) as registry:
        registry.remember("cpu", ResourcePluginOptions(need_reconcile=True))
        found = registry.of("cpu")
        assert found
        assert not found.up
        assert found.down_since is not None
        assert found.options.need_reconcile
        (told,) = registry.statuses()
        assert (told.resource, told.socket, told.state) == ("cpu", "", "gone")
        async with plugin_at(directory / "cpu.sock", Pinner()):
            await eventually(lambda: is_up(registry))
            assert registry.of("cpu") is found


class TestTwoForOneResource:
    async def test_the_newer_takes_over_and_the_older_comes_back(self, directory: Path) -> None:
        older, newer = directory / "b.sock", directory / "a.sock"
        async with registry_of(directory) as registry, plugin_at(older, Pinner()):
            await eventually(lambda: is_up(registry))
            new = Pinner()
            async with plugin_at(newer, new):
                await eventually(lambda: state(registry, newer) == "up")
                await eventually(lambda: state(registry, older) == "superseded")
                told = status(registry, older)
                assert told
                assert told.error == f"a newer plugin at {newer} serves cpu"
                found = registry.of("cpu")
                assert found
                await found.call(ALLOCATE, REQUEST)
                assert new.asked
            await eventually(lambda: state(registry, older) == "up")

    async def test_the_order_in_which_they_are_found_does_not_matter(self, directory: Path) -> None:
        older, newer = Pinner(), Pinner()
        async with (
            plugin_at(directory / "a.sock", older),
            plugin_at(directory / "b.sock", newer),
        ):
            for _ in range(3):
                async with registry_of(directory) as registry:
                    await until_state(registry, directory / "b.sock", "up")
                    await until_state(registry, directory / "a.sock", "superseded")

    async def test_the_older_takes_over_when_the_newer_dies(self, directory: Path) -> None:
        async with (
            registry_of(directory) as registry,
            plugin_at(directory / "old.sock", Pinner()),
        ):
            async with plugin_at(directory / "new.sock", Pinner()) as newer:
                await eventually(lambda: state(registry, directory / "new.sock") == "up")
                newer.inode = None
            assert (directory / "new.sock").exists()
            await eventually(lambda: state(registry, directory / "old.sock") == "up")


def says(**info: Any) -> Served:
    async def handler(_: object) -> PluginInfo:
        return PluginInfo(**info)

    return Served(GET_INFO, handler)


async def test_plugins_of_other_types_are_not_even_notified(directory: Path) -> None:
    told: list[Any] = []

    async def notified(given: Any) -> Any:
        told.append(given)

    socket = directory / "gpu.sock"
    info = says(type="DevicePlugin", name="gpu", supported_versions=("v1beta1",))
    async with (
        serving(socket, [info, Served(NOTIFY_REGISTRATION_STATUS, notified)]),
        registry_of(directory) as registry,
    ):
        await eventually(lambda: state(registry, socket) == "ignored")
        assert not told
        assert not registry.all()


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (
            {"name": "cpu", "supported_versions": ("v2", "v3")},
            "the plugin for cpu speaks the versions v2, v3; v1alpha1 is needed",
        ),
        ({"name": "cpu"}, "the plugin for cpu speaks the versions none; v1alpha1 is needed"),
        (
            {"name": "", "supported_versions": ("v1alpha1",)},
            "'' is no name of a resource, such as cpu or vendor.com/nic",
        ),
        (
            {"name": "../cpu\n", "supported_versions": ("v1alpha1",)},
            "'../cpu\\n' is no name of a resource, such as cpu or vendor.com/nic",
        ),
    ],
)
async def test_one_that_cannot_be_used_is_told_why(
    directory: Path, info: dict[str, Any], words: str
) -> None:
    plugin = Pinner()
    socket = directory / "cpu.sock"
    notified = Served(NOTIFY_REGISTRATION_STATUS, plugin.notify_registration_status)
    async with (
        serving(socket, [says(type="ResourcePlugin", **info), notified]),
        registry_of(directory) as registry,
    ):
        await eventually(lambda: state(registry, socket) == "failed")
        assert [(each.plugin_registered, each.error) for each in plugin.told] == [(False, words)]
        told = status(registry, socket)
        assert told
        assert told.error == words
        assert told.retries == 1
        assert told.next_retry
        assert not registry.all()


async def test_one_that_introduces_itself_with_garbage_is_told_so(directory: Path) -> None:
    plugin = Pinner()
    socket = directory / "cpu.sock"
    # A request where an answer should be: its number 1 is no string.
    garbled = Method(GET_INFO.service, GET_INFO.name, GET_INFO.question, TopologyHint)

    async def garbage(_: object) -> TopologyHint:
        return TopologyHint(nodes=(255,), preferred=True)

    notified = Served(NOTIFY_REGISTRATION_STATUS, plugin.notify_registration_status)
    async with (
        serving(socket, [Served(garbled, garbage), notified]),
        registry_of(directory) as registry,
    ):
        await eventually(lambda: state(registry, socket) == "failed")
        (told,) = plugin.told
        assert not told.plugin_registered
        assert "bytes are no PluginInfo" in told.error


async def forever(_: object) -> Any:
    await asyncio.sleep(60)


async def no(_: object) -> Any:
    raise Refused(grpc.StatusCode.INTERNAL, "no")


class Crooked(Pinner):
    """One of whose methods is replaced."""

    def __init__(self, method: str, handler: Callable[[Any], Awaitable[Any]]) -> None:
        super().__init__()
        setattr(self, method, handler)


@pytest.mark.parametrize("handler", [forever, no])
@pytest.mark.parametrize(
    "method", ["get_info", "get_resource_plugin_options", "notify_registration_status"]
)
async def test_one_that_hangs_or_fails_while_it_registers_is_not_registered(
    directory: Path, method: str, handler: Callable[[Any], Awaitable[Any]]
) -> None:
    crooked = directory / "cpu.sock"
    async with (
        plugin_at(crooked, Crooked(method, handler)),
        plugin_at(directory / "memory.sock", Pinner("memory")),
        registry_of(directory, deadlines=HASTY) as registry,
    ):
        await eventually(lambda: is_up(registry, "memory"))
        await eventually(lambda: state(registry, crooked) == "failed")
        # A resource whose plugin was never fit is not known: pods need not wait for it.
        assert registry.of("cpu") is None


async def test_one_that_failed_is_tried_again(directory: Path) -> None:
    answers = iter([no, Pinner().get_resource_plugin_options])

    async def at_second_try(question: Any) -> Any:
        return await next(answers)(question)

    socket = directory / "cpu.sock"
    async with (
        plugin_at(socket, Crooked("get_resource_plugin_options", at_second_try)),
        registry_of(directory) as registry,
    ):
        await eventually(lambda: state(registry, socket) == "failed")
        await eventually(lambda: is_up(registry))
        told = status(registry, socket)
        assert told
        assert (told.retries, told.next_retry, told.error) == (0, None, "")


def test_the_pause_between_attempts_doubles_up_to_two_minutes() -> None:
    failures = (0, 1, 2, 3, 4, 9, 10, 10_000)
    waits = [doubling(each, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS) for each in failures]
    assert waits == [0, 0.5, 1, 2, 4, 120, 120, 120]


async def test_garbage_from_a_socket_harms_nobody_else(directory: Path) -> None:
    async def gibberish(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(range(256)) * 64)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(gibberish, directory / "bad.sock")
    async with (
        registry_of(directory) as registry,
        plugin_at(directory / "cpu.sock", Pinner()),
    ):
        await eventually(lambda: is_up(registry))
        await eventually(lambda: state(registry, directory / "bad.sock") == "failed")
    server.close()
    await server.wait_closed()


async def test_a_socket_nobody_listens_at_is_tried_again(directory: Path) -> None:
    with sockets.socket(sockets.AF_UNIX) as unheard:
        unheard.bind(str(directory / "dead.sock"))
    async with registry_of(directory) as registry:
        await eventually(lambda: state(registry, directory / "dead.sock") == "failed")
        told = status(registry, directory / "dead.sock")
        assert told
        assert "Connection refused" in told.error


async def test_the_plugin_may_serve_elsewhere_than_it_registers(directory: Path) -> None:
    plugin = Pinner()
    front = directory / "watched" / "front.sock"
    front.parent.mkdir()
    info = says(
        type="ResourcePlugin", name="cpu", endpoint="../api.sock", supported_versions=("v1alpha1",)
    )
    async with (
        plugin_at(directory / "api.sock", plugin),
        serving(
            front, [info, Served(NOTIFY_REGISTRATION_STATUS, plugin.notify_registration_status)]
        ),
        registry_of(directory / "watched") as registry,
    ):
        await eventually(lambda: is_up(registry))
        found = registry.of("cpu")
        assert found
        await found.call(ALLOCATE, REQUEST)
        assert plugin.asked == [REQUEST]


def test_a_directory_cannot_be_for_both_ways_of_registering(directory: Path) -> None:
    with pytest.raises(DovetailError, match="both kinds"):
        Registry([directory], legacy=directory / "old")
