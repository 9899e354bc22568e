"""Kubernetes' objects as far as Dovetail reads them, decoded from the API by whoever has a client.

Decoding skips every other field, which makes a list of 20,000 pods cheap to read and to keep. What
is written goes out as plain dictionaries, so a field that is unknown here is never sent back empty.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class ApiStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Anything that is read from the API."""


class ApiResource(msgspec.Struct, frozen=True):
    """A kind of object, and where the API server has it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class KubeObject(ApiStruct, frozen=True, kw_only=True):
    """Any object; `API` tells where its kind lives."""

    API: ClassVar[ApiResource]

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone where there are no namespaces."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Condition(ApiStruct, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}


class ContainerPort(ApiStruct, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(ApiStruct, frozen=True, kw_only=True):
    action: str = ""


class Container(ApiStruct, frozen=True, kw_only=True):
    name: str
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    """Of init containers: `Always` makes a sidecar."""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class Toleration(ApiStruct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """A requirement on labels (or fields), as affinities and label selectors write it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiStruct, frozen=True, kw_only=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(ApiStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelector(ApiStruct, frozen=True, kw_only=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[SelectorRequirement, ...] = ()


class PodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiStruct, frozen=True, kw_only=True):
    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(ApiStruct, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True, kw_only=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class PodSchedulingGate(ApiStruct, frozen=True, kw_only=True):
    name: str


class PersistentVolumeClaimVolumeSource(ApiStruct, frozen=True, kw_only=True):
    claim_name: str


class Volume(ApiStruct, frozen=True, kw_only=True):
    """Of disks that are written into the pod itself, `terms.inline_disks_of` reads what matters."""

    name: str
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    service_account_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    host_network: bool = False
    host_users: bool = True
    overhead: dict[str, str | int | float] = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[dict[str, Any], ...] = ()


class ContainerStateWaiting(ApiStruct, frozen=True, kw_only=True):
    reason: str = ""


class ContainerState(ApiStruct, frozen=True, kw_only=True):
    running: dict[str, Any] | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    name: str
    state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    """What it has now, which may still be more than what it requests now."""
    allocated_resources: dict[str, str | int | float] = {}


class RequestMapping(ApiStruct, frozen=True, kw_only=True):
    """Which request of a claim is for which resource of a container."""

    container_name: str
    resource_name: str
    request_name: str


class ExtendedClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The one ResourceClaim that a pod's extended resources come by."""

    resource_claim_name: str
    request_mappings: tuple[RequestMapping, ...] = ()


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    nominated_node_name: str = ""
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(KubeObject, frozen=True, kw_only=True, dict=True, gc=True):
    """Its pod request is kept on it once somebody asked for that (`pod_request_of`)."""

    API = ApiResource("", "v1", "pods", "Pod")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(ApiStruct, frozen=True, kw_only=True):
    key: str
    effect: str
    value: str = ""


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "nodes", "Node", namespaced=False)

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "namespaces", "Namespace", namespaced=False)


class LeaseSpec(ApiStruct, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("coordination.k8s.io", "v1", "leases", "Lease")

    spec: LeaseSpec = LeaseSpec()


class Event(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("events.k8s.io", "v1", "events", "Event")

    reason: str = ""
    note: str = ""
    type: str = ""
    regarding: dict[str, Any] = {}
    series: dict[str, Any] | None = None


class StatefulSetStatus(ApiStruct, frozen=True, kw_only=True):
    observed_generation: int = 0
    update_revision: str = ""


class StatefulSet(KubeObject, frozen=True, kw_only=True):
    """Its specification is as it was written: it is compared with what it should be."""

    API = ApiResource("apps", "v1", "statefulsets", "StatefulSet")

    spec: dict[str, Any] = {}
    status: StatefulSetStatus = StatefulSetStatus()


class Service(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "services", "Service")

    spec: dict[str, Any] = {}


class ConfigMap(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "configmaps", "ConfigMap")

    data: dict[str, str] = {}


class ResourcePool(ApiStruct, frozen=True, kw_only=True):
    name: str
    generation: int
    resource_slice_count: int


class ResourceSliceSpec(ApiStruct, frozen=True, kw_only=True):
    driver: str
    pool: ResourcePool
    node_name: str = ""
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[dict[str, Any], ...] = ()


class ResourceSlice(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)

    spec: ResourceSliceSpec


class ResourceClassStatus(ApiStruct, frozen=True, kw_only=True):
    allocatable: int = 0
    requested: int = 0
    available: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ResourceClass(KubeObject, frozen=True, kw_only=True):
    """As it is written; `devices/classes/documents.py` reads the device class that it means."""

    API = ApiResource(
        "dovetail.dev", "v1alpha1", "resourceclasses", "ResourceClass", namespaced=False
    )

    spec: dict[str, Any] = {}
    status: ResourceClassStatus = ResourceClassStatus()
