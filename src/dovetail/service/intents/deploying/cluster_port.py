"""Port to the clusters: what the worker of deployments asks of them; `kube/deploy` implements it.

    DovetailError
    ├── ClusterAway       no answer, or no way to it: try again
    └── ObjectRefused     the cluster said no; `is_final`: it always will

Calls can be repeated: what is there already is left as it is, what is gone is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.intents.deployment import ObjectKey, ObjectReadiness
from dovetail.intents.group import ManifestObject
from dovetail.intents.names import ClusterName


class ClusterAway(DovetailError):
    """No answer: what was sent may have been done."""


class ObjectRefused(DovetailError):
    """The cluster does not take an object, or does not let go of one."""

    def __init__(self, words: str, *, is_final: bool = False) -> None:
        self.is_final = is_final
        super().__init__(words)


class DeployedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of a deployment, as its cluster tells."""

    namespace: str
    name: str
    app: str
    phase: str
    node: str = ""
    is_ready: bool = False


class ClusterPort(Protocol):
    """All clusters; calls raise ClusterAway and ObjectRefused."""

    async def is_served(self, cluster: ClusterName) -> bool:
        """Whether there is a way to it at all: one that was only told by a snapshot has none."""
        ...

    async def apply(
        self, cluster: ClusterName, deployment: str, manifest: ManifestObject, uid: str
    ) -> str:
        """Have it there as it says, and return its uid. `uid` is the one it had, if it was applied
        before. An object that is there and is not the deployment's own is refused."""
        ...

    async def remove(self, cluster: ClusterName, deployment: str, key: ObjectKey, uid: str) -> bool:
        """Take it away, if it is the deployment's own; True when it is there no more."""
        ...

    async def readiness(
        self, cluster: ClusterName, objects: Sequence[tuple[ObjectKey, str]]
    ) -> Mapping[ObjectKey, ObjectReadiness]:
        """Of objects by key and uid; one that is there no more says so."""
        ...

    async def pods(self, cluster: ClusterName, deployment: str) -> Sequence[DeployedPod]:
        """All that are there, however they came to be."""
        ...
