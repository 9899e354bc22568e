"""Clusters in memory, as the worker of deployments sees them: they can be away, refuse, or have
the worker die before or after any call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dovetail.intents.deployment import ObjectKey, ObjectReadiness
from dovetail.intents.group import ManifestObject
from dovetail.intents.names import ClusterName
from dovetail.service.intents.deploying.cluster_port import ClusterAway, DeployedPod, ObjectRefused

Call = tuple[str, ClusterName, str]
"""Verb, cluster, and the name of the object."""


class Crash(BaseException):
    """The process is killed here: nobody handles it."""


class FakeClusters:
    def __init__(self, *names: ClusterName) -> None:
        self.objects: dict[ClusterName, dict[str, tuple[str, str, Any]]] = {
            name: {} for name in names
        }
        """By cluster and object: its uid, whose it is, and what it says."""
        self.away: set[ClusterName] = set()
        self.refused: dict[str, ObjectRefused] = {}
        """By the name of the object."""
        self.lingering: dict[ClusterName, list[DeployedPod]] = {}
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda _: None
        self.after: Callable[[Call], None] = lambda _: None
        self._made = 0

    def names(self, cluster: ClusterName) -> list[str]:
        return sorted(key.rsplit("/", 1)[1] for key in self.objects[cluster])

    def _called(self, call: Call) -> None:
        self.calls.append(call)
        self.before(call)
        if call[1] in self.away:
            raise ClusterAway(f"{call[1]} does not answer")

    async def is_served(self, cluster: ClusterName) -> bool:
        return cluster in self.objects

    async def apply(
        self, cluster: ClusterName, deployment: str, manifest: ManifestObject, uid: str
    ) -> str:
        call = ("apply", cluster, manifest["metadata"]["name"])
        self._called(call)
        if call[2] in self.refused:
            raise self.refused[call[2]]
        key = ObjectKey.of(manifest, "default").text
        there = self.objects[cluster].get(key)
        if there is not None and there[1] != deployment:
            raise ObjectRefused("it is there, and not of this deployment", is_final=True)
        self._made += there is None
        uid = there[0] if there is not None else f"uid-{self._made}"
        self.objects[cluster][key] = (uid, deployment, manifest)
        self.after(call)
        return uid

    async def remove(self, cluster: ClusterName, deployment: str, key: ObjectKey, uid: str) -> bool:
        call = ("remove", cluster, key.name)
        self._called(call)
        there = self.objects[cluster].get(key.text)
        if there is not None and there[1] == deployment and uid in ("", there[0]):
            del self.objects[cluster][key.text]
        self.after(call)
        return True

    async def readiness(
        self, cluster: ClusterName, objects: Sequence[tuple[ObjectKey, str]]
    ) -> Mapping[ObjectKey, ObjectReadiness]:
        self._called(("readiness", cluster, ""))
        return {
            key: ObjectReadiness(is_ready=key.text in self.objects[cluster]) for key, _ in objects
        }

    async def pods(self, cluster: ClusterName, deployment: str) -> Sequence[DeployedPod]:
        self._called(("pods", cluster, ""))
        return self.lingering.get(cluster, [])
