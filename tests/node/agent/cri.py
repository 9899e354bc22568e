"""A container runtime in memory behind a real CRI socket, and a kubelet to use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import grpc
import grpc.aio
import msgspec

from dovetail.node.wire import cri
from dovetail.wire.codec import Message
from dovetail.wire.rpc import OPTIONS, Handler, Method, Refused, Served, call, connect, offer

SERVICE = cri.SERVICE


class StartContainerRequest(Message):
    container_id: Annotated[str, 1] = ""


class Empty(Message):
    pass


RUN = Method(SERVICE, "RunPodSandbox", cri.RunPodSandboxRequest, cri.RunPodSandboxResponse)
REMOVE = Method(SERVICE, "RemovePodSandbox", cri.RemovePodSandboxRequest, Empty)
CREATE = Method(SERVICE, "CreateContainer", cri.CreateContainerRequest, cri.CreateContainerResponse)
START = Method(SERVICE, "StartContainer", StartContainerRequest, Empty)


@dataclass
class Made:
    """A container, as the runtime was told to make it."""

    id: str
    sandbox: str
    config: cri.ContainerConfig
    state: cri.ContainerState = cri.ContainerState.CREATED
    updates: int = 0

    @property
    def resources(self) -> cri.LinuxContainerResources:
        linux = self.config.linux or cri.LinuxContainerConfig()
        return linux.resources or cri.LinuxContainerResources()

    @property
    def pinned(self) -> tuple[str, str]:
        return self.resources.cpuset_cpus, self.resources.cpuset_mems

    @property
    def envs(self) -> Mapping[str, str]:
        return {each.key: each.value.decode() for each in self.config.envs}


@dataclass
class FakeRuntime:
    socket: Path
    sandboxes: dict[str, cri.PodSandboxConfig] = field(default_factory=dict)
    containers: dict[str, Made] = field(default_factory=dict)
    server: Any = None
    numbers: Any = field(default_factory=lambda: count(1))

    async def start(self) -> None:
        self.server = grpc.aio.server(options=OPTIONS)
        handlers: dict[Method[Any, Any], Handler] = {
            RUN: self._run,
            REMOVE: self._remove,
            CREATE: self._create,
            START: self._start,
            cri.LIST_POD_SANDBOX: self._list_sandboxes,
            cri.LIST_CONTAINERS: self._list_containers,
            cri.CONTAINER_STATUS: self._status,
            cri.UPDATE_CONTAINER_RESOURCES: self._update,
        }
        offer(self.server, [Served(*each) for each in handlers.items()])
        self.server.add_insecure_port(f"unix:{self.socket}")
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop(None)

    def made(self, pod: str, container: str = "container0") -> Made:
        """The latest one of that name."""
        (*_, found) = (
            each
            for each in self.containers.values()
            if self.sandboxes[each.sandbox].metadata.name == pod
            and each.config.metadata.name == container
        )
        return found

    def _container(self, id_: str) -> Made:
        if id_ not in self.containers:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"no container {id_}")
        return self.containers[id_]

    async def _run(self, question: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        id_ = f"sandbox-{next(self.numbers)}"
        self.sandboxes[id_] = question.config
        return cri.RunPodSandboxResponse(pod_sandbox_id=id_)

    async def _remove(self, question: cri.RemovePodSandboxRequest) -> Empty:
        self.sandboxes.pop(question.pod_sandbox_id, None)
        for each in [*self.containers.values()]:
            if each.sandbox == question.pod_sandbox_id:
                del self.containers[each.id]
        return Empty()

    async def _create(self, question: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        if question.pod_sandbox_id not in self.sandboxes:
            raise Refused(grpc.StatusCode.NOT_FOUND, "no such sandbox")
        id_ = f"container-{next(self.numbers)}"
        self.containers[id_] = Made(id_, question.pod_sandbox_id, question.config)
        return cri.CreateContainerResponse(container_id=id_)

    async def _start(self, question: StartContainerRequest) -> Empty:
        self._container(question.container_id).state = cri.ContainerState.RUNNING
        return Empty()

    async def _list_sandboxes(
        self, question: cri.ListPodSandboxRequest
    ) -> cri.ListPodSandboxResponse:
        only = question.filter.id if question.filter else ""
        return cri.ListPodSandboxResponse(
            items=tuple(
                cri.PodSandbox(
                    id=id_,
                    metadata=config.metadata,
                    labels=config.labels,
                    annotations=config.annotations,
                )
                for id_, config in self.sandboxes.items()
                if only in ("", id_)
            )
        )

    async def _list_containers(
        self, question: cri.ListContainersRequest
    ) -> cri.ListContainersResponse:
        only = question.filter.id if question.filter else ""
        return cri.ListContainersResponse(
            containers=tuple(
                cri.Container(
                    id=each.id,
                    pod_sandbox_id=each.sandbox,
                    metadata=each.config.metadata,
                    state=each.state,
                )
                for each in self.containers.values()
                if only in ("", each.id)
            )
        )

    async def _status(self, question: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        each = self._container(question.container_id)
        resources = cri.ContainerResources(linux=each.resources)
        return cri.ContainerStatusResponse(
            status=cri.ContainerStatus(state=each.state, resources=resources)
        )

    async def _update(
        self, question: cri.UpdateContainerResourcesRequest
    ) -> cri.UpdateContainerResourcesResponse:
        each = self._container(question.container_id)
        given = question.linux or cri.LinuxContainerResources()
        changed = {
            name: value for name in given.__struct_fields__ if (value := getattr(given, name))
        }
        resources = msgspec.structs.replace(each.resources, **changed)
        linux = cri.LinuxContainerConfig(resources=resources)
        each.config = msgspec.structs.replace(each.config, linux=linux)
        each.updates += 1
        return cri.UpdateContainerResourcesResponse()


class Kubelet:
    """Starts pods at a runtime's endpoint."""

    def __init__(self, endpoint: Path) -> None:
        self.channel = connect(str(endpoint))

    async def close(self) -> None:
        await self.channel.close()

    async def run(self, uid: str, name: str, annotations: Mapping[str, str] = {}) -> str:
        """The sandbox."""
        config = self._config(uid, name, annotations)
        question = cri.RunPodSandboxRequest(config=config)
        return (await call(self.channel, RUN, question, 60)).pod_sandbox_id

    async def create(
        self,
        sandbox: str,
        uid: str,
        pod: str,
        name: str = "container0",
        *,
        annotations: Mapping[str, str] = {},
        resources: cri.LinuxContainerResources | None = None,
    ) -> str:
        """A container that runs."""
        question = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox,
            config=cri.ContainerConfig(
                metadata=cri.ContainerMetadata(name=name),
                linux=cri.LinuxContainerConfig(resources=resources),
            ),
            sandbox_config=self._config(uid, pod, annotations),
        )
        id_ = (await call(self.channel, CREATE, question, 60)).container_id
        await call(self.channel, START, StartContainerRequest(container_id=id_), 60)
        return id_

    async def start(self, uid: str, name: str, annotations: Mapping[str, str] = {}) -> str:
        """A pod with one container; its sandbox."""
        sandbox = await self.run(uid, name, annotations)
        await self.create(sandbox, uid, name, annotations=annotations)
        return sandbox

    async def remove(self, sandbox: str) -> None:
        question = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
        await call(self.channel, REMOVE, question, 60)

    def _config(self, uid: str, name: str, annotations: Mapping[str, str]) -> cri.PodSandboxConfig:
        metadata = cri.PodSandboxMetadata(uid=uid, name=name, namespace="default")
        return cri.PodSandboxConfig(metadata=metadata, annotations=dict(annotations))
