"""Keeps the plugin at one socket registered, with retries, as long as the socket is there.

registering -> up -> (connection lost) failed -> registering ...
            -> failed, tried again after a pause that doubles
            -> superseded, until the newer plugin for that resource is gone
            -> ignored: of another type, for good
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import NamedTuple, Protocol

import grpc
import grpc.aio
import structlog

from dovetail.aio.backoff import doubling
from dovetail.core.errors import DovetailError
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.registry.handshake import (
    OtherPluginType,
    PluginIntroduction,
    UnfitPlugin,
    introduce,
    notify,
    options_of,
)
from dovetail.node.registry.sockets import SocketIdentity
from dovetail.node.wire.resource_plugin import RegisterRequest, ResourcePluginOptions
from dovetail.wire.rpc import connect

LOG = structlog.get_logger("dovetail.node.registry")

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.5, 120.0

STEADY_SECONDS = 10.0
"""After which a plugin that was up is not taken for one that keeps failing."""


class RegistrationState(StrEnum):
    REGISTERING = "registering"
    UP = "up"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    IGNORED = "ignored"


class Superseded(DovetailError):
    """A newer plugin serves the same resource."""


class RegistrationDesk(Protocol):
    """What a registration needs of the registry."""

    deadlines: Deadlines

    def of(self, resource: str) -> PluginEndpoint | None: ...

    def remember(self, resource: str, options: ResourcePluginOptions) -> PluginEndpoint:
        """The endpoint of a resource, made if it is new."""
        ...

    def vacated(self, resource: str) -> None:
        """The plugin for the resource is gone: an older one may have it."""
        ...

    def close(self, channel: grpc.aio.Channel) -> None:
        """Once the calls in it must have ended."""
        ...

    def clock(self) -> float:
        """Seconds that no one sets."""
        ...

    def wall(self) -> float: ...


class RegistrationRetry(NamedTuple):
    failures: int = 0
    at: float | None = None
    """On the wall clock, if it waits for one."""


class PluginRegistration:
    def __init__(
        self,
        socket: str,
        identity: SocketIdentity,
        desk: RegistrationDesk,
        legacy: RegisterRequest | None = None,
    ) -> None:
        """`legacy`: what a plugin said that registered by itself, in the older way."""
        self.socket, self.identity, self.desk, self.legacy = socket, identity, desk, legacy
        self.resource = legacy.resource_name if legacy else ""
        self.versions: tuple[str, ...] = (legacy.version,) if legacy else ()
        self.options: ResourcePluginOptions | None = None
        self.called: grpc.aio.Channel | None = None
        self.state, self.since, self.error = RegistrationState.REGISTERING, desk.wall(), ""
        self.retry = RegistrationRetry()
        self.up_since = 0.0
        """On the clock that no one sets."""
        self.wake = asyncio.Event()
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        while True:
            try:
                await self._keep_registered()
            except OtherPluginType as error:
                self._turn(RegistrationState.IGNORED, str(error))
                return
            except Superseded as error:
                self._turn(RegistrationState.SUPERSEDED, str(error))
                while self._newer():
                    await self._woken()
            except (UnfitPlugin, PluginError) as error:
                await self._fail(str(error))
            except Exception as error:
                LOG.exception("registration failed", socket=self.socket)
                await self._fail(repr(error))
            self._turn(RegistrationState.REGISTERING, self.error)

    def look(self) -> None:
        """Who has the resource may have changed."""
        self.wake.set()

    async def _woken(self) -> None:
        await self.wake.wait()
        self.wake.clear()

    async def _keep_registered(self) -> None:
        """Register, and stay until it is over; raises why that is."""
        async with AsyncExitStack() as leaving:
            front = connect(self.socket)
            leaving.push_async_callback(self._leave, front)
            told = await self._introduced(front)
            self.resource, self.versions = told.resource, told.versions
            channel = front
            if told.endpoint != self.socket:
                channel = connect(told.endpoint)
                leaving.push_async_callback(self._leave, channel)
            self.options = await self._options(channel)
            await self._welcome(front)
            await self._hold(channel, self.options)

    async def _leave(self, channel: grpc.aio.Channel) -> None:
        if channel is self.called:
            # Others may still be waiting for answers.
            self.desk.close(channel)
        else:
            await channel.close()

    async def _hold(self, channel: grpc.aio.Channel, options: ResourcePluginOptions) -> None:
        """Let the plugin be called, as long as that works."""
        self.called = channel
        endpoint = self.desk.remember(self.resource, options)
        endpoint.attach(self, channel, options)
        self._turn(RegistrationState.UP)
        self.up_since = self.desk.clock()
        try:
            await self._over(channel, endpoint)
        finally:
            if endpoint.detach(self):
                self.desk.vacated(self.resource)

    async def _introduced(self, front: grpc.aio.Channel) -> PluginIntroduction:
        if self.legacy:
            return PluginIntroduction(self.resource, self.socket, self.versions)
        try:
            return await introduce(front, self.socket, self.desk.deadlines)
        except UnfitPlugin as error:
            await self._turn_away(front, str(error))
            raise

    async def _options(self, channel: grpc.aio.Channel) -> ResourcePluginOptions:
        """Asked even if told already: it shows that the plugin answers."""
        told = self.legacy.options if self.legacy else None
        try:
            asked = await options_of(channel, self.resource, self.desk.deadlines)
        except PluginError as error:
            if told is None or error.failure not in (
                PluginFailure.REFUSED,
                PluginFailure.UNIMPLEMENTED,
            ):
                raise
            return told
        return told or asked

    async def _welcome(self, front: grpc.aio.Channel) -> None:
        """Tell the plugin that it is registered, unless a newer one has the resource."""
        if newer := self._newer():
            await self._turn_away(front, str(newer))
            raise newer
        if not self.legacy:
            await notify(front, "", self.resource, self.desk.deadlines)
        if newer := self._newer():
            raise newer

    def _newer(self) -> Superseded | None:
        """The newer socket has the resource, in whatever order they are found."""
        endpoint = self.desk.of(self.resource)
        holder = endpoint.holder if endpoint else None
        if holder and holder is not self and holder.identity > self.identity:
            return Superseded(f"a newer plugin at {holder.socket} serves {self.resource}")
        return None

    async def _turn_away(self, front: grpc.aio.Channel, why: str) -> None:
        if self.legacy:
            return
        try:
            await notify(front, why, self.resource or self.socket, self.desk.deadlines)
        except PluginError as error:
            LOG.info("plugin not told why", socket=self.socket, error=str(error))

    async def _over(self, channel: grpc.aio.Channel, endpoint: PluginEndpoint) -> None:
        """Until a newer plugin takes over, or nobody is at the socket any more."""
        losing = asyncio.create_task(until_lost(channel))
        try:
            while endpoint.holder is self and not losing.done():
                await _either(losing, asyncio.create_task(self._woken()))
        finally:
            losing.cancel()
            await asyncio.gather(losing, return_exceptions=True)
        raise self._newer() or PluginError(
            self.resource, PluginFailure.DOWN, "the connection was lost"
        )

    async def _fail(self, why: str) -> None:
        steady = (
            self.state is RegistrationState.UP
            and self.desk.clock() - self.up_since >= STEADY_SECONDS
        )
        failures = 0 if steady else self.retry.failures + 1
        self._turn(RegistrationState.FAILED, why)
        wait = doubling(failures, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        self.retry = RegistrationRetry(failures, self.desk.wall() + wait)
        await asyncio.sleep(wait)
        self.retry = RegistrationRetry(failures)

    def _turn(self, state: RegistrationState, error: str = "") -> None:
        self.state, self.since, self.error = state, self.desk.wall(), error
        say = LOG.warning if state is RegistrationState.FAILED else LOG.info
        say("plugin " + state, resource=self.resource, socket=self.socket, error=error)


async def _either(kept: asyncio.Task[None], other: asyncio.Task[None]) -> None:
    """Until one of them is done; the other of them is ended, the first one is kept."""
    try:
        await asyncio.wait((kept, other), return_when=asyncio.FIRST_COMPLETED)
    finally:
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


async def until_lost(channel: grpc.aio.Channel) -> None:
    """Until there is no connection and none can be made. One that idled is made again."""
    state = channel.get_state(try_to_connect=True)
    while state not in (
        grpc.ChannelConnectivity.TRANSIENT_FAILURE,
        grpc.ChannelConnectivity.SHUTDOWN,
    ):
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)
