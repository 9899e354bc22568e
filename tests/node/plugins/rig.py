"""Plugins on real sockets, and requests to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.requests import PluginRequest
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.roles import PodRole
from dovetail.node.plugins.common.serving import RolePlugin
from dovetail.node.plugins.common.store import PluginStore
from dovetail.node.plugins.running import KINDS
from dovetail.node.sdk.serving import PluginServer
from dovetail.node.topology import Machine, Nic, NumaNode, synthetic
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    GET_TOPOLOGY_HINTS,
    REMOVE_POD,
    ContainerType,
    RemovePodRequest,
    ResourceAllocationInfo,
    ResourceRequest,
    TopologyHint,
)
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method, call, connect

GB = 10**9
MEMORY = (237_706_936_320, 237_806_551_040)
"""Of the specification's machine, by NUMA node."""


def spec_machine(nics: tuple[Nic, ...] = ()) -> Machine:
    """80 CPUs: 0-39 on node 0, 40-79 on node 1; siblings are adjacent."""
    import msgspec

    machine = synthetic(nics=nics)
    nodes: list[NumaNode] = [
        msgspec.structs.replace(node, memory=memory)
        for node, memory in zip(machine.nodes, MEMORY, strict=True)
    ]
    return msgspec.structs.replace(machine, nodes=tuple(nodes))


@contextmanager
def directory() -> Iterator[Path]:
    """With a short name: paths of sockets are short."""
    made = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    try:
        yield made
    finally:
        shutil.rmtree(made)


class Caller:
    """Asks one plugin over its socket."""

    def __init__(self, plugin: RolePlugin[Any], channel: Any) -> None:
        self.plugin, self.channel = plugin, channel

    async def call(self, method: Method[Any, Any], question: Message) -> Any:
        return await call(self.channel, method, question, 10)

    async def hints(self, request: ResourceRequest) -> list[tuple[tuple[int, ...], bool]] | None:
        answer = await self.call(GET_TOPOLOGY_HINTS, request)
        found = answer.resource_hints.get(self.plugin.resource)
        return None if found is None else [(each.nodes, each.preferred) for each in found.hints]

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationInfo:
        answer = await self.call(ALLOCATE, request)
        assert answer.pod_uid == request.pod_uid
        assert answer.allocation_result is not None
        (info,) = answer.allocation_result.resource_allocation.values()
        return info  # type: ignore[no-any-return]

    async def admit(self, request: ResourceRequest) -> ResourceAllocationInfo:
        """As an agent does whose only resource this is: ask for hints, take the best, allocate."""
        hints = await self.hints(request)
        if hints is None:
            return await self.allocate(request)
        nodes, preferred = min(hints, key=lambda each: (not each[1], len(each[0]), each[0]))
        return await self.allocate(with_hint(request, nodes, preferred=preferred))

    async def remove(self, uid: str) -> None:
        await self.call(REMOVE_POD, RemovePodRequest(pod_uid=uid))


@asynccontextmanager
async def serving(plugin: RolePlugin[Any], socket: Path) -> AsyncIterator[Caller]:
    server = PluginServer(plugin, socket, grace=0)
    await server.start()
    try:
        async with connect(str(socket)) as channel:
            yield Caller(plugin, channel)
    finally:
        await server.stop()


def plugin(kind: str, machine: Machine, roles: str, state: Path) -> RolePlugin[Any]:
    book = parse(roles, machine)
    return KINDS[kind](machine, book, PluginStore(state / f"{kind}.json"))


def request(
    uid: str,
    resource: str,
    amounts: float | Mapping[str, float],
    role: str = "",
    *,
    container: str = "container0",
    kind: ContainerType = ContainerType.MAIN,
    **more: Any,
) -> ResourceRequest:
    wanted = {resource: amounts} if isinstance(amounts, int | float) else dict(amounts)
    return ResourceRequest(
        pod_uid=uid,
        pod_namespace="default",
        pod_name=f"name-of-{uid}",
        container_name=container,
        container_type=kind,
        pod_role=role,
        resource_name=resource,
        resource_requests={name: float(amount) for name, amount in wanted.items()},
        **more,
    )


def with_hint(
    request: ResourceRequest, nodes: tuple[int, ...], *, preferred: bool = True
) -> ResourceRequest:
    import msgspec

    return msgspec.structs.replace(request, hint=TopologyHint(nodes=nodes, preferred=preferred))


def ask(
    pod: str,
    role: PodRole,
    amount: int | Fraction,
    *,
    resource: str = "cpu",
    container: str = "main",
    init: bool = False,
    nodes: CpuSet | None = None,
    preferred: bool = True,
) -> PluginRequest:
    """For rules without sockets."""
    return PluginRequest(
        pod=pod,
        namespace="default",
        name=f"name-of-{pod}",
        container=container,
        init=init,
        role=role,
        amounts={resource: Fraction(amount)} if amount else {},
        nodes=nodes,
        preferred=preferred,
    )
