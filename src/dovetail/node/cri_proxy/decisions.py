"""Decisions about CRI calls: the handlers of the calls that the proxy holds; the manager decides.

RunPodSandbox: the pod is admitted first. CreateContainer: the container gets its settings.
UpdateContainerResources: one that is resized is admitted anew, and the kubelet must not undo its
settings. RemovePodSandbox: a pod may be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import structlog

from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionPort, AdmissionRejected
from dovetail.node.cri import injection
from dovetail.node.cri.client import connect, sandbox_of
from dovetail.node.cri_proxy.connection import Handler, Send
from dovetail.node.wire import cri
from dovetail.wire.codec import BadMessage, cooked, decode, raw
from dovetail.wire.rpc import Refused, call

LOG = structlog.get_logger("dovetail.node.runtime")

LOOK_TIMEOUT_SECONDS = 5.0
"""For a question of our own to the runtime."""

DECIDED = ("RunPodSandbox", "CreateContainer", "UpdateContainerResources", "RemovePodSandbox")
"""The calls that are looked at."""


class CallDecisions:
    """By the manager; what it has to know besides it asks the runtime."""

    def __init__(self, runtime: Path, manager: AdmissionPort) -> None:
        self._runtime, self._manager = runtime, manager
        self.handlers = {path: _guarded(path, each) for path, each in self._seen().items()}
        """By path of the call."""
        self._later: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._channel = connect(self._runtime)

    async def stop(self) -> None:
        """After the last call."""
        await asyncio.gather(*self._later)
        await self._channel.close()

    def _seen(self) -> dict[str, Handler]:
        return {
            f"/{cri.SERVICE}/RunPodSandbox": self._run_pod_sandbox,
            f"/{cri.SERVICE}/CreateContainer": self._create_container,
            f"/{cri.SERVICE}/UpdateContainerResources": self._update_container_resources,
            f"/{cri.SERVICE}/RemovePodSandbox": self._remove_pod_sandbox,
        }

    async def _run_pod_sandbox(self, body: bytes, send: Send) -> None:
        request = decode(cri.RunPodSandboxRequest, body)
        sandbox = _sandbox(request.config, runtime_class=request.runtime_handler)
        await self._manager.admit_pod(sandbox)
        try:
            await send(body)
        except BaseException:
            # The kubelet will try again, or not: the manager is to look which.
            self._soon(self._manager.sandbox_gone(sandbox))
            raise

    async def _create_container(self, body: bytes, send: Send) -> None:
        request = raw(cri.CreateContainerRequest, body)
        config = cooked(cri.PodSandboxConfig, request.sandbox_config)
        sandbox, name = _sandbox(config, id_=request.pod_sandbox_id), request.config.metadata.name
        asked = injection.read_back(
            cooked(cri.LinuxContainerResources, request.config.linux.resources)
        )
        settings = await self._manager.admit_container(sandbox, name, asked)
        injection.inject(request, settings)
        answer = await send(request.SerializeToString())
        id_ = decode(cri.CreateContainerResponse, answer).container_id
        await self._quietly(self._manager.container_created(sandbox, name, id_, settings))

    async def _update_container_resources(self, body: bytes, send: Send) -> None:
        request = raw(cri.UpdateContainerResourcesRequest, body)
        found = await self._container_by_id(request.container_id)
        if found is None:
            # The runtime knows what to say to that.
            await send(body)
            return
        sandbox, name = found
        asked = injection.read_back(cooked(cri.LinuxContainerResources, request.linux))
        settings = await self._manager.resize_container(sandbox, name, asked)
        if injection.has_resources(settings):
            injection.put_resources(request.linux, settings)
            body = request.SerializeToString()
        try:
            await send(body)
        except BaseException:
            self._soon(self._manager.resize_failed(sandbox, name))
            raise
        resized = self._manager.container_resized(sandbox, name, request.container_id, settings)
        await self._quietly(resized)

    async def _remove_pod_sandbox(self, body: bytes, send: Send) -> None:
        sandbox = await self._sandbox_by_id(
            decode(cri.RemovePodSandboxRequest, body).pod_sandbox_id
        )
        await send(body)
        if sandbox:
            self._soon(self._manager.sandbox_gone(sandbox))

    async def _container_by_id(self, id_: str) -> tuple[Sandbox, str] | None:
        """Its pod and its name. It must not fail: a resize that goes by is found out later."""
        question = cri.ListContainersRequest(filter=cri.ContainerFilter(id=id_))
        try:
            # After a restart of the runtime the client's connection may be there before ours.
            listed = await call(
                self._channel, cri.LIST_CONTAINERS, question, LOOK_TIMEOUT_SECONDS, patient=True
            )
            container = _only(listed.containers, id_)
            sandbox = container and await self._sandbox_by_id(container.pod_sandbox_id)
            if container and sandbox:
                return sandbox, container.metadata.name
        except (grpc.aio.AioRpcError, BadMessage) as error:
            LOG.warning("update passed as it came", container=id_, why=str(error))
        return None

    async def _sandbox_by_id(self, id_: str) -> Sandbox | None:
        question = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=id_))
        try:
            listed = await call(self._channel, cri.LIST_POD_SANDBOX, question, LOOK_TIMEOUT_SECONDS)
        except (grpc.aio.AioRpcError, BadMessage) as error:
            LOG.warning("sandbox unknown", sandbox=id_, why=str(error))
            return None
        found = _only(listed.items, id_)
        return sandbox_of(found) if found else None

    def _soon(self, what: Coroutine[Any, Any, None]) -> None:
        """Beside the call, which may have been cancelled."""
        task = asyncio.create_task(self._quietly(what))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _quietly(self, what: Awaitable[None]) -> None:
        """What the manager does after the runtime did its part can't undo that."""
        try:
            await what
        except Exception:
            LOG.exception("the gate failed afterwards")


L = TypeVar("L")


def _guarded(path: str, handler: Handler) -> Handler:
    """Whatever it raises, in the words of gRPC."""

    async def handle(body: bytes, send: Send) -> None:
        try:
            await handler(body, send)
        except Refused:
            raise
        except BadMessage as error:
            raise Refused(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        except AdmissionRejected as error:
            LOG.info("refused", call=path, reason=error.reason, why=str(error))
            raise Refused(_code(error), f"dovetail: {error.reason}: {error}") from None
        except Exception as error:
            LOG.exception("failed", call=path)
            raise Refused(grpc.StatusCode.INTERNAL, f"dovetail failed: {error!r}") from None

    return handle


def _code(error: AdmissionRejected) -> grpc.StatusCode:
    return grpc.StatusCode.UNAVAILABLE if error.later else grpc.StatusCode.FAILED_PRECONDITION


def _only(found: Sequence[L], id_: str) -> L | None:
    """What a list for an id gave; for an empty one a runtime lists everything."""
    return found[0] if id_ and len(found) == 1 else None


def _sandbox(config: cri.PodSandboxConfig, *, id_: str = "", runtime_class: str = "") -> Sandbox:
    if not config.metadata.uid:
        raise BadMessage("the configuration of the sandbox has no metadata.uid")
    return Sandbox(
        uid=config.metadata.uid,
        namespace=config.metadata.namespace,
        name=config.metadata.name,
        id=id_,
        labels=config.labels,
        annotations=config.annotations,
        runtime_class=runtime_class,
    )
