"""Turns: of pods that share a plugin, one is decided on at a time; transaction and collector ask.

Hints are true only until something else is allocated. So whoever asks for hints, allocates or gives
back does so in a turn, as in the kubelet: in order of arrival, and at the same time only as others
whose plugins are all different. What comes out is what these turns, one after the other, give.

A plugin that hangs has its deadline, and must not hold up pods that do not need it. So a call in a
turn ends early, as a timeout, when it has taken longer than the patience and somebody waits who
does not need its plugin. That plugin is suspect until it answers: who needs it comes after those
who do not, and is not waited for while one of them waits. So a plugin that hangs costs others the
patience once, and a slow one is waited for as long as nobody else has to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from dovetail.node.common.ports import Plugin, PluginError, PluginFailure
from dovetail.wire.rpc import A, Method, Q

PATIENCE_SECONDS = 2.0
"""For a plugin, while somebody waits who does not need it."""


class PendingCall:
    """A question to a plugin that is not answered yet."""

    def __init__(self, resource: str, limit: asyncio.Timeout) -> None:
        self.resource, self.limit = resource, limit
        self.began = asyncio.get_running_loop().time()


class Turn:
    """Of one who decides, or waits to."""

    def __init__(self, turns: Turns, resources: Iterable[str]) -> None:
        self.resources = frozenset(resources)
        self.begun = asyncio.Event()
        self.calls: set[PendingCall] = set()
        self._turns = turns

    async def call(self, plugin: Plugin, method: Method[Q, A], question: Q) -> A:
        """The plugin's answer, within its deadline and the patience of others; or PluginError."""
        with self._turns.watched(plugin.resource):
            try:
                async with asyncio.timeout(None) as limit:
                    with self._pending(plugin.resource, limit):
                        return await plugin.call(method, question)
            except TimeoutError:
                words = (
                    f"{method.name} of the plugin for {plugin.resource}: no answer yet, and pods "
                    "wait that do not need it"
                )
                raise PluginError(plugin.resource, PluginFailure.TIMEOUT, words) from None

    def is_in_the_way(self, resource: str) -> bool:
        """Whether somebody waits for it who does not need the plugin of this resource."""
        return self._turns.is_held_up(self, resource)

    @contextmanager
    def _pending(self, resource: str, limit: asyncio.Timeout) -> Iterator[None]:
        pending = PendingCall(resource, limit)
        self.calls.add(pending)
        self._turns.hurry(self)
        try:
            yield
        finally:
            self.calls.discard(pending)


class Turns:
    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        """`patience` in seconds."""
        self._patience = patience
        self._waiting: list[Turn] = []
        """In order of arrival."""
        self._current: list[Turn] = []
        self._suspects: set[str] = set()
        """Resources whose plugins did not answer the last time."""

    @asynccontextmanager
    async def taken(self, resources: Iterable[str]) -> AsyncIterator[Turn]:
        """Inside, nobody else decides about these resources."""
        turn = Turn(self, resources)
        self._waiting.append(turn)
        self._go_on()
        try:
            await turn.begun.wait()
            yield turn
        finally:
            (self._current if turn.begun.is_set() else self._waiting).remove(turn)
            self._go_on()

    def is_held_up(self, turn: Turn, resource: str) -> bool:
        """Whether one who does not need this resource waits for the turn, or for one who does."""
        blocked = turn.resources
        for each in self._waiting:
            if each.resources & blocked:
                if resource not in each.resources:
                    return True
                blocked |= each.resources
        return False

    def hurry(self, turn: Turn) -> None:
        """Limit its calls to what those who wait and do not need the plugin have patience for."""
        now = asyncio.get_running_loop().time()
        for each in turn.calls:
            if self.is_held_up(turn, each.resource) and not each.limit.expired():
                patience = 0.0 if each.resource in self._suspects else self._patience
                each.limit.reschedule(max(now, each.began + patience))

    @contextmanager
    def watched(self, resource: str) -> Iterator[None]:
        """A call to a plugin, which is suspect afterwards or is not."""
        try:
            yield
        except PluginError as error:
            if error.failure is PluginFailure.TIMEOUT:
                self._suspects.add(resource)
            else:
                self._suspects.discard(resource)
            raise
        else:
            self._suspects.discard(resource)

    def _go_on(self) -> None:
        """Begin every turn that can begin; the calls of those under way are not to take long."""
        taken = {resource for each in self._current for resource in each.resources}
        for turn in sorted(self._waiting, key=lambda each: bool(each.resources & self._suspects)):
            if not turn.resources & taken:
                self._waiting.remove(turn)
                self._current.append(turn)
                turn.begun.set()
            # One who has to wait for one plugin keeps the others, or might wait for ever.
            taken |= turn.resources
        for turn in self._current:
            self.hurry(turn)
