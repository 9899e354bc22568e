"""The CRI client: the `Runtime` that lists sandboxes and containers and updates their resources.

Updates need no order. On a hierarchy of cgroups a parent has to be widened before its child, and
narrowed after it; but containers are leaves, whose parents nobody narrows.

After a restart of the runtime the channel finds it again by itself; calls fail until then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import grpc
import grpc.aio
import msgspec
import structlog

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import ContainerPhase, ObservedContainer, RuntimeRefused
from dovetail.node.cri import cgroups, injection
from dovetail.node.wire import cri
from dovetail.wire.codec import BadMessage, cooked, raw_class
from dovetail.wire.rpc import A, Method, Q, call

LOG = structlog.get_logger("dovetail.node.runtime")

DEADLINE_SECONDS = 10.0
"""For a call. An update takes some 20 ms, on a busy machine a few seconds."""

AT_ONCE = 8
"""Containers asked about at the same time."""

LARGEST_MESSAGE_BYTES = 16 * 2**20
"""Of a message, which is what the kubelet and containerd allow each other."""

OPTIONS = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", LARGEST_MESSAGE_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    # A socket of this machine: nothing is spared by waiting two minutes for its return.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

STATES = {
    cri.ContainerState.CREATED: ContainerPhase.CREATED,
    cri.ContainerState.RUNNING: ContainerPhase.RUNNING,
    cri.ContainerState.EXITED: ContainerPhase.EXITED,
    cri.ContainerState.UNKNOWN: ContainerPhase.UNKNOWN,
}


class ContainerNotFound(RuntimeRefused):
    """The runtime does not have it, or no longer."""


def connect(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix:{socket}", OPTIONS)


class CriRuntime:
    """A `Runtime` over the socket of a container runtime."""

    def __init__(
        self,
        socket: Path,
        *,
        proc: Path = cgroups.PROC,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._socket, self._proc, self._deadline_seconds = socket, proc, deadline_seconds
        self._channel = connect(socket)
        self._pids: dict[str, int] = {}
        """By id of the container: they don't change as long as it runs."""

    async def close(self) -> None:
        await self._channel.close()

    async def sandboxes(self) -> Sequence[Sandbox]:
        """Those that are ready: the kubelet keeps others long after their pods are over."""
        listed = sorted(await self._listed_sandboxes(), key=lambda each: each.id)
        return [sandbox_of(each) for each in listed if each.state is cri.SandboxState.READY]

    async def containers(self) -> Sequence[ObservedContainer]:
        """Without those that the runtime lists and can't tell more about."""
        sandboxes = {each.id: each.metadata.uid for each in await self._listed_sandboxes()}
        listed = await self._ask(cri.LIST_CONTAINERS, cri.ListContainersRequest())
        here = sorted(listed.containers, key=lambda each: each.id)
        self._pids = {each.id: self._pids[each.id] for each in here if each.id in self._pids}
        turn = asyncio.Semaphore(AT_ONCE)

        async def look(each: cri.Container) -> ObservedContainer | None:
            async with turn:
                return await self._observed(each, sandboxes.get(each.pod_sandbox_id, ""))

        return [each for each in await asyncio.gather(*map(look, here)) if each is not None]

    async def update(self, id_: str, change: ContainerSettings) -> None:
        if not injection.has_resources(change):
            return
        request = raw_class(cri.UpdateContainerResourcesRequest)(container_id=id_)
        injection.put_resources(request.linux, change)
        await self._ask(
            cri.UPDATE_CONTAINER_RESOURCES,
            cooked(cri.UpdateContainerResourcesRequest, request),
        )

    async def why_no_cdi(self) -> str | None:
        """Why the runtime would leave out CDI devices without a word; None if it would not.

        containerd tells its settings: before 1.7 there is none for CDI, and in 1.7 it is off unless
        switched on.
        """
        try:
            answer = await self._ask(cri.STATUS, cri.StatusRequest(verbose=True))
        except RuntimeRefused as error:
            return f"the runtime does not tell whether it brings in CDI devices: {error}"
        try:
            told = json.loads(answer.info["config"])
        except (KeyError, ValueError):
            # Another runtime, which may do it.
            return None
        if isinstance(told, dict) and "containerd" in told and told.get("enableCDI") is not True:
            return (
                "the runtime leaves out CDI devices: containerd needs to be 1.7 or later and to "
                "have enable_cdi = true in the settings of its CRI plugin"
            )
        return None

    async def _listed_sandboxes(self) -> Sequence[cri.PodSandbox]:
        return (await self._ask(cri.LIST_POD_SANDBOX, cri.ListPodSandboxRequest())).items

    async def _observed(self, each: cri.Container, uid: str) -> ObservedContainer | None:
        applied = ContainerSettings()
        if each.state in (cri.ContainerState.CREATED, cri.ContainerState.RUNNING):
            known = each.id in self._pids
            question = cri.ContainerStatusRequest(container_id=each.id, verbose=not known)
            try:
                answer = await self._ask(cri.CONTAINER_STATUS, question)
            except ContainerNotFound:
                # It went between list and look.
                return None
            except RuntimeRefused as error:
                LOG.warning("container not seen", container=each.id, why=str(error))
                return None
            applied = self._applied(each.id, answer)
        return ObservedContainer(
            id=each.id,
            pod_uid=uid,
            container=each.metadata.name,
            state=STATES[each.state],
            applied=applied,
        )

    def _applied(self, id_: str, answer: cri.ContainerStatusResponse) -> ContainerSettings:
        """What the runtime says; of CPUs and memory nodes what the kernel does, where we see it."""
        resources = answer.status.resources
        said = injection.read_back((resources and resources.linux) or cri.LinuxContainerResources())
        pid = pid_of(answer)
        if pid:
            self._pids[id_] = pid
        done = cgroups.pinning(self._pids.get(id_, 0), self._proc)
        return msgspec.structs.replace(
            said, cpus=done.cpus or said.cpus, mems=done.mems or said.mems
        )

    async def _ask(self, method: Method[Q, A], question: Q) -> A:
        try:
            return await call(self._channel, method, question, self._deadline_seconds)
        except grpc.aio.AioRpcError as error:
            kind = (
                ContainerNotFound if error.code() is grpc.StatusCode.NOT_FOUND else RuntimeRefused
            )
            words = f"{error.code().name.lower()}: {error.details()}"
        except BadMessage as error:
            kind, words = RuntimeRefused, str(error)
        raise kind(f"{method.name} at {self._socket}: {words}")


def sandbox_of(each: cri.PodSandbox) -> Sandbox:
    return Sandbox(
        uid=each.metadata.uid,
        namespace=each.metadata.namespace,
        name=each.metadata.name,
        id=each.id,
        labels=each.labels,
        annotations=each.annotations,
        runtime_class=each.runtime_handler,
    )


def pid_of(answer: cri.ContainerStatusResponse) -> int:
    """Of the first process; 0 if the runtime does not say, or in a form of its own."""
    try:
        found = json.loads(answer.info["info"])["pid"]
    except (KeyError, TypeError, ValueError):
        return 0
    return found if isinstance(found, int) else 0
