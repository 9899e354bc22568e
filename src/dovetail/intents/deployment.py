"""State machine of deployments: what a group, and each object of it on a cluster, goes through.

`service/intents` asks it which actions a state allows; the worker goes by it from step to step. The
words are EMCO's where it has one.

    group     Created -> Approved -> Instantiating -> Instantiated -> Updating -> Instantiated
                                          |                              +-> UpdateFailed
                                          +-> InstantiateFailed
              any of those that have or may have objects -> Terminating -> Terminated

    object    Pending -> Applying -> Applied -> Deleting -> Deleted
              Applied -> Replacing -> Pending      (what cannot be changed is made anew)
              Skipped                              (its cluster was told by a snapshot alone)

An object is Applying before anything is sent, so that whoever comes after a crash knows that it may
be there. Of a Pending one nothing was ever sent: it can be dropped without asking anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from dovetail.intents.group import ManifestObject
from dovetail.intents.names import ClusterName


class DeploymentState(StrEnum):
    CREATED = "Created"
    APPROVED = "Approved"
    INSTANTIATING = "Instantiating"
    INSTANTIATED = "Instantiated"
    INSTANTIATE_FAILED = "InstantiateFailed"
    UPDATING = "Updating"
    UPDATE_FAILED = "UpdateFailed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"


class DeploymentAction(StrEnum):
    """What users ask for."""

    APPROVE = "approve"
    INSTANTIATE = "instantiate"
    UPDATE = "update"
    TERMINATE = "terminate"


class ObjectState(StrEnum):
    PENDING = "Pending"
    APPLYING = "Applying"
    APPLIED = "Applied"
    REPLACING = "Replacing"
    DELETING = "Deleting"
    DELETED = "Deleted"
    SKIPPED = "Skipped"


S = DeploymentState
ALLOWED: dict[DeploymentAction, dict[DeploymentState, DeploymentState]] = {
    DeploymentAction.APPROVE: dict.fromkeys(
        (S.CREATED, S.APPROVED, S.INSTANTIATE_FAILED, S.TERMINATED), S.APPROVED
    ),
    DeploymentAction.INSTANTIATE: dict.fromkeys(
        (S.APPROVED, S.INSTANTIATE_FAILED, S.TERMINATED), S.INSTANTIATING
    ),
    DeploymentAction.UPDATE: dict.fromkeys((S.INSTANTIATED, S.UPDATE_FAILED), S.UPDATING),
    DeploymentAction.TERMINATE: dict.fromkeys(
        (S.INSTANTIATING, S.INSTANTIATED, S.INSTANTIATE_FAILED, S.UPDATING, S.UPDATE_FAILED),
        S.TERMINATING,
    ),
}
"""By action, from which states to which."""
ACTIVE = frozenset((S.INSTANTIATING, S.INSTANTIATED, S.UPDATING, S.UPDATE_FAILED, S.TERMINATING))
"""The group's documents are in use: it cannot be deleted."""
APPLYING = frozenset((S.INSTANTIATING, S.UPDATING))
"""Objects are on their way, and there is a time by which they have to be there."""
ENDING = frozenset((S.TERMINATING, S.INSTANTIATE_FAILED))
"""All objects leave."""
LEAVING = frozenset((ObjectState.REPLACING, ObjectState.DELETING))
ON_THE_WAY = frozenset((ObjectState.PENDING, ObjectState.APPLYING, *LEAVING))
"""Something is to be done about these."""
SETTLED = frozenset((ObjectState.APPLIED, ObjectState.SKIPPED, ObjectState.DELETED))


def state_after(action: DeploymentAction, state: DeploymentState) -> DeploymentState | None:
    """None: it is not done in this state."""
    return ALLOWED[action].get(state)


def wrong_state_words(action: DeploymentAction, state: DeploymentState) -> str:
    allowed = ", ".join(ALLOWED[action])
    return f"the group is {state}; {action} is for one that is {allowed}"


def outcome(
    state: DeploymentState, objects: Collection[ObjectState], *, is_late: bool, is_refused: bool
) -> DeploymentState:
    """The next state of a deployment whose objects are in these; the same if nothing is over.

    `is_refused`: a cluster will never take one of them; `is_late`: the time for it is over.
    """
    if state in APPLYING:
        if all(each in SETTLED for each in objects):
            return S.INSTANTIATED
        if is_late or is_refused:
            return S.INSTANTIATE_FAILED if state is S.INSTANTIATING else S.UPDATE_FAILED
    if state is S.TERMINATING and all(each is ObjectState.DELETED for each in objects):
        return S.TERMINATED
    return state


def leaving(state: ObjectState) -> ObjectState:
    """Of an object that is no more wanted: what was never sent, is gone at once."""
    is_nowhere = state in (ObjectState.PENDING, ObjectState.SKIPPED, ObjectState.DELETED)
    return ObjectState.DELETED if is_nowhere else ObjectState.DELETING


