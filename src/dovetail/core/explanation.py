"""Explanation: why something fits or does not, in one shape that every finder fills.

Candidates of the engine, device classes, pods on nodes, guests of machines and NUMA hints are
explained by these values, and every door shows them as `document` writes them: REST, `-o json` of
the command line, and `dovetail agent explain`. Reasons are stable tokens that programs may rely on;
words are for people, and may change. OpenAPI's schema is made of the same classes (`rest/openapi`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]


class Verdict(StrEnum):
    FITS = "fits"
    NOT_NOW = "not_now"
    """It would fit somewhere if nothing were in use."""
    NEVER = "never"


class Counted(StrEnum):
    """What the numbers of an explanation count."""

    HOSTS = "hosts"
    """Trees of providers."""
    DEVICES = "devices"
    NODES = "nodes"
    """Of a Kubernetes cluster."""
    NUMA_NODE_SETS = "numa_node_sets"
    """Every choice of one or more NUMA nodes of a machine."""


class Reason(StrEnum):
    """What a constraint is about: the vocabulary of all explanations."""

    # Candidates: what a provider meets by itself, then what those chosen demand of each other.
    AMOUNT = "amount"
    """Of pods on nodes, too."""
    UNITS = "units"
    TRAIT = "trait"
    FORBIDDEN_TRAIT = "forbidden_trait"
    AGGREGATE = "aggregate"
    FORBIDDEN_AGGREGATE = "forbidden_aggregate"
    ATTRIBUTE = "attribute"
    """Of device classes, too: one expression of a selector."""
    CLASS = "class"
    IN_TREE = "in_tree"
    ROOT_TRAIT = "root_trait"
    ROOT_FORBIDDEN_TRAIT = "root_forbidden_trait"
    ROOT_AGGREGATE = "root_aggregate"
    ROOT_FORBIDDEN_AGGREGATE = "root_forbidden_aggregate"
    SHARED_CAPACITY = "shared_capacity"
    TOGETHER = "together"
    ISOLATION = "isolation"
    SAME_SUBTREE = "same_subtree"

    # Pods on nodes: a token for each filter, but for amounts.
    UNSCHEDULABLE = "unschedulable"
    TAINT = "taint"
    NODE_AFFINITY = "node_affinity"
    HOST_PORT = "host_port"
    DISK = "disk"
    """Written into the pod itself, and in use by others."""
    TOPOLOGY_SPREAD = "topology_spread"
    POD_AFFINITY = "pod_affinity"
    POD_ANTI_AFFINITY = "pod_anti_affinity"
    EXISTING_ANTI_AFFINITY = "existing_anti_affinity"
    NODE_FEATURE = "node_feature"

    # Guests of machines: what is between a pod and its unit, before nodes are asked.
    MACHINE = "machine"
    """One that is accepted, of the group that the pod names."""
    MACHINE_TYPE = "machine_type"
    SCHEDULING_GATE = "scheduling_gate"
    """Of others, behind which the pod could not use its unit."""
    UNIT_SHAPE = "unit_shape"
    UNIT_GROUP = "unit_group"
    BUYER = "buyer"
    CAP = "cap"
    STOCK = "stock"
    """A unit that is not sold."""
    WINDOW = "window"
    POOL_NODE = "pool_node"
    """Nodes that serve the type, and are ready."""

    # NUMA hints: what each resource offers, what the policy makes of it, and how that came out.
    NUMA_HINT = "numa_hint"
    NUMA_POLICY = "numa_policy"
    ALIGNED = "aligned"
    UNALIGNED = "unaligned"
    """Admitted all the same."""
    NOT_ASKED = "not_asked"
    IMPOSSIBLE = "impossible"
    """A resource cannot be on any set of nodes."""
    NO_COMMON_NODE = "no_common_node"
    NOT_PREFERRED = "not_preferred"
    NO_SINGLE_NODE = "no_single_node"
    NOT_NESTED = "not_nested"
    """The rules of the numeric policy are met by no combination."""

    # Pods at the node agent's gate.
    TOPOLOGY_AFFINITY = "topology_affinity"
    PLUGIN_DOWN = "plugin_down"
    PLUGIN_REFUSED = "plugin_refused"
    PLUGIN_TIMEOUT = "plugin_timeout"
    PLUGIN_GARBAGE = "plugin_garbage"
    CONFLICTING_SETTINGS = "conflicting_settings"
    UNKNOWN_PROPERTY = "unknown_property"
    BAD_REQUEST = "bad_request"
    POD_UNKNOWN = "pod_unknown"
    CHECKPOINT_FAILED = "checkpoint_failed"
    RESIZE_UNDER_WAY = "resize_under_way"
    """Of a container that may still run on what is to be given out."""
    RESIZE_OF_POD = "resize_of_pod"
    """Of what a pod was given as a whole, which stays as long as it runs."""
    AGENT_FAILED = "agent_failed"
    """By a fault of the agent's own."""
    DEVICE_UNKNOWN = "device_unknown"
    """One that was given by class, and that its plugin does not list."""
    DEVICE_UNHEALTHY = "device_unhealthy"
    DEVICE_TAKEN = "device_taken"
    """By another pod."""
    CANNOT_INJECT = "cannot_inject"
    """The runtime, or the way to it, leaves out something that the container needs."""
    ANNOTATION_NOT_TRUSTED = "annotation_not_trusted"
    """Whoever edits a pod could have written which devices it gets."""

    # Device classes.
    EMPTY_SELECTOR = "empty_selector"
    """It has no expressions, so it selects nothing."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One constraint of the funnel."""

    reason: Reason
    group: str | None
    """The part of the request that it belongs to: a group's suffix, a selector's number."""
    constraint: str
    """As the request says it."""
    left: int
    """How many meet this constraint and all before it; before it in its selector, of a class."""
    words: str
    met: int | UnsetType = UNSET
    """How many meet this constraint, whatever else they lack; told of device classes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one place has or lacks of one constraint."""

    reason: Reason
    group: str | None
    constraint: str
    met: bool
    ever: bool
    """Whether it would be met if nothing were in use."""
    provider: str | None
    """Where: the provider, device or node that comes nearest to meeting it, by name."""
    provider_uuid: Uuid | None
    words: str
    wanted: int | UnsetType = UNSET
    """Of an amount, like the three that follow: in the smallest unit of the resource."""
    free: int | UnsetType = UNSET
    capacity: int | UnsetType = UNSET
    short: int | UnsetType = UNSET
    seen: str | UnsetType | None = UNSET
    """Of an attribute: the value that is there; null if there is none."""


