"""Packer: whether workloads fit on the nodes of one cluster, all at once, and where they go.

One for each shape of clusters; the HPA controller asks it again and again, for sets of apps and of
options. Nodes that are not ready are no places, but what runs there still counts for affinities.
The pods of a DaemonSet are a kind of their own for each node that it matches. A gang (`within_one`)
takes nodes with one value of a label: values are tried one after another, gang by gang, and a value
is given up as soon as the rest does not fit with every later gang on nodes with any value. Each
gang has finitely many values, and packing is bounded by its steps, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.core.columns import Mask
from dovetail.core.rows import Rows
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.intents.fleet import ClusterInventory, ClusterNode
from dovetail.intents.hpa.cluster_shape import stock_of
from dovetail.intents.hpa.demand import WorkloadDemand
from dovetail.intents.hpa.device_resources import DeviceDemands, DeviceResources
from dovetail.intents.hpa.quick_packing import Quick, QuickPacking
from dovetail.podfit.filters import node_affinity, taints, unschedulable
from dovetail.podfit.objects import Node, NodeSelectorTerm, Pod, SelectorRequirement
from dovetail.podfit.packing.answers import Assignment, PodsToPack
from dovetail.podfit.packing.deciding import assignment_of
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.readiness import is_ready
from dovetail.podfit.table import NodeTable

Gang = tuple[int, str]
"""The place of a workload among those asked about, and the key of a label."""
Change = Callable[[PodRequest], PodRequest]
NodeCounts = Mapping[str, int]
"""Pods by node."""
ChosenDevices = dict[tuple[int, str], list[tuple[DeviceHolding, ...]]]
"""By workload and node, for each of its pods there."""
STEPS_TO_BEGIN = 200
"""What it takes to put a question to the solver, however few steps the answer then takes."""
MOST_COPIES = 15
"""Of a set of apps that is placed, for which room is left where it can be."""
ACCESS = "dovetail.dev/device-access"
"""Of nodes in a packer, where devices of some are handed out by claim and those of others are not:
pods of a workload ask for theirs in one way, so they stay on nodes of one way, as a gang does."""
BY_CLAIM, BY_CLASS = "claim", "class"
ANY_NODE = NodeSelectorTerm()
"""With a name added, a term that the node of that name meets."""


class Fit(msgspec.Struct, frozen=True):
    """Where pods go."""

    nodes: tuple[NodeCounts, ...]
    """By workload."""
    fabrics: Mapping[Gang, str]
    """The value of the label that each gang has."""

    def of(self, workloads: Sequence[int]) -> Fit:
        """Of some of the workloads, in this order."""
        return Fit(
            tuple(self.nodes[at] for at in workloads),
            {
                (number, key): value
                for number, at in enumerate(workloads)
                for (on, key), value in self.fabrics.items()
                if on == at
            },
        )


def unchanged(request: PodRequest) -> PodRequest:
    return request


class PackingQuestion(msgspec.Struct, frozen=True):
    """Workloads that are asked about together."""

    demands: Sequence[WorkloadDemand]
    gangs: Sequence[Gang]
    change: Change
    beside: Sequence[PodsToPack]
    budget: StepBudget


class Packer:
    def __init__(
        self,
        cluster: ClusterInventory,
        nodes: Sequence[ClusterNode],
        devices: DeviceDemands,
        steps: int,
        *,
        is_idle: bool = False,
    ) -> None:
        """`is_idle`: as if nothing were on the nodes. Raises BadQuantity."""
        self.steps = steps
        if is_idle:
            nodes = [replace(each, held_devices=frozenset()) for each in nodes]
        self.devices = DeviceResources(devices, cluster.classes, nodes)
        self._is_mixed = len({each.devices_by_claim for each in nodes if each.devices}) > 1
        self.table = NodeTable(Rows())
        self.ready = [each.node.metadata.name for each in nodes if is_ready(each.node)]
        for at, each in enumerate(nodes):
            name, held = each.node.metadata.name, self.devices.held[at]
            free = self.devices.capacities[at].items()
            more = {resource: amount + held.get(resource, 0) for resource, amount in free}
            node = _with_resources(each.node, more)
            self.table.set_node(_with_access(node, each) if self._is_mixed else node)
            if not is_idle:
                for number, pod in enumerate(each.pods):
                    self.table.add_pod(_identified(pod, f"{name}/{number}"), name)
                self.table.set_aside(name, {**stock_of(each).aside, **held})
        self._quick = QuickPacking(self.table, self.ready)
        self._requests: dict[int, tuple[WorkloadDemand, PodRequest]] = {}

    def fit(
        self,
        demands: Sequence[WorkloadDemand],
        change: Change = unchanged,
        beside: Sequence[PodsToPack] = (),
        budget: StepBudget | None = None,
    ) -> Fit | None:
        """None: they do not fit. `change`: of what each pod asks for. `beside`: pods that have to
        fit as well, wherever. Raises BudgetSpent."""
        gangs = [
            (at, key)
            for at, each in enumerate(demands)
            if each.workload.count or each.workload.per_node
            for key in (*each.within_one, *([ACCESS] if each.devices and self._is_mixed else []))
        ]
        steps = budget or StepBudget(self.steps)
        asked = PackingQuestion(demands, gangs, change, beside, steps)
        return self._fit_with_fabrics(asked, {})

    def _fit_with_fabrics(self, asked: PackingQuestion, chosen: dict[Gang, str]) -> Fit | None:
        """`chosen`: values of the gangs that have one; the others may be on nodes with any."""
        nodes = self._assignment(asked, chosen)
        if nodes is None:
            return None
        if len(chosen) == len(asked.gangs):
            return Fit(nodes, chosen)
        gang = asked.gangs[len(chosen)]
        for value in self._values(gang, nodes[gang[0]]):
            found = self._fit_with_fabrics(asked, {**chosen, gang: value})
            if found is not None:
                return found
        return None

    def _values(self, gang: Gang, there: NodeCounts) -> list[str]:
        """Those with most of its pods first, where they went with any value allowed."""
        labels = self.table.nodes.labels
        pods: dict[str, int] = {}
        for name in self.ready:
            value = labels.of(self.table.nodes.rows.row(name)).get(gang[1])
            if value is not None:
                pods[value] = pods.get(value, 0) + there.get(name, 0)
        return sorted(pods, key=lambda value: (-pods[value], value))

    def _assignment(
        self, question: PackingQuestion, chosen: Mapping[Gang, str]
    ) -> tuple[NodeCounts, ...] | None:
        asked: list[PodsToPack] = []
        of: list[int] = []
        for at, demand in enumerate(question.demands):
            values = {key: chosen.get((at, key)) for on, key in question.gangs if on == at}
            if demand.workload.per_node and None in values.values():
                # Of which nodes it will have to be on each, is not known yet.
                continue
            fabric = [_fabric_term(key, value) for key, value in values.items()]
            kinds = self.kinds(demand, fabric, question.change)
            if kinds is None:
                return None
            asked += kinds
            of += [at] * len(kinds)
        asked += question.beside
        assignment: Assignment | Quick | None = self._quick.answer(asked)
        if assignment is Quick.UNKNOWN:
            question.budget.spend(STEPS_TO_BEGIN)
            assignment = assignment_of(self.table.nodes, asked, self.ready, question.budget)
        if assignment is None or assignment is Quick.TOO_MUCH:
            return None
        found: list[dict[str, int]] = [{} for _ in question.demands]
        for at, on in zip(of, assignment, strict=False):
            for name, count in on.items():
                found[at][name] = found[at].get(name, 0) + count
        if not self.devices.is_exact and self.chosen_devices(question.demands, found) is None:
            raise BudgetSpent
        return tuple(found)

    def roomiest(
        self, demands: Sequence[WorkloadDemand], copies: Sequence[WorkloadDemand], found: Fit
    ) -> Fit:
        """Where workloads that fit as in `found` go, such that most copies of others fit beside
        them, up to `MOST_COPIES`: a pod that could be on any node does not take the room of those
        that cannot. Bisection: with fewer copies they fit as well.
        """
        kinds = [each for demand in copies for each in self.kinds(demand) or ()]
        low, high = 0, MOST_COPIES if any(each.count for each in kinds) else 0
        while low < high:
            middle = (low + high + 1) // 2
            beside = [PodsToPack(each.request, each.count * middle) for each in kinds]
            try:
                tried = self.fit(demands, beside=beside)
            except BudgetSpent:
                tried = None
            if tried is None:
                high = middle - 1
            else:
                low, found = middle, tried
        return found

    def kinds(
        self,
        demand: WorkloadDemand,
        fabric: Sequence[SelectorRequirement] = (),
        change: Change = unchanged,
    ) -> list[PodsToPack] | None:
        """Of one workload; None: it needs a node, and there is none that it could go to."""
        request = change(_with_labels(self.request(demand), fabric))
        if not demand.workload.per_node:
            return [PodsToPack(request, demand.workload.count)]
        # By what is written: a label that is an option narrows nothing, it is there or it is not.
        names = self.matching(_with_labels(demand.written, fabric))
        if not names and demand.needs_node:
            return None
        return [PodsToPack(pinned(request, (name,)), 1) for name in names]

    def request(self, demand: WorkloadDemand) -> PodRequest:
        """Of one of its pods, with the devices that it asks for as amounts."""
        if not demand.devices:
            return demand.request
        kept = self._requests.get(id(demand))
        if kept is None:
            more = self.devices.amounts(demand.devices)
            amounts = (*demand.request.amounts, *more)
            # The demand is kept as well, so that no other gets its id.
            kept = (demand, replace(demand.request, amounts=amounts))
            self._requests[id(demand)] = kept
        return kept[1]

    def written_request(self, demand: WorkloadDemand) -> PodRequest:
        """The same as a scheduler sees it, who has options that are labels as preferences."""
        if demand.written is demand.request:
            return self.request(demand)
        return replace(self.request(demand), node_labels=demand.written.node_labels)

    def matching(self, request: PodRequest) -> list[str]:
        """Nodes whose labels and taints suit the pod, whether or not it has room there: those on
        which a DaemonSet makes one."""
        nodes = self.table.nodes
        mask: Mask = nodes.present.copy()
        for step in (unschedulable, taints, node_affinity):
            passing = step.passing(nodes, request)
            if passing is not None:
                mask &= passing
        return [name for name in self.ready if mask[nodes.rows.row(name)]]

    def chosen_devices(
        self, demands: Sequence[WorkloadDemand], nodes: Sequence[NodeCounts]
    ) -> ChosenDevices | None:
        """Devices for all pods, each where it is; None: none were found on some node."""
        found: ChosenDevices = {}
        for name in self.ready:
            pods = [
                (at, demand.devices)
                for at, demand in enumerate(demands)
                if demand.devices
                for _ in range(nodes[at].get(name, 0))
            ]
            chosen = self.devices.choose(name, [devices for _, devices in pods]) if pods else ()
            if chosen is None:
                return None
            for (at, _), holdings in zip(pods, chosen, strict=True):
                found.setdefault((at, name), []).append(holdings)
        return found


def pinned(request: PodRequest, nodes: Sequence[str]) -> PodRequest:
    """The same, for these nodes alone."""
    terms = [
        NodeSelectorTerm(
            match_expressions=term.match_expressions,
            match_fields=(
                *term.match_fields,
                SelectorRequirement(key=node_affinity.NAME_FIELD, operator="In", values=(name,)),
            ),
        )
        for term in (request.node_terms if request.node_terms is not None else (ANY_NODE,))
        for name in nodes
    ]
    return replace(request, node_terms=tuple(terms))


def _with_labels(request: PodRequest, labels: Sequence[SelectorRequirement]) -> PodRequest:
    return replace(request, node_labels=(*request.node_labels, *labels)) if labels else request


def _fabric_term(key: str, value: str | None) -> SelectorRequirement:
    if value is None:
        return SelectorRequirement(key=key, operator="Exists")
    return SelectorRequirement(key=key, operator="In", values=(value,))


def _identified(pod: Pod, uid: str) -> Pod:
    """The table knows pods by uid, which a snapshot that people write may leave out."""
    if pod.metadata.uid:
        return pod
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


def _with_access(node: Node, of: ClusterNode) -> Node:
    if not of.devices:
        return node
    access = BY_CLAIM if of.devices_by_claim else BY_CLASS
    labels = {**node.metadata.labels, ACCESS: access}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _with_resources(node: Node, more: Mapping[str, int]) -> Node:
    if not more:
        return node
    has = {**node.status.allocatable, **{name: str(amount) for name, amount in more.items()}}
    return replace(node, status=replace(node.status, allocatable=has))
