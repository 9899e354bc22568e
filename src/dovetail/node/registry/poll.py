"""A poll of many plugins: one question to all at once, and nobody waits for one that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

import structlog

from dovetail.node.common.ports import Plugin, PluginError
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

A = TypeVar("A", bound=Message)
Q = TypeVar("Q", bound=Message)
C = TypeVar("C")

LOG = structlog.get_logger("dovetail.node.manager")

ANSWER_WAIT_SECONDS = 2.0
"""Until those who have answered are dealt with. The others have their deadline."""


class PendingAnswer(NamedTuple, Generic[A, C]):
    answer: asyncio.Task[A]
    context: C


class PluginAnswer(NamedTuple, Generic[A, C]):
    value: A | PluginError
    context: C
    """What was true when it was asked."""


class PluginPoll(Generic[Q, A, C]):
    def __init__(
        self, method: Method[Q, A], question: Q, wait_seconds: float = ANSWER_WAIT_SECONDS
    ) -> None:
        self._method, self._question, self._wait_seconds = method, question, wait_seconds
        self._asked: dict[str, PendingAnswer[A, C]] = {}

    async def ask(self, plugins: Iterable[Plugin], context: C) -> Mapping[str, PluginAnswer[A, C]]:
        """What came in by now, by resource: answers to this question or to an earlier one."""
        fresh = [each for each in plugins if each.resource not in self._asked]
        for plugin in fresh:
            asking = asyncio.create_task(plugin.call(self._method, self._question))
            self._asked[plugin.resource] = PendingAnswer(asking, context)
        if fresh:
            waiting = [self._asked[each.resource].answer for each in fresh]
            await asyncio.wait(waiting, timeout=self._wait_seconds)
        done = sorted(each for each, one in self._asked.items() if one.answer.done())
        return {resource: self._taken(resource) for resource in done}

    async def stop(self) -> None:
        waiting = [each.answer for each in self._asked.values()]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self._asked.clear()

    def _taken(self, resource: str) -> PluginAnswer[A, C]:
        answer, context = self._asked.pop(resource)
        try:
            return PluginAnswer(answer.result(), context)
        except PluginError as error:
            LOG.warning("plugin not heard", resource=resource, why=str(error))
            return PluginAnswer(error, context)
