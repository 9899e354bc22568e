"""The endpoint of one resource: a `Plugin` that is up or down, called with deadlines and metrics.

Calls run side by side, each with its own deadline: a plugin that hangs holds up nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import grpc
import grpc.aio

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.answer_checks import fault
from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.metrics import PLUGIN_CALLS, PLUGINS_UP
from dovetail.node.registry.sockets import SocketIdentity
from dovetail.node.wire.resource_plugin import ResourcePluginOptions
from dovetail.wire import rpc
from dovetail.wire.codec import BadMessage
from dovetail.wire.rpc import A, Method, Q


class EndpointHolder(Protocol):
    """Who keeps up the registration at one socket."""

    socket: str
    identity: SocketIdentity

    def look(self) -> None:
        """Told when a newer plugin for the resource took over."""
        ...


class PluginEndpoint:
    """A `ports.Plugin`. One object stands for the resource, whichever plugin serves it."""

    def __init__(
        self,
        resource: str,
        options: ResourcePluginOptions,
        deadlines: Deadlines,
        clock: Callable[[], float],
    ) -> None:
        """Down at first: known from before, or about to be attached."""
        self.resource, self.options = resource, options
        self.deadlines, self.clock = deadlines, clock
        self.down_since: float | None = clock()
        self.holder: EndpointHolder | None = None
        self.channel: grpc.aio.Channel | None = None
        PLUGINS_UP.labels(resource).set(0)

    @property
    def up(self) -> bool:
        return self.channel is not None

    def attach(
        self, holder: EndpointHolder, channel: grpc.aio.Channel, options: ResourcePluginOptions
    ) -> None:
        """From now on this plugin is called; the one before, if any, is told."""
        before = self.holder
        self.holder, self.channel, self.options = holder, channel, options
        self.down_since = None
        PLUGINS_UP.labels(self.resource).set(1)
        if before and before is not holder:
            before.look()

    def detach(self, holder: EndpointHolder) -> bool:
        """The plugin is gone; tells whether it was the one that is called."""
        if self.holder is not holder:
            return False
        self.holder = self.channel = None
        self.down_since = self.clock()
        PLUGINS_UP.labels(self.resource).set(0)
        return True

    async def call(self, method: Method[Q, A], question: Q) -> A:
        began, result = self.clock(), "ok"
        try:
            if self.channel is None:
                raise PluginError(
                    self.resource,
                    PluginFailure.DOWN,
                    f"the plugin for {self.resource} is not there",
                )
            return await ask(
                self.channel, method, question, self.deadlines.of(method), self.resource
            )
        except PluginError as error:
            result = error.failure.value
            raise
        finally:
            PLUGIN_CALLS.labels(self.resource, method.name, result).observe(self.clock() - began)


async def ask(
    channel: grpc.aio.Channel, method: Method[Q, A], question: Q, deadline: float, resource: str
) -> A:
    """One question, and the answer to it; raises PluginError."""
    try:
        answer = await rpc.call(channel, method, question, deadline)
    except BadMessage as error:
        raise PluginError(
            resource, PluginFailure.GARBAGE, _words(method, resource, str(error))
        ) from None
    except grpc.aio.AioRpcError as error:
        raise PluginError(
            resource,
            failure_of(error),
            _words(method, resource, f"{error.details()} ({error.code().name})"),
        ) from None
    except (asyncio.CancelledError, grpc.aio.UsageError):
        # The channel was closed under the call, which gRPC tells as if the caller were cancelled.
        asking = asyncio.current_task()
        if asking is None or asking.cancelling():
            raise
        raise PluginError(
            resource, PluginFailure.DOWN, _words(method, resource, "it went away meanwhile")
        ) from None
    if wrong := fault(question, answer):
        raise PluginError(resource, PluginFailure.GARBAGE, _words(method, resource, wrong))
    return answer


def failure_of(error: grpc.aio.AioRpcError) -> PluginFailure:
    code = error.code()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return PluginFailure.TIMEOUT
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return PluginFailure.DOWN
    if code is grpc.StatusCode.UNIMPLEMENTED or _says_not_implemented(error):
        return PluginFailure.UNIMPLEMENTED
    # The same code is for a plugin to say that nothing is left: only the words tell the two apart.
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in (error.details() or ""):
        return PluginFailure.GARBAGE
    return PluginFailure.REFUSED


def _says_not_implemented(error: grpc.aio.AioRpcError) -> bool:
    """As Katalyst's plugins answer: an error of Go without a code."""
    return error.code() is grpc.StatusCode.UNKNOWN and error.details() == "not implemented"


def _words(method: Method[Q, A], resource: str, why: str) -> str:
    return f"{method.name} of the plugin for {resource}: {why}"
