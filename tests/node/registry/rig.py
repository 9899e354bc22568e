"""A registry in a hurry, and plugins that behave in every way a plugin can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.plugin_status import PluginStatus
from dovetail.node.registry.registry import Registry
from dovetail.node.sdk.plugin import ResourcePlugin, allocation_for, refuse
from dovetail.node.sdk.serving import PluginServer
from dovetail.node.wire.registration import RegistrationStatus, RegistrationStatusResponse
from dovetail.node.wire.resource_plugin import (
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourcePluginOptions,
    ResourceRequest,
)
from dovetail.wire.rpc import OPTIONS, Served, offer
from tests.support.loops import eventually

HASTY = Deadlines(info=0.5, notify=0.5, call=1.0, pre_start=3.0)
"""For tests in which a plugin hangs; the others are not to fail because the machine is busy."""

TICK = 0.03
"""Sockets made further apart than this many seconds have different times of change."""

REQUEST = ResourceRequest(pod_uid="uid-1", pod_name="web", container_name="main")


class Pinner(ResourcePlugin):
    """Gives everybody CPU 0, and does as it is told otherwise: by the name of the pod."""

    def __init__(self, resource: str = "cpu", **options: Any) -> None:
        super().__init__(resource, ResourcePluginOptions(**options))
        self.told: list[RegistrationStatus] = []
        self.asked: list[ResourceRequest] = []
        self.go_on = asyncio.Event()

    async def notify_registration_status(
        self, status: RegistrationStatus
    ) -> RegistrationStatusResponse:
        self.told.append(status)
        return await super().notify_registration_status(status)

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        self.asked.append(request)
        match request.pod_name:
            case "hang":
                await asyncio.sleep(60)
            case "refuse":
                raise refuse("all CPUs are taken")
            case "huge":
                return ResourceAllocationResponse(pod_name="x" * 5_000_000)
            case "other":
                return ResourceAllocationResponse(pod_uid="uid-2")
            case "slow":
                await self.go_on.wait()
        return allocation_for(
            request, {self.resource: ResourceAllocationInfo(allocation_result="0")}
        )


@asynccontextmanager
async def registry_of(*directories: Path, **more: Any) -> AsyncIterator[Registry]:
    registry = Registry(directories, period=0.02, **more)
    await registry.start()
    try:
        yield registry
    finally:
        await registry.stop()


@asynccontextmanager
async def plugin_at(
    socket: Path, plugin: ResourcePlugin, grace: float = 0
) -> AsyncIterator[PluginServer]:
    server = PluginServer(plugin, socket, period=0.05, grace=grace)
    await asyncio.sleep(TICK)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def serving(socket: Path, served: Iterable[Served]) -> AsyncIterator[None]:
    """Just these methods, whatever they are."""
    server = grpc.aio.server(options=OPTIONS)
    offer(server, served)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


def is_up(registry: Registry, resource: str = "cpu") -> bool:
    found = registry.of(resource)
    return found is not None and found.up


def status(registry: Registry, socket: Path) -> PluginStatus | None:
    return next((each for each in registry.statuses() if each.socket == str(socket)), None)


def state(registry: Registry, socket: Path) -> str | None:
    found = status(registry, socket)
    return found.state if found else None


async def until_state(registry: Registry, socket: Path, expected: str) -> None:
    await eventually(lambda: state(registry, socket) == expected)
