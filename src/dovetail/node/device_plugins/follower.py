"""Follows one device plugin at its socket: connects, reads its lists, and begins anew when it went.

waiting (no socket) -> connecting -> up -> (stream ended) failed -> connecting ...
A pause that doubles is between two tries; a socket that was made anew ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import grpc
import grpc.aio
import structlog

from dovetail.aio.background import Background
from dovetail.aio.backoff import doubling
from dovetail.node.common.device_plugins import PluginOptions
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.device_plugins.device_list import DeviceList, read_list
from dovetail.node.device_plugins.introductions import DeviceSocket, device_socket_at
from dovetail.node.device_plugins.limits import (
    FIRST_RETRY_SECONDS,
    LONGEST_RETRY_SECONDS,
    PACE_SECONDS,
    STEADY_SECONDS,
)
from dovetail.node.device_plugins.plugin import KnownDevicePlugin, options_of
from dovetail.node.registry.endpoint import ask, failure_of
from dovetail.node.wire.device_plugin import GET_DEVICE_PLUGIN_OPTIONS, LIST_AND_WATCH
from dovetail.node.wire.resource_plugin import Empty
from dovetail.wire.codec import BadMessage, encode
from dovetail.wire.rpc import connect

LOG = structlog.get_logger("dovetail.node.device_plugins")


class FollowerState(StrEnum):
    WAITING = "waiting"
    CONNECTING = "connecting"
    UP = "up"
    FAILED = "failed"


class FollowerRetry(NamedTuple):
    failures: int = 0
    at: float | None = None
    """On the wall clock, if it waits for one."""


class DevicePluginFollower:
    def __init__(
        self,
        plugin: KnownDevicePlugin,
        socket: Path,
        registered: PluginOptions,
        closing: Background,
        *,
        period: float,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`registered`: what it said of itself then. `period`: seconds between looks at the socket.

        `closing`: where channels end whose last calls are still under way.
        """
        self.plugin, self.socket, self.registered = plugin, socket, registered
        self._closing, self._period, self._wall = closing, period, wall
        self.state, self.since, self.error = FollowerState.WAITING, wall(), ""
        self.troubles: tuple[str, ...] = ()
        """Of its latest list."""
        self.retry = FollowerRetry()
        self._up_since = 0.0
        self._tried: DeviceSocket | None = None
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except PluginError as error:
                await self._fail(str(error))
            except Exception as error:
                LOG.exception("device plugin not followed", resource=self.plugin.resource)
                await self._fail(repr(error))

    async def _follow(self) -> None:
        """Until it is over; raises why."""
        await self._until_there()
        self._turn(FollowerState.CONNECTING, self.error)
        async with self._connected() as channel:
            options = await self._options(channel)
            async with aclosing(self._lists(channel)) as lists:
                try:
                    async with asyncio.timeout(self.plugin.deadlines.first_list):
                        found = await anext(lists)
                except TimeoutError:
                    raise self._error(PluginFailure.TIMEOUT, "no list of devices came") from None
                self.plugin.attach(channel, options)
                self._up_since = self.plugin.clock()
                self._turn(FollowerState.UP)
                self._listed(found)
                async for found in lists:
                    self._listed(found)

    async def _until_there(self) -> None:
        while (found := device_socket_at(self.socket)) is None:
            if self.state is not FollowerState.WAITING:
                self._turn(FollowerState.WAITING, self.error)
            await asyncio.sleep(self._period)
        self._tried = found

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[grpc.aio.Channel]:
        channel = connect(str(self.socket))
        try:
            yield channel
        finally:
            self.plugin.detach()
            # Calls under way may end by themselves: what ended is only the list.
            grace = max(self.plugin.deadlines.allocate, self.plugin.deadlines.pre_start)
            self._closing.start(_close(channel, grace))

    async def _options(self, channel: grpc.aio.Channel) -> PluginOptions:
        """As it says now; plugins that never learned that question have said it before."""
        deadline, resource = self.plugin.deadlines.call, self.plugin.resource
        try:
            told = await ask(channel, GET_DEVICE_PLUGIN_OPTIONS, Empty(), deadline, resource)
        except PluginError as error:
            if error.failure is not PluginFailure.UNIMPLEMENTED:
                raise
            return self.registered
        return options_of(told)

    async def _lists(self, channel: grpc.aio.Channel) -> AsyncGenerator[DeviceList]:
        """Raises PluginError when there are no more."""
        asking: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
            LIST_AND_WATCH.path
        )
        stream = asking(encode(Empty()))
        try:
            while isinstance(data := await stream.read(), bytes):
                yield read_list(data)
                await asyncio.sleep(PACE_SECONDS)
        except BadMessage as error:
            raise self._error(PluginFailure.GARBAGE, str(error)) from None
        except grpc.aio.AioRpcError as error:
            words = f"{error.details()} ({error.code().name})"
            raise self._error(failure_of(error), words) from None
        finally:
            stream.cancel()
        raise self._error(PluginFailure.DOWN, "it ended the list of its devices")

    def _listed(self, found: DeviceList) -> None:
        news = self.plugin.listed(found.devices)
        if found.troubles != self.troubles:
            self.troubles = found.troubles
            if found.troubles:
                words = "; ".join(found.troubles)
                LOG.warning("device list mended", resource=self.plugin.resource, trouble=words)
        if news:
            healthy = sum(each.healthy for each in found.devices.values())
            LOG.info(
                "devices listed",
                resource=self.plugin.resource,
                devices=len(found.devices),
                healthy=healthy,
            )

    async def _fail(self, why: str) -> None:
        steady = (
            self.state is FollowerState.UP
            and self.plugin.clock() - self._up_since >= STEADY_SECONDS
        )
        failures = 1 if steady else self.retry.failures + 1
        self._turn(FollowerState.FAILED, why)
        wait = doubling(failures, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        self.retry = FollowerRetry(failures, self._wall() + wait)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                # A socket that is another one is another process: it need not wait.
                while device_socket_at(self.socket) == self._tried:  # noqa: ASYNC110
                    await asyncio.sleep(self._period)
        self.retry = FollowerRetry(failures)

    def _error(self, failure: PluginFailure, why: str) -> PluginError:
        words = f"ListAndWatch of the device plugin for {self.plugin.resource}: {why}"
        return PluginError(self.plugin.resource, failure, words)

    def _turn(self, state: FollowerState, error: str = "") -> None:
        self.state, self.since, self.error = state, self._wall(), error
        say = LOG.warning if state is FollowerState.FAILED else LOG.info
        say(
            "device plugin " + state,
            resource=self.plugin.resource,
            socket=str(self.socket),
            error=error,
        )


async def _close(channel: grpc.aio.Channel, grace: float) -> None:
    try:
        await channel.close(grace)
    finally:
        await channel.close()
