"""Handlers of containerd's NRI events: pods are admitted by the manager, containers adjusted.

A plugin that does not answer within the runtime's time limit is thrown out, and containers then
start without it. So an admission that takes long is answered with an error in good time and goes
on: the kubelet tries again, and by then there is a result.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import structlog

from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionPort, AdmissionRejected
from dovetail.node.common.reasons import CONFLICTING_SETTINGS
from dovetail.node.cri.injection import has_resources
from dovetail.node.nri import adjustment
from dovetail.node.wire import nri
from dovetail.node.wire.resource_plugin import DeviceSpec
from dovetail.wire.codec import Message, decode, encode
from dovetail.wire.rpc import Refused

LOG = structlog.get_logger("dovetail.node.runtime")

REQUEST_TIMEOUT_SECONDS = 2.0
"""That the runtime waits for us, if it does not say: containerd's default."""

USED_PART_OF_TIMEOUT = 0.75
"""The part of that time that we use."""

T = TypeVar("T")
Handler = Callable[[nri.PodEvent], Awaitable[Message]]


class NriEvents:
    """Of one connection. What there is is not followed: a runtime that was restarted is silent
    about the end of pods from before."""

    def __init__(
        self,
        manager: AdmissionPort,
        synchronized: asyncio.Event,
        on_configured: Callable[[nri.ConfigureRequest], None] = lambda _: None,
    ) -> None:
        """`synchronized` is set as soon as the runtime takes calls of ours."""
        self._manager, self._synchronized = manager, synchronized
        self._on_configured = on_configured
        self._timeout = REQUEST_TIMEOUT_SECONDS
        self._going_on: set[asyncio.Task[Any]] = set()
        self._handlers: dict[nri.Event, Handler] = {
            nri.Event.RUN_POD_SANDBOX: self._run_pod_sandbox,
            nri.Event.STOP_POD_SANDBOX: self._sandbox_went,
            nri.Event.REMOVE_POD_SANDBOX: self._sandbox_went,
            nri.Event.CREATE_CONTAINER: self._create_container,
            nri.Event.UPDATE_CONTAINER: self._update_container,
        }
        self._methods = {_method(event): handler for event, handler in self._handlers.items()}

    async def serve(self, method: str, payload: bytes) -> bytes:
        """Answer a call of the runtime."""
        if method == "Configure":
            return encode(self._configure(decode(nri.ConfigureRequest, payload)))
        if method == "Synchronize":
            return encode(self._synchronize(decode(nri.SynchronizeRequest, payload)))
        if method == "Shutdown":
            return b""
        if method == "StateChange":
            told = decode(nri.StateChangeEvent, payload)
            handler = self._handlers.get(told.event)
            event = nri.PodEvent(pod=told.pod, container=told.container)
        else:
            handler = self._methods.get(method)
            event = decode(nri.PodEvent, payload) if handler else nri.PodEvent()
        if handler is None:
            raise Refused(grpc.StatusCode.UNIMPLEMENTED, f"{method}: there is no such method here")
        return encode(await handler(event))

    def _configure(self, request: nri.ConfigureRequest) -> nri.ConfigureResponse:
        self._timeout = request.request_timeout / 1000 or REQUEST_TIMEOUT_SECONDS
        self._on_configured(request)
        LOG.info("nri configured", runtime=request.runtime_name, version=request.runtime_version)
        return nri.ConfigureResponse(events=sum(1 << (event - 1) for event in self._handlers))

    def _synchronize(self, request: nri.SynchronizeRequest) -> nri.SynchronizeResponse:
        """Changes nothing of what runs. The reconcile loop brings it into line, as it does at any
        time: it alone knows what was refused before and when to try again."""
        if not request.more:
            self._synchronized.set()
        return nri.SynchronizeResponse(more=request.more)

    async def _run_pod_sandbox(self, event: nri.PodEvent) -> Message:
        sandbox = sandbox_of(event.pod)
        await self._in_time(
            self._manager.admit_pod(sandbox), lambda: self._manager.sandbox_gone(sandbox)
        )
        return nri.Empty()

    async def _sandbox_went(self, event: nri.PodEvent) -> Message:
        """One that was stopped never runs again, even if it is kept for a while."""
        await self._quietly(self._manager.sandbox_gone(sandbox_of(event.pod)))
        return nri.Empty()

    async def _create_container(self, event: nri.PodEvent) -> Message:
        sandbox, container = sandbox_of(event.pod), event.container
        asked = adjustment.read_back(container)
        settings = await self._in_time(
            self._manager.admit_container(sandbox, container.name, asked)
        )
        devices = _devices(settings.devices)
        _check_places(container, settings.devices, devices)
        adjusted = adjustment.adjustment(container, settings, devices)
        # It has its id already. Should it not come to be, nothing will be seen under that id.
        created = self._manager.container_created(sandbox, container.name, container.id, settings)
        await self._quietly(created)
        return nri.CreateContainerResponse(adjust=adjusted)

    async def _update_container(self, event: nri.PodEvent) -> Message:
        """The kubelet changes something that runs: it may, but not what is ours. Whether the
        runtime does it is not told: the manager looks."""
        container, sandbox = event.container, sandbox_of(event.pod)
        asked = adjustment.settings_of(event.linux_resources)
        settings = await self._in_time(
            self._manager.resize_container(sandbox, container.name, asked)
        )
        if not has_resources(settings):
            return nri.UpdateContainerResponse()
        return nri.UpdateContainerResponse(update=(adjustment.update(container.id, settings),))

    async def _in_time(
        self,
        what: Coroutine[Any, Any, T],
        if_late: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> T:
        """The answer of the manager, or an error before the runtime gives up.

        What takes longer goes on; `if_late` is done after it.
        """
        task = asyncio.create_task(what)
        self._keep(task)
        try:
            return await asyncio.wait_for(
                asyncio.shield(task), self._timeout * USED_PART_OF_TIMEOUT
            )
        except TimeoutError:
            if if_late:
                self._keep(asyncio.create_task(_after(task, if_late)))
            words = f"dovetail: no answer of the plugins within {self._timeout:g} s; try again"
            raise Refused(grpc.StatusCode.UNAVAILABLE, words) from None
        except AdmissionRejected as error:
            LOG.info("refused", reason=error.reason, why=str(error))
            code = grpc.StatusCode.FAILED_PRECONDITION
            raise Refused(code, f"dovetail: {error.reason}: {error}") from None

    async def _quietly(self, what: Coroutine[Any, Any, None]) -> None:
        """What the manager does after the runtime did its part can't undo that."""
        try:
            await self._in_time(what)
        except Exception:
            LOG.exception("the gate failed afterwards")

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._going_on.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._going_on.discard(task)
        if not task.cancelled() and (error := task.exception()):
            # Whoever waits gets it, too; but after the time limit nobody does.
            LOG.debug("the gate said no", why=repr(error))


def sandbox_of(pod: nri.PodSandbox) -> Sandbox:
    return Sandbox(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        id=pod.id,
        labels=pod.labels,
        annotations=pod.annotations,
        runtime_class=pod.runtime_handler,
    )


async def _after(task: asyncio.Task[Any], what: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await asyncio.wait([task])
    await what()


def _method(event: nri.Event) -> str:
    """RUN_POD_SANDBOX comes in RunPodSandbox."""
    return "".join(word.capitalize() for word in event.name.split("_"))


def _devices(wanted: Iterable[DeviceSpec]) -> adjustment.Devices:
    """NRI wants to know what a device is; it gives all rights to it, whatever is asked."""
    return {each.host_path: _device(Path(each.host_path)) for each in wanted}


def _check_places(
    container: nri.Container, wanted: Iterable[DeviceSpec], devices: adjustment.Devices
) -> None:
    """Where the container has a device already, it is that one. Raises Refused."""
    there = {each.path: (each.type, each.major, each.minor) for each in container.linux.devices}
    for each in wanted:
        found = devices[each.host_path]
        own = (found.type, found.major, found.minor)
        if there.get(each.container_path, own) != own:
            words = (
                f"dovetail: {CONFLICTING_SETTINGS}: the container is given {each.host_path} at "
                f"{each.container_path}, and there it has another device"
            )
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, words)


def _device(path: Path) -> nri.LinuxDevice:
    try:
        found = path.stat()
    except OSError as error:
        raise Refused(grpc.StatusCode.FAILED_PRECONDITION, f"device {path}: {error}") from None
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        raise Refused(grpc.StatusCode.FAILED_PRECONDITION, f"{path} is no device")
    return nri.LinuxDevice(
        path=str(path),
        type="c" if stat.S_ISCHR(found.st_mode) else "b",
        major=os.major(found.st_rdev),
        minor=os.minor(found.st_rdev),
    )