class ObjectKey(msgspec.Struct, frozen=True, order=True):
    """Which object of a cluster it is."""

    api_version: str
    kind: str
    namespace: str
    """As the manifest says; kinds without namespaces may have one here that means nothing."""
    name: str

    @property
    def text(self) -> str:
        """One line, for the ledger and for people."""
        return f"{self.api_version}/{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def of(cls, manifest: ManifestObject, namespace: str) -> ObjectKey:
        meta = manifest.get("metadata") or {}
        return cls(
            api_version=str(manifest.get("apiVersion", "")),
            kind=str(manifest.get("kind", "")),
            namespace=meta.get("namespace") or namespace,
            name=str(meta.get("name", "")),
        )

    @classmethod
    def of_text(cls, text: str) -> ObjectKey:
        api_version, kind, namespace, name = text.rsplit("/", 3)
        return cls(api_version, kind, namespace, name)


class ObjectReadiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an object does what it is for, as its cluster tells."""

    is_ready: bool
    words: str = ""
    """What is missing."""


class OutboxObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a deployment on a cluster, and how far it is."""

    cluster: ClusterName
    app: str
    position: int
    key: ObjectKey
    manifest: ManifestObject
    """As it is to be applied; of one that leaves, as it was."""
    state: ObjectState = ObjectState.PENDING
    uid: str = ""
    """Of the object on the cluster; empty until it is known."""
    message: str = ""
    """Why the last step failed, or what it waits for."""
    readiness: ObjectReadiness | None = None
    observed_at: int = 0
    """When the readiness was told last to be another."""

    @property
    def place(self) -> tuple[ClusterName, str, int]:
        return (self.cluster, self.app, self.position)


class PlannedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one object of an app on a cluster, as they were planned and charged."""

    kind: str
    name: str
    count: int
    amounts: Mapping[str, int]
    """Of one pod, as podfit counts: by resource, in thousandths of a CPU, bytes, pieces."""
    nodes: Mapping[str, int] = {}
    """How many pods on which node."""
    devices: Mapping[str, tuple[str, ...]] = {}
    """By node, those that were chosen for its pods."""
    granted: tuple[str, ...] = ()
    """Optional requirements that are met."""
    pinned_because: str = ""
    """Why its pods are tied to the planned nodes; empty: they are not."""


class AppOnCluster(msgspec.Struct, frozen=True, kw_only=True):
    """An app on one of the clusters that were picked for it."""

    app: str
    cluster: ClusterName
    score: int = 0
    workloads: tuple[PlannedWorkload, ...] = ()


class StateChange(msgspec.Struct, frozen=True):
    """A line of the history of a group."""

    state: DeploymentState
    time: int
    revision: int


class DeploymentDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a deployment beside its objects and its claims."""

    namespace: str = "default"
    placements: tuple[AppOnCluster, ...] = ()
    history: tuple[StateChange, ...] = ()
    reason: str = ""
    """Of a failure."""
    deadline: int = 0
    """Unix seconds by which all objects have to be applied."""
    context: str = ""
    """What action controllers of the group work on; empty: it has none."""
    silent: Mapping[ClusterName, str] = {}
    """Clusters that did not answer the last time, and what was heard instead."""


class DeploymentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A deployment of a group."""

    id: str
    group: str
    """The path of the group's document."""
    revision: int
    """Another one with every instantiate and update of the group."""
    state: DeploymentState
    document: DeploymentDocument = DeploymentDocument()
    created_at: int = 0
    changed_at: int = 0

    def moved(self, state: DeploymentState, now: int, *, reason: str = "") -> DeploymentRecord:
        """In another state from now on."""
        history = (*self.document.history[-MOST_HISTORY:], StateChange(state, now, self.revision))
        document = replace(self.document, history=history, reason=reason)
        return replace(self, state=state, document=document, changed_at=now)


MOST_HISTORY = 99
"""Lines kept before the newest."""


FIRST = (
    *("Namespace", "PriorityClass", "StorageClass", "CustomResourceDefinition"),
    *("ResourceQuota", "LimitRange", "ServiceAccount", "Secret", "ConfigMap"),
    *("PersistentVolume", "PersistentVolumeClaim"),
    *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("DeviceClass", "ResourceClass", "ResourceClaimTemplate", "ResourceClaim", "Service"),
)
LAST = (
    *("DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet"),
    *("Job", "CronJob", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "APIService"),
    *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
)
RANKS = {
    **{kind: position for position, kind in enumerate(FIRST)},
    **{kind: len(FIRST) + 1 + position for position, kind in enumerate(LAST)},
}


def apply_rank(kind: str) -> int:
    """What others rest on comes first, and goes last; kinds nobody knows are in the middle."""
    return RANKS.get(kind, len(FIRST))
