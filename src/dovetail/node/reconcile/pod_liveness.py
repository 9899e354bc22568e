"""Which pods are over. Wrongly taken for gone, a running pod would lose its CPUs to others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from dovetail.node.common.pods import Pod
from dovetail.node.state.pod_state import PodState

STARTING = 240.0
"""Seconds that the kubelet gives a sandbox to come up."""


def unlisted(held: Mapping[str, PodState], active: Sequence[Pod]) -> set[str]:
    """Pods that whoever should know them does not; manifests without a uid count by name."""
    uids = {pod.uid for pod in active}
    names = {(pod.namespace, pod.name) for pod in active if not pod.uid}
    return {
        uid
        for uid, pod in held.items()
        if uid not in uids and (pod.namespace, pod.name) not in names
    }


class PodLiveness:
    """Since when pods have had no sandbox, for nodes where nobody tells which pods there are."""

    def __init__(self) -> None:
        self._awaited: dict[str, float] = {}
        """Admitted at that time, and not seen with a sandbox yet."""
        self._since: dict[str, float] = {}

    def admitted(self, uid: str, now: float) -> None:
        self._since.pop(uid, None)
        self._awaited[uid] = now

    def removed(self, uid: str) -> None:
        """Its sandbox is said to be gone: no need to wait for it to come up."""
        self._awaited.pop(uid, None)

    def look(self, held: Iterable[str], sandboxes: Collection[str], now: float) -> None:
        for uid in held:
            if uid in sandboxes:
                self._awaited.pop(uid, None)
                self._since.pop(uid, None)
            elif now - self._awaited.get(uid, -STARTING) >= STARTING:
                self._since.setdefault(uid, now)

    def longer_than(self, period: float, now: float) -> set[str]:
        return {uid for uid, since in self._since.items() if now - since >= period}

    def forget(self, uid: str) -> None:
        self._since.pop(uid, None)
        self._awaited.pop(uid, None)
