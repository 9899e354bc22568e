"""Retirement: plugins that were uninstalled are forgotten, so that no pod waits for them for ever.

Not at once: a plugin that is replaced by a newer version is away for a moment, too, and pods that
start meanwhile are not to go without it. Nor as long as a pod has something of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import structlog

from dovetail.node.common.ports import Plugin, PluginRegistry
from dovetail.node.registry.deadlines import GONE_SECONDS
from dovetail.node.state.pod_state import PodState
from dovetail.node.state.store import NotWritten, StateStore

LOG = structlog.get_logger("dovetail.node.manager")


class PluginRetirement:
    def __init__(
        self,
        store: StateStore,
        plugins: PluginRegistry,
        *,
        grace: float = GONE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._plugins, self._grace, self._clock = store, plugins, grace, clock

    async def look(self) -> None:
        pods = self._store.pods.values()
        gone = retired_resources(self._plugins.all(), pods, self._clock() - self._grace)
        forgotten = [each for each in gone if self._plugins.forget(each)]
        for each in forgotten:
            self._store.forget_plugin(each)
            LOG.warning("plugin forgotten: pods start without it", resource=each)
        if forgotten:
            try:
                await self._store.commit()
            except NotWritten as error:
                # After a restart it is found out again.
                LOG.warning("state not saved", why=str(error))


def retired_resources(
    plugins: Iterable[Plugin], pods: Iterable[PodState], since: float
) -> list[str]:
    """Resources whose plugins have been down `since` then, and of which no pod has anything."""
    used = {name for pod in pods for name in in_use(pod)}
    return [
        each.resource
        for each in plugins
        if each.down_since is not None and each.down_since <= since
        if each.resource not in used
    ]


def in_use(pod: PodState) -> Iterable[str]:
    """Resources whose plugins know of the pod, or are to hear of it when they are back."""
    yield from pod.plugins
    for holding in pod.containers.values():
        yield from holding.allocations
        yield from holding.missing