class PlaceFindings(msgspec.Struct, frozen=True, kw_only=True):
    """A host, node or device that was looked at closely."""

    name: str | None
    uuid: Uuid | None
    fits: bool
    findings: tuple[Finding, ...]
    alike: int | UnsetType = UNSET
    """How many places lack just the same, itself included."""


class ConstraintChange(
    msgspec.Struct, frozen=True, kw_only=True, rename={"old": "from", "new": "to"}
):
    """What becomes of one constraint."""

    reason: Reason
    group: str | None
    old: str = msgspec.field(name="from")
    new: str | None = msgspec.field(name="to")
    """Nothing: it is dropped."""


class Relaxation(msgspec.Struct, frozen=True, kw_only=True):
    """A smallest change of the request that would help."""

    changes: tuple[ConstraintChange, ...]
    hosts: int
    """That fit then."""
    query: str
    """The changed request, ready to be asked."""
    words: str
    vanishing: tuple[str, ...] | UnsetType = UNSET
    """What else is not demanded then: the rest of a group that asks for nothing any more."""
    smallest: bool | UnsetType = UNSET
    """Whether it is certain that no fewer constraints would do."""


class NamedPlace(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None
    uuid: Uuid


class MissingAmount(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a resource class that a provider would have to have besides."""

    provider: str | None
    provider_uuid: Uuid
    resource_class: str
    amount: int


class HostAddition(msgspec.Struct, frozen=True, kw_only=True):
    """What to add to a host, so that it fits."""

    host: NamedPlace
    added: tuple[MissingAmount, ...]
    smallest: bool
    """Whether it is certain that neither fewer entries nor less of one would do."""
    words: str


class ConsumerMove(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer that has to go, and a place that would take it."""

    consumer: Uuid
    resources: dict[str, int]
    """What it holds on the host."""
    source: NamedPlace = msgspec.field(name="from")
    to: NamedPlace | None
    """Nothing: no host has room for it."""
    allocations: dict[str, dict[str, int]]
    """What it would hold there instead: amounts by class, by UUID of the provider."""
    after: tuple[Uuid, ...]
    """Consumers of this plan that have to be gone before it can move."""


class MovePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Consumers whose leaving makes a host fit."""

    host: NamedPlace
    moves: tuple[ConsumerMove, ...]
    """In an order in which they can be carried out."""
    swap: bool
    """Whether some of them are in each other's way, so that one has to leave before it can move."""
    smallest: bool
    """Whether it is certain that fewer would not do."""
    words: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why something fits or does not."""

    verdict: Verdict
    summary: str
    of: Counted
    """What is counted in `total`, `fitting` and the funnel."""
    total: int
    hosts: int | UnsetType = UNSET
    """`total`, where hosts are counted."""
    fitting: int
    funnel: tuple[Stage, ...]
    """How many are left after each constraint, in order."""
    nearest: tuple[PlaceFindings, ...]
    """The places that lack least, or those that were asked about."""
    relaxations: tuple[Relaxation, ...]
    more_relaxations: int | UnsetType = UNSET
    """How many others touch as few constraints and are not shown."""
    emptied: tuple[NamedPlace, ...] | UnsetType = UNSET
    """Hosts that would fit if nothing were in use there: some of them."""
    additions: tuple[HostAddition, ...] | UnsetType = UNSET
    moves: tuple[MovePlan, ...] | UnsetType = UNSET
    """Whom to move: the smallest sets of consumers whose leaving would help, where asked for."""
    cut_short: bool | UnsetType = UNSET
    """Whether time was over before everything was looked at: there may be more, or smaller."""


def document(explanation: Explanation) -> dict[str, Any]:
    """The explanation as JSON has it, for every door."""
    found: dict[str, Any] = msgspec.to_builtins(explanation)
    return found
