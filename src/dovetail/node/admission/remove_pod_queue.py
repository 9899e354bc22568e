"""Outbox of RemovePod calls: plugins are told of a pod that went until they know, with back-off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from dovetail.aio.backoff import KeyedBackoff
from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.turns import PATIENCE_SECONDS
from dovetail.node.common.ports import Plugin, PluginError, PluginFailure, Plugins
from dovetail.node.state.store import NotWritten, StateStore
from dovetail.node.wire.resource_plugin import REMOVE_POD, RemovePodRequest

LOG = structlog.get_logger("dovetail.node.manager")

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
"""Until a plugin that failed is told again: twice as long each time."""


ANSWERS = (PluginFailure.REFUSED, PluginFailure.GARBAGE)
"""Failures of a plugin that is there: others it may well hear of."""

EVERY = ""
"""In place of a pod's uid: all pods."""


class RemovePodQueue:
    """The queue of those to be told. It is part of the state, so a restart does not lose it."""

    def __init__(
        self,
        store: StateStore,
        plugins: Plugins,
        locks: PodLocks,
        clock: Callable[[], float] = time.monotonic,
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._store, self._plugins, self._locks, self._clock = store, plugins, locks, clock
        self._patience = patience
        self._failures: KeyedBackoff[tuple[str, str]] = KeyedBackoff(
            FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS
        )
        """By resource, and by pod if the plugin answered: what it says of one is not for others."""

    async def deliver(self) -> None:
        """Tell all plugins that are there, and that did not fail a moment ago."""
        before = self._store.state.removals
        resources = sorted({each for waiting in before.values() for each in waiting})
        await asyncio.gather(*(self._deliver_to(each) for each in resources if self._ready(each)))
        if self._store.state.removals != before:
            await self.save()

    async def settle(self, uid: str, resource: str) -> None:
        """Before a plugin hears of the pod again; the pod's lock is held. Raises PluginError."""
        plugin = self._plugins.of(resource)
        if plugin is not None and resource in self._store.state.removals.get(uid, ()):
            await self._tell(plugin, uid)

    async def attempt(self, uid: str) -> None:
        """Tell those who are ready, all at once; the pod's lock is held, and a turn at its plugins.

        Others hear of it later, outside of turns; so do those that take longer than who waits for
        the turn has patience.
        """
        waiting = self._store.state.removals.get(uid, ())
        await asyncio.gather(*(self._tell_soon(each, uid) for each in waiting))

    async def _tell_soon(self, resource: str, uid: str) -> None:
        plugin = self._plugins.of(resource)
        if plugin is None or not self._ready(resource) or self._is_waiting(resource, uid):
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._tell(plugin, uid)
        except PluginError as error:
            self._failed(resource, uid, error)
        except TimeoutError:
            self._failed(resource, uid, f"no answer within {self._patience} seconds")

    async def save(self) -> None:
        try:
            await self._store.commit()
        except NotWritten as error:
            # In memory it is as it should be; if that is lost, a plugin is told twice.
            LOG.warning("removals not saved", why=str(error))

    def _ready(self, resource: str) -> bool:
        plugin = self._plugins.of(resource)
        return plugin is not None and plugin.up and not self._is_waiting(resource)

    def _is_waiting(self, resource: str, uid: str = EVERY) -> bool:
        return self._failures.is_waiting((resource, uid), None, self._clock())

    async def _deliver_to(self, resource: str) -> None:
        for uid, waiting in sorted(self._store.state.removals.items()):
            plugin = self._plugins.of(resource)
            if resource not in waiting or plugin is None or self._is_waiting(resource, uid):
                continue
            async with self._locks.of(uid):
                # Meanwhile the pod may have been admitted again, and its plugins told before that.
                if resource not in self._store.state.removals.get(uid, ()):
                    continue
                try:
                    await self._tell(plugin, uid)
                except PluginError as error:
                    self._failed(resource, uid, error)
                    if error.failure not in ANSWERS:
                        return

    async def _tell(self, plugin: Plugin, uid: str) -> None:
        try:
            await plugin.call(REMOVE_POD, RemovePodRequest(pod_uid=uid))
        except PluginError as error:
            if error.failure is not PluginFailure.UNIMPLEMENTED:
                raise
            # It keeps nothing of pods.
        self._failures.forget((plugin.resource, EVERY))
        self._failures.forget((plugin.resource, uid))
        self._store.forget_removal(uid, plugin.resource)

    def _failed(self, resource: str, uid: str, error: PluginError | str) -> None:
        now = self._clock()
        answered = isinstance(error, PluginError) and error.failure in ANSWERS
        key = (resource, uid if answered else EVERY)
        # Of several that failed together only the first makes the wait longer.
        if not self._failures.is_waiting(key, None, now):
            self._failures.record(key, None, now)
        wait = self._failures.wait_of(key)
        LOG.warning("pod not removed", resource=resource, pod=uid, again_in=wait, why=str(error))
