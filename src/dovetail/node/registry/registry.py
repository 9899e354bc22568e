"""The plugin registry: it reconciles the sockets in the plugin directories with registrations.

The state wanted follows from the sockets that are there; each look compares it with the
registrations at work, ends those whose socket is gone or another, and starts one for each new one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc.aio
import structlog

from dovetail.core.errors import DovetailError
from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.registry.handshake import UnfitPlugin
from dovetail.node.registry.legacy import LegacyRegistrationServer
from dovetail.node.registry.metrics import PLUGINS_UP
from dovetail.node.registry.plugin_status import PluginStatus, status_of, status_without_socket
from dovetail.node.registry.registration import PluginRegistration, RegistrationState
from dovetail.node.registry.sockets import SocketIdentity, remove_sockets, socket_at, sockets
from dovetail.node.wire.resource_plugin import RegisterRequest, ResourcePluginOptions

LOG = structlog.get_logger("dovetail.node.registry")


class Registry:
    """A `ports.Plugins`."""

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        legacy: Path | None = None,
        deadlines: Deadlines | None = None,
        period: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`legacy`: the directory for the older way to register; `period`: seconds between looks"""
        if legacy and any(_overlap(legacy, each) for each in directories):
            raise DovetailError(f"{legacy} cannot be a plugin directory of both kinds")
        self.directories, self.period = tuple(directories), period
        self.deadlines = deadlines or Deadlines()
        self.clock, self.wall = clock, wall
        self.legacy_server = (
            LegacyRegistrationServer(legacy, self._registered_itself) if legacy else None
        )
        self.endpoints: dict[str, PluginEndpoint] = {}
        self.registrations: dict[str, PluginRegistration] = {}
        self.closing: dict[asyncio.Task[None], grpc.aio.Channel] = {}
        self.looking: asyncio.Task[None] | None = None
        self.troubles: dict[str, str] = {}

    async def start(self) -> None:
        """Directories that are missing are made. Plugins register from now on."""
        for each in self.directories:
            _make(each)
        if self.legacy_server:
            _make(self.legacy_server.directory)
            remove_sockets(self.legacy_server.directory)
            await self.legacy_server.start()
        self.looking = asyncio.create_task(self._look_regularly())

    async def stop(self) -> None:
        if self.looking:
            self.looking.cancel()
            await asyncio.gather(self.looking, return_exceptions=True)
        if self.legacy_server:
            await self.legacy_server.stop()
        await self._end(tuple(self.registrations))
        for closing, channel in tuple(self.closing.items()):
            closing.cancel()
            await channel.close()
        await asyncio.gather(*self.closing, return_exceptions=True)

    def of(self, resource: str) -> PluginEndpoint | None:
        return self.endpoints.get(resource)

    def all(self) -> Sequence[PluginEndpoint]:
        return [self.endpoints[each] for each in sorted(self.endpoints)]

    def remember(self, resource: str, options: ResourcePluginOptions) -> PluginEndpoint:
        """A plugin, maybe known from before a restart: if it is new, it is down as yet."""
        if resource not in self.endpoints:
            self.endpoints[resource] = PluginEndpoint(resource, options, self.deadlines, self.clock)
        return self.endpoints[resource]

    def forget(self, resource: str) -> bool:
        """Of a plugin that was uninstalled. Not while one is there that may be it."""
        endpoint = self.endpoints.get(resource)
        if endpoint is None or endpoint.up or self._expected(resource):
            return False
        del self.endpoints[resource]
        PLUGINS_UP.remove(resource)
        return True

    def statuses(self) -> Sequence[PluginStatus]:
        """Of each socket, and of each resource whose plugin has none at the moment."""
        told = [status_of(each) for each in self.registrations.values()]
        waiting = {each.resource for each in told}
        told += [
            status_without_socket(each, since=self.wall() - (self.clock() - (each.down_since or 0)))
            for each in self.all()
            if each.resource not in waiting
        ]
        return sorted(told, key=lambda each: (each.resource, each.socket))

    def _expected(self, resource: str) -> bool:
        """Whether it has a socket, or somebody at a socket did not say yet who they are."""
        return any(
            each.resource in (resource, "") and each.state is not RegistrationState.IGNORED
            for each in self.registrations.values()
        )

    # What the registrations ask.

    def vacated(self, resource: str) -> None:
        for each in self.registrations.values():
            if each.resource == resource:
                each.look()

    def close(self, channel: grpc.aio.Channel) -> None:
        closing = asyncio.create_task(self._close_later(channel))
        self.closing[closing] = channel
        closing.add_done_callback(self.closing.pop)

    async def _close_later(self, channel: grpc.aio.Channel) -> None:
        await asyncio.sleep(max(self.deadlines.call, self.deadlines.pre_start))
        await channel.close()

    # The looks.

    async def _look_regularly(self) -> None:
        while True:
            for each in self.directories:
                # Plugins wait for it if it is gone: they do not make it.
                with self._going_on(f"directory {each}"):
                    _make(each)
            if self.legacy_server:
                with self._going_on(f"directory {self.legacy_server.directory}"):
                    await self.legacy_server.keep()
            with self._going_on("look"):
                await self._look()
            await asyncio.sleep(self.period)

    @contextmanager
    def _going_on(self, name: str) -> Iterator[None]:
        """Nothing may end the looks. What fails in the same way again is not told again."""
        try:
            yield
        except Exception as error:
            if self.troubles.get(name) != repr(error):
                LOG.exception("failed", step=name)
            self.troubles[name] = repr(error)
        else:
            self.troubles.pop(name, None)

    async def _look(self) -> None:
        wanted = {**sockets(self.directories), **self._registered_by_themselves()}
        known = self.registrations.items()
        await self._end([at for at, each in known if wanted.get(at) != each.identity])
        for socket, identity in wanted.items():
            if socket not in self.registrations:
                self.registrations[socket] = PluginRegistration(socket, identity, self)

    def _registered_by_themselves(self) -> Mapping[str, SocketIdentity]:
        """Those whose socket is still the same; to be registered anew they must call again."""
        return {
            at: each.identity
            for at, each in self.registrations.items()
            if each.legacy and socket_at(at) == each.identity
        }

    def _registered_itself(self, socket: Path, request: RegisterRequest) -> None:
        identity = socket_at(str(socket))
        if identity is None:
            raise UnfitPlugin(f"there is no socket at {socket}: serve there first, then register")
        before = self.registrations.pop(str(socket), None)
        if before:
            before.task.cancel()
        self.registrations[str(socket)] = PluginRegistration(
            str(socket), identity, self, legacy=request
        )

    async def _end(self, which: Iterable[str]) -> None:
        ending = [self.registrations.pop(each).task for each in which]
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)


def _make(directory: Path) -> None:
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents
