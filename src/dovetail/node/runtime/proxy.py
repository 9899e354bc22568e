"""The CRI proxy: the kubelet's runtime endpoint is ours, and behind it is the real runtime.

Four methods are looked at. RunPodSandbox: the pod is admitted first. CreateContainer: the container
gets its settings. UpdateContainerResources: the kubelet must not undo them. RemovePodSandbox: a pod
may be gone. Everything else is passed on unseen, and works whatever state the agent is in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import structlog

from dovetail.node import metrics
from dovetail.node.pods import Sandbox
from dovetail.node.ports import Gate, Rejected
from dovetail.node.runtime import injection
from dovetail.node.runtime.cri import OPTIONS, connect, sandbox_of
from dovetail.node.runtime.forwarding import Context, Forward, fail
from dovetail.node.settings import Settings
from dovetail.node.wire import cri
from dovetail.node.wire.codec import BadMessage, M, cooked, decode, raw_class
from dovetail.node.wire.listening import CannotServe, Listening
from dovetail.node.wire.rpc import call

LOG = structlog.get_logger("dovetail.node.runtime")

LOOK = 5.0
"""Seconds for a question of our own to the runtime."""


class Proxy:
    """Serves CRI at `listen` and passes calls on to the runtime at `runtime`."""

    def __init__(self, listen: Path, runtime: Path, gate: Gate) -> None:
        self._listen, self._runtime, self._gate = listen, runtime, gate
        self._later: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Raises CannotServe."""
        self._channel = connect(self._runtime)
        self._forward = Forward(self._channel)
        handlers = [_Methods(self._forward, self._seen())]
        self._listening = Listening(self._listen, handlers=handlers, options=OPTIONS)
        try:
            await self._listening.start()
        except CannotServe:
            await self._channel.close()
            raise
        LOG.info("proxy listens", socket=str(self._listen), runtime=str(self._runtime))

    async def stop(self, grace: float = 5.0) -> None:
        """Let calls under way end within `grace` seconds."""
        await self._listening.stop(grace)
        await asyncio.gather(*self._later)
        await self._channel.close()

    def _seen(self) -> dict[str, Handler]:
        return {
            f"/{cri.SERVICE}/RunPodSandbox": self._run_pod_sandbox,
            f"/{cri.SERVICE}/CreateContainer": self._create_container,
            f"/{cri.SERVICE}/UpdateContainerResources": self._update_container_resources,
            f"/{cri.SERVICE}/RemovePodSandbox": self._remove_pod_sandbox,
        }

    async def _run_pod_sandbox(self, path: str, body: bytes, context: Context) -> bytes:
        request = decode(cri.RunPodSandboxRequest, body)
        sandbox = _sandbox(request.config, runtime_class=request.runtime_handler)
        await self._gate.admit(sandbox)
        try:
            return await self._forward.unary(path, body, context)
        except BaseException:
            # The kubelet will try again, or not: the gate is to look which.
            self._soon(self._gate.gone(sandbox))
            raise

    async def _create_container(self, path: str, body: bytes, context: Context) -> bytes:
        request = _parsed(cri.CreateContainerRequest, body)
        config = cooked(cri.PodSandboxConfig, request.sandbox_config)
        sandbox, name = _sandbox(config, id_=request.pod_sandbox_id), request.config.metadata.name
        asked = injection.read_back(
            cooked(cri.LinuxContainerResources, request.config.linux.resources)
        )
        settings = await self._gate.settings(sandbox, name, asked)
        injection.inject(request, settings)
        answer = await self._forward.unary(path, request.SerializeToString(), context)
        id_ = decode(cri.CreateContainerResponse, answer).container_id
        await self._quietly(self._gate.created(sandbox, name, id_, settings))
        return answer

    async def _update_container_resources(self, path: str, body: bytes, context: Context) -> bytes:
        request = _parsed(cri.UpdateContainerResourcesRequest, body)
        settings = await self._held(request.container_id)
        if injection.has_resources(settings):
            injection.put_resources(request.linux, settings)
            body = request.SerializeToString()
        return await self._forward.unary(path, body, context)

    async def _remove_pod_sandbox(self, path: str, body: bytes, context: Context) -> bytes:
        sandbox = await self._sandbox_by_id(
            decode(cri.RemovePodSandboxRequest, body).pod_sandbox_id
        )
        answer = await self._forward.unary(path, body, context)
        if sandbox:
            self._soon(self._gate.gone(sandbox))
        return answer

    async def _held(self, id_: str) -> Settings:
        """By a container that is there. It must not fail: the kubelet may change what runs."""
        question = cri.ListContainersRequest(filter=cri.ContainerFilter(id=id_))
        try:
            listed = await call(self._channel, cri.LIST_CONTAINERS, question, LOOK)
            container = _only(listed.containers, id_)
            sandbox = container and await self._sandbox_by_id(container.pod_sandbox_id)
            if container and sandbox:
                return self._gate.held(sandbox.uid, container.metadata.name)
        except (grpc.aio.AioRpcError, BadMessage, Rejected) as error:
            LOG.warning("update passed as it came", container=id_, why=str(error))
        return Settings()

    async def _sandbox_by_id(self, id_: str) -> Sandbox | None:
        question = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=id_))
        try:
            listed = await call(self._channel, cri.LIST_POD_SANDBOX, question, LOOK)
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
        """What the gate does after the runtime did its part can't undo that."""
        try:
            await what
        except Exception:
            LOG.exception("the gate failed afterwards")


L = TypeVar("L")
Handler = Callable[[str, bytes, Context], Awaitable[bytes]]


class _Methods(grpc.GenericRpcHandler):
    """Who handles a call: one of ours, or the one that passes it on."""

    def __init__(self, forward: Forward, seen: dict[str, Handler]) -> None:
        self._forward = forward
        self._known = {path: _seen_handler(path, handler) for path, handler in seen.items()}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        path = handler_call_details.method
        if path in cri.UNARY and path not in self._known:
            self._known[path] = self._forward.unary_handler(path)
        return self._known.get(path) or self._forward.stream_handler(path)


def _seen_handler(path: str, handler: Handler) -> grpc.RpcMethodHandler[bytes, bytes]:
    injected, refused = metrics.PROXIED.labels("injected"), metrics.PROXIED.labels("refused")

    async def handle(body: bytes, context: Context) -> bytes:
        began = time.perf_counter()
        try:
            answer = await handler(path, body, context)
        except grpc.aio.AioRpcError as error:
            await fail(context, error)
        except BadMessage as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Rejected as error:
            LOG.info("refused", call=path, reason=error.reason, why=str(error))
            refused.observe(time.perf_counter() - began)
            await context.abort(_code(error), f"dovetail: {error.reason}: {error}")
        except Exception as error:
            LOG.exception("failed", call=path)
            await context.abort(grpc.StatusCode.INTERNAL, f"dovetail failed: {error!r}")
        injected.observe(time.perf_counter() - began)
        return answer

    return grpc.unary_unary_rpc_method_handler(handle)


def _code(error: Rejected) -> grpc.StatusCode:
    return grpc.StatusCode.UNAVAILABLE if error.later else grpc.StatusCode.FAILED_PRECONDITION


def _only(found: Sequence[L], id_: str) -> L | None:
    """What a list for an id gave; for an empty one a runtime lists everything."""
    return found[0] if id_ and len(found) == 1 else None


def _parsed(cls: type[M], body: bytes) -> Any:
    """The library's form, in which unknown fields stay."""
    decode(cls, body)
    return raw_class(cls).FromString(body)


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
