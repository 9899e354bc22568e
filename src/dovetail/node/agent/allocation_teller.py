"""Tells pods that have devices of resource classes what they were given; the daemon calls it.

It goes by the checkpoint: whoever was admitted since the last look, or given something else. What
was there when the agent started has been told before.
"""

from __future__ import annotations

from typing import Protocol

from dovetail.devices.allocation_document import ALLOCATION
from dovetail.node.report.allocation_words import allocation_words
from dovetail.node.state.pod_state import PodState
from dovetail.node.state.store import StateStore

LOOK_SECONDS = 1.0


class TellPod(Protocol):
    """Puts words into an event of a pod; neither waits nor fails."""

    def __call__(self, *, namespace: str, name: str, uid: str, words: str) -> None: ...


class AllocationTeller:
    def __init__(self, store: StateStore, tell: TellPod) -> None:
        self._store, self._tell = store, tell
        self._seen = store.state.pods
        self._told = {
            uid: allocation_words(pod) for uid, pod in self._seen.items() if has_devices(pod)
        }

    async def look(self) -> None:
        pods = self._store.state.pods
        if pods is self._seen:
            return
        self._seen = pods
        self._told = {uid: words for uid, words in self._told.items() if uid in pods}
        for uid, pod in pods.items():
            if not has_devices(pod):
                continue
            words = allocation_words(pod)
            if words and self._told.get(uid) != words:
                self._told[uid] = words
                self._tell(namespace=pod.namespace, name=pod.name, uid=uid, words=words)


def has_devices(pod: PodState) -> bool:
    return pod.admitted and ALLOCATION in pod.annotations
