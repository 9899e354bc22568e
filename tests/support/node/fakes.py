"""A node in memory: plugins that are called directly, pods, and a source that knows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec

from dovetail.node.admission.configuration import AdmissionConfiguration
from dovetail.node.agent.manager import Manager
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import ContainerSpec, Pod, Sandbox
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.sdk.plugin import amounts_of
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import (
    ContainerType,
    ListOfTopologyHints,
    PodResourceAllocationResponse,
    PodResourceRequest,
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
    ResourcePluginOptions,
    ResourceRequest,
    TopologyHint,
)

TWO_NODES = AdmissionConfiguration(
    policy=TopologyPolicy.SINGLE_NUMA_NODE,
    nodes=CpuSet({0, 1}),
    distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}},
)


class FakePlugin:
    """Handlers are methods named as those of the wire; what it lacks is not implemented."""

    def __init__(self, resource: str, *, aligned: bool = False, pre_start: bool = False) -> None:
        self.resource = resource
        self.options = ResourcePluginOptions(
            with_topology_alignment=aligned, pre_start_required=pre_start, need_reconcile=True
        )
        self.up = True
        self.down_since: float | None = None
        self.failure: PluginFailure | None = None
        """Of every call that allocates or hints, until it is taken away."""
        self.calls: list[tuple[str, Any]] = []
        self.before: Callable[[str], None] = lambda method: None
        self.after: Callable[[str], None] = lambda method: None
        self.delay = 0.0
        self.override: dict[str, Any] = {}
        """Answers by method, in place of its own."""

    async def call(self, method: Any, question: Any) -> Any:
        self.before(method.name)
        await asyncio.sleep(self.delay)
        if not self.up:
            raise PluginError(self.resource, PluginFailure.DOWN, f"{self.resource} is not there")
        self.calls.append((method.name, question))
        if self.failure and method.name != "RemovePod":
            raise PluginError(self.resource, self.failure, f"{self.resource} fails")
        if method.name in self.override:
            found = self.override[method.name]
            answer = found(question) if callable(found) else found
        elif handler := getattr(self, method.name, None):
            answer = handler(question)
        else:
            raise PluginError(self.resource, PluginFailure.UNIMPLEMENTED, f"no {method.name}")
        self.after(method.name)
        return answer

    def asked(self, method: str) -> list[Any]:
        return [question for name, question in self.calls if name == method]

    def refuse(self, words: str) -> PluginError:
        return PluginError(self.resource, PluginFailure.REFUSED, words)


class Pieces(FakePlugin):
    """Hands out numbered pieces that belong to NUMA nodes: CPUs, or nodes themselves."""

    def __init__(
        self,
        resource: str = "cpu",
        nodes: Mapping[int, Iterable[int]] = {0: range(4), 1: range(4, 8)},
        *,
        property_name: str = "CpusetCpus",
        aligned: bool = True,
    ) -> None:
        super().__init__(resource, aligned=aligned)
        self.nodes = {node: CpuSet(pieces) for node, pieces in nodes.items()}
        self.property_name = property_name
        self.held: dict[str, dict[str, CpuSet]] = {}

    def free(self, nodes: Iterable[int]) -> CpuSet:
        taken = {piece for pod in self.held.values() for own in pod.values() for piece in own}
        return CpuSet(piece for node in nodes for piece in self.nodes[node]) - taken

    def wanted(self, question: ResourceRequest | PodResourceRequest) -> int:
        return -int(-amounts_of(question)[self.resource] // 1)

    def GetTopologyHints(self, question: ResourceRequest) -> ResourceHintsResponse:
        hints = []
        for size in range(1, len(self.nodes) + 1):
            for nodes in combinations(sorted(self.nodes), size):
                if len(self.free(nodes)) >= self.wanted(question):
                    hints.append(TopologyHint(nodes=nodes, preferred=size == 1))
        listed = ListOfTopologyHints(hints=tuple(hints))
        return ResourceHintsResponse(resource_hints={self.resource: listed})

    def Allocate(self, question: ResourceRequest) -> ResourceAllocationResponse:
        found = self.give(question.pod_uid, question.container_name, question)
        return ResourceAllocationResponse(allocation_result=found)

    def RemovePod(self, question: RemovePodRequest) -> RemovePodResponse:
        self.held.pop(question.pod_uid, None)
        return RemovePodResponse()

    def give(self, uid: str, container: str, question: Any) -> ResourceAllocation:
        own = self.held.get(uid, {}).get(container)
        hint = question.hint or TopologyHint()
        if own is None:
            free = self.free(hint.nodes or self.nodes)
            if len(free) < self.wanted(question):
                raise self.refuse(f"{len(free)} are free")
            own = CpuSet(sorted(free)[: self.wanted(question)])
            self.held.setdefault(uid, {})[container] = own
        return self.told(own, hint)

    def told(self, own: CpuSet, hint: TopologyHint) -> ResourceAllocation:
        info = ResourceAllocationInfo(
            oci_property_name=self.property_name,
            is_scalar_resource=True,
            allocated_quantity=float(len(own)),
            allocation_result=str(own),
            resource_hints=ListOfTopologyHints(hints=(hint,)),
        )
        return ResourceAllocation(resource_allocation={self.resource: info})


class PodPieces(Pieces):
    """Knows pods as a whole, too."""

    def GetPodTopologyHints(self, question: PodResourceRequest) -> Any:
        return self.GetTopologyHints(question)  # type: ignore[arg-type]

    def AllocateForPod(self, question: PodResourceRequest) -> PodResourceAllocationResponse:
        found = self.give(question.pod_uid, "", question)
        return PodResourceAllocationResponse(allocation_result=found)


class FakePlugins:
    def __init__(self, *plugins: FakePlugin) -> None:
        self.known = {each.resource: each for each in plugins}

    def of(self, resource: str) -> FakePlugin | None:
        return self.known.get(resource)

    def all(self) -> Sequence[FakePlugin]:
        return [self.known[each] for each in sorted(self.known)]

    def forget(self, resource: str) -> bool:
        return self.known.pop(resource, None) is not None

    def statuses(self) -> Sequence[msgspec.Struct]:
        return ()


class FakeSource:
    def __init__(self, *pods: Pod) -> None:
        self.pods = {each.uid: each for each in pods}
        self.known = True

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        return self.pods.get(sandbox.uid)

    async def active(self) -> Sequence[Pod] | None:
        return list(self.pods.values()) if self.known else None


class FakeRuntime:
    def __init__(self, *sandboxes: Sandbox) -> None:
        self.present = list(sandboxes)

    async def sandboxes(self) -> Sequence[Sandbox]:
        return list(self.present)

    async def containers(self) -> Sequence[Any]:
        return ()

    async def update(self, id_: str, change: Any) -> None:
        raise AssertionError("nobody updates here")


def container(name: str = "main", index: int = 0, /, **wants: Any) -> ContainerSpec:
    """`wants` in CPUs and the like; type, restartable and limits as they are."""
    kind = wants.pop("type", ContainerType.MAIN)
    restartable = wants.pop("restartable", False)
    limits = {key: Fraction(value) for key, value in wants.pop("limits", {}).items()}
    return ContainerSpec(
        name=name,
        type=kind,
        index=index,
        restartable=restartable,
        requests={key: Fraction(str(value)) for key, value in wants.items()},
        limits=limits,
    )


def pod(uid: str = "a", *containers: ContainerSpec, **more: Any) -> Pod:
    return Pod(uid=uid, namespace="default", name=f"pod-{uid}", containers=containers, **more)


def sandbox(of: Pod | str) -> Sandbox:
    uid = of if isinstance(of, str) else of.uid
    annotations = {} if isinstance(of, str) else of.annotations
    return Sandbox(uid=uid, namespace="default", name=f"pod-{uid}", annotations=annotations)


class Node:
    """A manager over plugins, with its state in a directory."""

    def __init__(
        self,
        directory: Path,
        plugins: Sequence[FakePlugin],
        pods: Sequence[Pod] | None = (),
        configuration: AdmissionConfiguration = TWO_NODES,
        checkpoint: Checkpoint | None = None,
        **timing: Any,
    ) -> None:
        """`pods` of None: nobody knows them."""
        self.plugins = FakePlugins(*plugins)
        self.source = None if pods is None else FakeSource(*pods)
        self.store = StateStore(checkpoint or Checkpoint(directory))
        self.manager = Manager(configuration, self.plugins, self.store, self.source, **timing)

    async def start(self, pod: Pod) -> dict[str, str]:
        """As the kubelet does: the sandbox, then each container. The CPUs of each container."""
        await self.manager.admit_pod(sandbox(pod))
        found = {}
        for each in pod.containers:
            settings = await self.manager.admit_container(
                sandbox(pod), each.name, ContainerSettings()
            )
            await self.manager.container_created(
                sandbox(pod), each.name, f"id-{each.name}", settings
            )
            found[each.name] = settings.cpus
        return found
