"""The outage policy of a role: retry, keep-last, fail-open or reject while a plugin is down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from dovetail.node.admission.configuration import Outage
from dovetail.node.admission.resource_slot import ResourceSlot
from dovetail.node.admission.turns import Turn
from dovetail.node.common.ports import Plugin, PluginError, PluginFailure
from dovetail.node.common.reasons import OF_FAILURES, rejection
from dovetail.wire.rpc import A, Method, Q

OUTAGES = (PluginFailure.DOWN, PluginFailure.TIMEOUT)
"""Other failures are answers: the plugin is there, and says no or nonsense."""

LOOK_PERIOD_SECONDS = 0.05
"""Between looks whether a plugin is back."""


class OutagePolicy:
    """For one admission."""

    def __init__(self, outage: Outage, wait: float) -> None:
        self._outage, self._wait = outage, wait
        self._until: float | None = None
        self.turn: Turn | None = None
        """In which the plugins are asked, if others may have to wait meanwhile."""

    async def await_up(self, plugins: Iterable[Plugin]) -> None:
        """Before a turn is taken: a role that waits for plugins does so while nobody else must."""
        if self._outage is Outage.RETRY:
            for each in plugins:
                if not each.up:
                    await self._back(each)

    async def call(self, plugin: Plugin, method: Method[Q, A], question: Q) -> A:
        """Raises PluginError; a role that waits has waited then."""
        while True:
            try:
                if self.turn is not None:
                    return await self.turn.call(plugin, method, question)
                return await plugin.call(method, question)
            except PluginError as error:
                if self._outage is not Outage.RETRY or error.failure not in OUTAGES:
                    raise
                if not await self._back(plugin):
                    raise

    async def _back(self, plugin: Plugin) -> bool:
        """Whether the plugin is there in time. All questions of an admission share the wait."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._wait
        while now < self._until:
            if self.turn is not None and self.turn.is_in_the_way(plugin.resource):
                return False
            await asyncio.sleep(min(LOOK_PERIOD_SECONDS, self._until - now))
            if plugin.up:
                return True
            now = time.monotonic()
        return False

    def settle(self, slot: ResourceSlot, error: PluginError) -> None:
        """By the role: with what it had, or without; otherwise raises Rejected.

        A container whose devices the scheduler chose never starts without them: CPUs can be
        pinned when the plugin is back, and devices cannot be brought in later.
        """
        keeps = self._outage is Outage.KEEP_LAST and slot.stored is not None
        opens = self._outage is Outage.FAIL_OPEN and not slot.chosen
        if error.failure not in OUTAGES or not (keeps or opens):
            raise rejection(error, later=self.later(error)) from error
        if keeps:
            slot.keep()
        else:
            slot.go_without()
        slot.record.failure, slot.record.missing = OF_FAILURES[error.failure], str(error)

    def tolerates(self, error: PluginError) -> bool:
        """Whether a container that has its allocations may start without that plugin."""
        kind = self._outage in (Outage.FAIL_OPEN, Outage.KEEP_LAST)
        return kind and error.failure in OUTAGES

    def later(self, error: PluginError) -> bool:
        return self._outage in (Outage.RETRY, Outage.FAIL_OPEN) and error.failure in OUTAGES
