"""Plugins that register in the older way: by a call to the manager's socket."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from dovetail.core.errors import DovetailError
from dovetail.node.registry.registry import Registry
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    GET_RESOURCE_PLUGIN_OPTIONS,
    REGISTER,
    RegisterRequest,
    ResourcePluginOptions,
)
from dovetail.wire import rpc
from dovetail.wire.rpc import Served
from tests.node.registry.rig import REQUEST, Pinner, is_up, registry_of, serving, state, status
from tests.support.loops import eventually
from tests.support.node import raw_calls


@asynccontextmanager
async def legacy_plugin(socket: Path, plugin: Pinner) -> AsyncIterator[None]:
    """Serves no registration, only itself."""
    served = [
        Served(ALLOCATE, plugin.allocate),
        Served(GET_RESOURCE_PLUGIN_OPTIONS, plugin.get_resource_plugin_options),
    ]
    async with serving(socket, served):
        yield


async def register(directory: Path, **request: Any) -> None:
    channel = rpc.connect(str(directory / "kubelet.sock"))
    asked = {"version": "v1alpha1", "endpoint": "p.sock", "resource_name": "cpu", **request}
    try:
        await rpc.call(channel, REGISTER, RegisterRequest(**asked), 2)
    finally:
        await channel.close()


async def test_a_plugin_that_registers_itself_is_called(directory: Path) -> None:
    plugin = Pinner()
    async with (
        registry_of(legacy=directory) as registry,
        legacy_plugin(directory / "p.sock", plugin),
    ):
        await register(directory, options=ResourcePluginOptions(need_reconcile=True))
        await eventually(lambda: is_up(registry))
        found = registry.of("cpu")
        assert found
        assert found.options.need_reconcile
        await found.call(ALLOCATE, REQUEST)
        assert plugin.asked == [REQUEST]
        told = status(registry, directory / "p.sock")
        assert told
        assert told.legacy


async def test_options_it_told_will_do_if_it_cannot_be_asked(directory: Path) -> None:
    async with (
        registry_of(legacy=directory) as registry,
        serving(directory / "p.sock", [Served(ALLOCATE, Pinner().allocate)]),
    ):
        await register(directory, options=ResourcePluginOptions(need_reconcile=True))
        await eventually(lambda: is_up(registry))


async def test_options_it_does_not_tell_are_asked_for(directory: Path) -> None:
    async with (
        registry_of(legacy=directory) as registry,
        legacy_plugin(directory / "p.sock", Pinner(pre_start_required=True)),
    ):
        await register(directory)
        await eventually(lambda: is_up(registry))
        found = registry.of("cpu")
        assert found
        assert found.options.pre_start_required


def is_up_and_reconciles(registry: Registry, wanted: bool) -> bool:
    found = registry.of("cpu")
    return found is not None and found.up and found.options.need_reconcile == wanted


async def test_it_may_register_again(directory: Path) -> None:
    async with (
        registry_of(legacy=directory) as registry,
        legacy_plugin(directory / "p.sock", Pinner()),
    ):
        for wanted in (True, False):
            await register(directory, options=ResourcePluginOptions(need_reconcile=wanted))
            await eventually(partial(is_up_and_reconciles, registry, wanted))


async def test_it_is_down_when_its_socket_is_gone(directory: Path) -> None:
    async with registry_of(legacy=directory) as registry:
        async with legacy_plugin(directory / "p.sock", Pinner()):
            await register(directory)
            await eventually(lambda: is_up(registry))
        await eventually(lambda: not is_up(registry))
        await eventually(lambda: state(registry, directory / "p.sock") is None)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"version": "v1"}, "speaks the versions v1; v1alpha1 is needed"),
        ({"resource_name": ""}, "'' is no name of a resource"),
        ({"endpoint": ""}, "'' is no name of a socket beside kubelet.sock"),
        ({"endpoint": "../elsewhere.sock"}, "'../elsewhere.sock' is no name of a socket"),
        ({"endpoint": "kubelet.sock"}, "'kubelet.sock' is no name of a socket"),
        ({"endpoint": "absent.sock"}, "serve there first, then register"),
    ],
)
async def test_requests_that_are_refused(
    directory: Path, request_: dict[str, Any], words: str
) -> None:
    async with registry_of(legacy=directory) as registry:
        with pytest.raises(grpc.aio.AioRpcError, match=words) as refused:
            await register(directory, **request_)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert not registry.statuses()


async def test_sockets_are_removed_at_the_start_and_nothing_else(directory: Path) -> None:
    """That is how plugins of this kind learn that they must register again."""
    (directory / "kubelet_qrm_checkpoint").write_text("{}")
    (directory / "folder").mkdir()
    async with legacy_plugin(directory / "p.sock", Pinner()), registry_of(legacy=directory):
        left = sorted(os.listdir(directory))  # noqa: PTH208
        assert left == ["folder", "kubelet.sock", "kubelet_qrm_checkpoint"]


async def test_a_socket_that_cannot_be_served_is_told(directory: Path) -> None:
    registry = Registry([], legacy=directory / ("x" * 100))
    with pytest.raises(DovetailError, match=r"cannot serve at .*/kubelet.sock"):
        await registry.start()


async def test_a_directory_that_is_deleted_is_made_again_with_the_socket(directory: Path) -> None:
    own = directory / "own"
    async with registry_of(legacy=own) as registry:
        shutil.rmtree(own)
        await eventually((own / "kubelet.sock").is_socket)
        async with legacy_plugin(own / "p.sock", Pinner()):
            await register(own)
            await eventually(lambda: is_up(registry))


async def test_garbage_at_the_socket_harms_nobody(directory: Path) -> None:
    async with (
        registry_of(legacy=directory) as registry,
        legacy_plugin(directory / "p.sock", Pinner()),
    ):
        for garbage in (b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 100):
            reader, writer = await asyncio.open_unix_connection(directory / "kubelet.sock")
            writer.write(garbage)
            # Which of these it is told depends on how much was read.
            with suppress(ConnectionResetError, BrokenPipeError):
                await reader.read()
                writer.close()
                await writer.wait_closed()
        channel = rpc.connect(str(directory / "kubelet.sock"))
        with pytest.raises(grpc.aio.AioRpcError, match="2 bytes are no RegisterRequest") as refused:
            await raw_calls.unary(channel, REGISTER.path)(b"\x0a\x7f", timeout=2)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        await channel.close()
        await register(directory)
        await eventually(lambda: is_up(registry))
