"""The state store: changes in memory at once, durable by group commit to the checkpoint.

Changes are made in memory at once and are durable when `commit` returns. Commits that wait for the
disk at the same time share one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from dovetail.aio.single_flight import NextRun
from dovetail.core.errors import DovetailError
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.metrics import AGENT_METRICS
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.pod_state import (
    AgentState,
    Allocations,
    PodState,
    refreshed_allocations,
)
from dovetail.node.wire.resource_plugin import ResourcePluginOptions

PODS = AGENT_METRICS.gauge("pods", "Pods with allocations.")
WAITING_REMOVALS = AGENT_METRICS.gauge(
    "waiting_removals", "Pods that went and of which a plugin has not been told yet."
)


class NotWritten(DovetailError):
    """The state could not be saved."""


class AppliedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a container runs with, as far as we brought it about."""

    id: str
    settings: ContainerSettings


class StateStore:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._state, self.troubles = checkpoint.load()
        self._writing = NextRun(self._write)
        self._saved: AgentState | None = None
        self.applied: dict[tuple[str, str], AppliedSettings] = {}
        """By uid and container. Not saved: after a restart, only what is observed counts."""
        self.listeners: list[Callable[[AgentState], None]] = []
        """Called at each change, before it is durable."""
        self._count()

    @classmethod
    def open(cls, directory: Path) -> StateStore:
        """Of a state directory. What had to be set aside is in `troubles`."""
        return cls(Checkpoint(directory))

    @property
    def state(self) -> AgentState:
        """A value: it stays as it is while the store goes on."""
        return self._state

    @property
    def pods(self) -> Mapping[str, PodState]:
        return self._state.pods

    def pod(self, uid: str) -> PodState | None:
        return self._state.pods.get(uid)

    def put(self, pod: PodState) -> None:
        if self.pod(pod.uid) != pod:
            self._become(self._state.with_pod(pod))

    def drop(self, uid: str, tell: Iterable[str]) -> None:
        """Forget a pod, and keep in mind which plugins are to be told."""
        self._become(self._state.without_pod(uid, tell))
        for key in [each for each in self.applied if each[0] == uid]:
            del self.applied[key]

    def refresh(self, uid: str, container: str, found: Allocations) -> bool:
        """Take in what plugins say now of a container; whether that is news.

        Nothing is taken away: resources and hints that are not mentioned stay.
        """
        pod = self.pod(uid)
        if pod is None or container not in pod.containers:
            return False
        holding = pod.containers[container]
        allocations = refreshed_allocations(holding.allocations, found)
        if allocations == holding.allocations:
            return False
        missing = tuple(each for each in holding.missing if each not in allocations)
        renewed = msgspec.structs.replace(holding, allocations=allocations, missing=missing)
        holdings = {**pod.containers, container: renewed}
        self.put(msgspec.structs.replace(pod, containers=holdings))
        return True

    def forget_removal(self, uid: str, resource: str) -> None:
        """The plugin was told that the pod went."""
        self._become(self._state.without_removal(uid, resource))

    def remember(self, resource: str, options: ResourcePluginOptions) -> None:
        if self._state.plugins.get(resource) != options:
            self._become(self._state.with_plugin(resource, options))

    def forget_plugin(self, resource: str) -> None:
        """Pods that ask for its resource go without from now on."""
        self._become(self._state.without_plugin(resource))

    async def commit(self) -> None:
        """All changes made until now are durable; raises NotWritten."""
        if self._state is not self._saved:
            await self._writing.join()

    async def _write(self) -> None:
        state = self._state
        try:
            await asyncio.to_thread(self._checkpoint.save, state)
        except OSError as error:
            raise NotWritten(f"{self._checkpoint.path} cannot be written: {error}") from error
        self._saved = state

    def _become(self, state: AgentState) -> None:
        self._state = state
        self._count()
        for each in self.listeners:
            each(state)

    def _count(self) -> None:
        PODS.set(len(self._state.pods))
        WAITING_REMOVALS.set(len(self._state.removals))
