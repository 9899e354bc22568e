"""A manager over the plugins that ship: called directly, or at sockets through the registry."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec

from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.agent.manager import Manager
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import PluginError, PluginFailure, PluginRegistry
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.plugins.common.holdings import ResourceHolding
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.serving import RolePlugin
from dovetail.node.plugins.common.store import PluginStore
from dovetail.node.plugins.running import KINDS, RESOURCES
from dovetail.node.registry.registry import Registry
from dovetail.node.sdk.plugin import ResourcePlugin
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from dovetail.node.topology import Machine, synthetic
from dovetail.node.wire.resource_plugin import ResourcePluginOptions
from dovetail.wire.rpc import Method, Refused
from tests.node.registry.rig import is_up, plugin_at, registry_of
from tests.support.loops import eventually
from tests.support.node.fakes import FakeSource, sandbox

TWICE_EIGHT = synthetic(sockets=2, cores=8, threads=1)
"""Two NUMA nodes of 8 CPUs."""

GUARANTEED = """
[roles.guaranteed]
matches = { qos_classes = ["Guaranteed"] }
cpu = { exclusive = true }
memory = { bind = true }
"""
"""What the kubelet's static policies do."""

OWN = """
[roles.own]
cpu = { exclusive = true }
memory = { bind = true }
"""


class KeptInMemory(PluginStore):
    """Of a plugin that outlives no restart: there is nothing to wait for on the disk."""

    def __init__(self) -> None:
        super().__init__(Path())

    def save(self, state: msgspec.Struct) -> None:
        pass

    def load(self, kind: type[Any]) -> None:
        return None


def shipped(
    machine: Machine, roles: str, kinds: Iterable[str] = ("cpu",)
) -> dict[str, RolePlugin[Any]]:
    """By resource."""
    book = parse(roles, machine)
    return {RESOURCES[kind]: KINDS[kind](machine, book, KeptInMemory()) for kind in kinds}


class CalledDirectly:
    """A `ports.Plugin`: a shipped plugin without a socket."""

    up = True
    down_since: float | None = None

    def __init__(self, plugin: RolePlugin[Any]) -> None:
        self.plugin = plugin

    @property
    def resource(self) -> str:
        return self.plugin.resource

    @property
    def options(self) -> ResourcePluginOptions:
        return self.plugin.options

    async def call(self, method: Method[Any, Any], question: Any) -> Any:
        handler = getattr(self.plugin, re.sub(r"(?<!^)([A-Z])", r"_\1", method.name).lower())
        try:
            return await handler(question)
        except Refused as error:
            unknown = error.code is grpc.StatusCode.UNIMPLEMENTED
            failure = PluginFailure.UNIMPLEMENTED if unknown else PluginFailure.REFUSED
            raise PluginError(self.resource, failure, error.words) from None


class DirectPlugins:
    """A `ports.PluginRegistry` of these."""

    def __init__(self, plugins: Mapping[str, RolePlugin[Any]]) -> None:
        self.known = {name: CalledDirectly(each) for name, each in plugins.items()}

    def of(self, resource: str) -> CalledDirectly | None:
        return self.known.get(resource)

    def all(self) -> Sequence[CalledDirectly]:
        return [self.known[each] for each in sorted(self.known)]

    def forget(self, _: str) -> bool:
        return False

    def statuses(self) -> Sequence[msgspec.Struct]:
        return ()


class ShippedNode:
    def __init__(
        self,
        directory: Path,
        plugins: Mapping[str, RolePlugin[Any]],
        configuration: AdmissionConfiguration,
        registry: PluginRegistry | None = None,
        **timing: Any,
    ) -> None:
        self.plugins, self.source = plugins, FakeSource()
        checkpoint = Checkpoint(directory, write=lambda path, data: None)
        self.store = StateStore(checkpoint)
        self.manager = Manager(
            configuration, registry or DirectPlugins(plugins), self.store, self.source, **timing
        )

    async def admit(self, pod: Pod) -> None:
        """Raises AdmissionRejected."""
        self.source.pods[pod.uid] = pod
        await self.manager.admit_pod(sandbox(pod))

    async def end(self, uid: str) -> None:
        self.source.pods.pop(uid, None)
        await self.manager.collector.release(uid)

    def held(self, uid: str, resource: str = "cpu") -> dict[str, str]:
        """What each container was given."""
        known = self.store.pod(uid)
        return {
            name: holding.allocations[resource].allocation_result
            for name, holding in (known.containers if known else {}).items()
            if resource in holding.allocations
        }

    def holders(self, resource: str = "cpu") -> set[str]:
        """Pods that the plugin knows."""
        found: Iterable[ResourceHolding] = self.plugins[resource].state.holdings
        return {each.pod for each in found}


@asynccontextmanager
async def at_sockets(
    directory: Path,
    plugins: Mapping[str, RolePlugin[Any]],
    configuration: AdmissionConfiguration,
    *others: ResourcePlugin,
    **timing: Any,
) -> AsyncIterator[ShippedNode]:
    """`directory` with a short name: paths of sockets are short. `others`: plugins besides."""
    sockets = directory / "plugins"
    async with AsyncExitStack() as stack:
        registry: Registry = await stack.enter_async_context(registry_of(sockets))
        served: list[ResourcePlugin] = [*plugins.values(), *others]
        for each in served:
            await stack.enter_async_context(plugin_at(sockets / f"{each.resource}.sock", each))
        await eventually(lambda: all(is_up(registry, each.resource) for each in served))
        node = ShippedNode(directory, plugins, configuration, registry, **timing)
        try:
            yield node
        finally:
            await node.manager.stop()


def configured(policy: str, machine: Machine = TWICE_EIGHT, **more: Any) -> AdmissionConfiguration:
    return AdmissionConfiguration(
        policy=TopologyPolicy(policy), nodes=machine.node_ids, distances=machine.distances, **more
    )


def nodes_of(machine: Machine, cpus: str) -> CpuSet:
    return machine.nodes_of(CpuSet.parse(cpus))
