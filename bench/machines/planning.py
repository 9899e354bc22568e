"""Plan of a large Machine: from cold, and after one event, beside how the cost grows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from dovetail.core.rows import Rows
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.marks import marks_of
from dovetail.machines.names import (
    GPU_TYPE,
    GUEST,
    HOSTNAME,
    INJECT_RESOURCE,
    MACHINE_GROUP,
    RESERVATION,
    UNIT_GATE,
    pool_name,
    role_labels,
    stock_name,
)
from dovetail.machines.objects import sleeper_template
from dovetail.machines.placement_rules import expressions_of, tolerations_of
from dovetail.machines.plan import MachinePlan, plan_machine
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.machines.snapshot import MachineSnapshot, StockSettings, UnitRecord
from dovetail.podfit.objects import (
    KubeObject,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    Service,
    StatefulSet,
)
from dovetail.podfit.table import NodeTable

from ..agent.times import Times

GROUP = "fleet"
SETTINGS = StockSettings()
NAMESPACE = Namespace(metadata=ObjectMeta(name="lab", labels={INJECT_RESOURCE: "enabled"}))
PRODUCT = "NVIDIA-H100-80GB-HBM3"
GPU = {"type": GPU_TYPE, "num": 1, "product": PRODUCT}
"""Every other type has one."""
ALLOCATABLE = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU_TYPE: "16"}


def machine_of(nodes: int, types: int, units: int) -> Machine:
    """Each type on its share of the nodes; a node holds `units / nodes` units and one more."""
    spec = {
        "nodePool": [
            {"name": f"node-{n}", "machineType": [{"name": f"type-{n % types}"}]}
            for n in range(nodes)
        ],
        "machineTypes": [
            {
                "name": f"type-{n}",
                "spec": {"cpu": "4", "memory": "16Gi", **({"gpu": GPU} if n % 2 else {})},
                "available": units // types,
            }
            for n in range(types)
        ],
    }
    meta = {"name": GROUP, "uid": "m", "generation": 1, "labels": {MACHINE_GROUP: GROUP}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Machine)


class PlanWorld:
    """A cluster whose plans are carried out by assigning to a few dictionaries."""

    def __init__(self, nodes: int, types: int, units: int) -> None:
        self.machine = machine_of(nodes, types, units)
        self.shapes = shapes_of(self.machine.spec)
        self.table = NodeTable(Rows())
        self.nodes = {}
        for entry in self.machine.spec.node_pool:
            labels = marks_of(self.machine.spec, GROUP, entry, "ready").labels
            labels |= {HOSTNAME: entry.name, f"{GPU_TYPE}.product": PRODUCT}
            meta = {"name": entry.name, "labels": labels}
            node = msgspec.convert({"metadata": meta, "status": {"allocatable": ALLOCATABLE}}, Node)
            self.nodes[entry.name] = node
            self.table.set_node(node)
        self.guests: dict[str, Pod] = {}
        self.sleepers: dict[str, Pod] = {}
        self.units: dict[str, UnitRecord] = {}
        self.owned: dict[type[KubeObject], dict[str, Any]] = {
            kind: {} for kind in (MachineNodePool, StatefulSet, Service, MachineShape)
        }

    def snapshot(self) -> MachineSnapshot:
        return MachineSnapshot(
            machine=self.machine,
            spec=self.machine.spec,
            accepted_generation=1,
            settings=SETTINGS,
            now=datetime(2026, 1, 1, tzinfo=UTC),
            table=self.table,
            nodes=self.nodes,
            guests=self.guests,
            sleepers=self.sleepers,
            units=self.units,
            gone=frozenset(),
            namespaces={"lab": NAMESPACE},
            gpus_of_others={},
            pool=self.owned[MachineNodePool].get(pool_name(GROUP)),
            stateful_sets=self.owned[StatefulSet],
            services=self.owned[Service],
            shapes=self.owned[MachineShape],
        )

    def sleep(self) -> None:
        """Sleepers of every type, behind their gates."""
        for shape in self.shapes.values():
            available = next(
                each.available
                for each in self.machine.spec.machine_types
                if each.name == shape.name
            )
            template = sleeper_template(shape, GROUP, SETTINGS)
            for n in range(available):
                name = f"{stock_name(shape.name, GROUP)}-{n}"
                meta = {
                    "name": name,
                    "namespace": SETTINGS.namespace,
                    "uid": name,
                    # As its StatefulSet has it: no two sleepers have the same labels.
                    "labels": {
                        **role_labels(GROUP, shape.name, RESERVATION),
                        "apps.kubernetes.io/pod-index": str(n),
                        "controller-revision-hash": "first",
                        "statefulset.kubernetes.io/pod-name": name,
                    },
                }
                self.sleepers[name] = msgspec.convert(
                    {"metadata": meta, "spec": template["spec"]}, Pod
                )

    def add_guest(self, name: str, shape: UnitShape) -> None:
        term = {"matchExpressions": expressions_of(shape, GROUP)}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod = {
            "metadata": {
                "name": name,
                "namespace": "lab",
                "uid": name,
                "labels": {**role_labels(GROUP, shape.name, GUEST), "app": name},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "schedulingGates": [{"name": UNIT_GATE}],
                "tolerations": tolerations_of(shape, GROUP),
                "affinity": {"nodeAffinity": required},
                "containers": [{"name": "main", "resources": {"requests": shape.requests}}],
            },
        }
        self.guests[name] = msgspec.convert(pod, Pod)

    def drop_guest(self, name: str) -> None:
        del self.guests[name], self.units[name]
        self.table.remove_pod(name)

    def carry_out(self, plan: MachinePlan) -> None:
        for put in plan.puts:
            body = {**put.body, "metadata": {**put.body["metadata"], "name": put.name}}
            self.owned[put.kind][put.name] = msgspec.convert(body, put.kind)
        for sale in plan.sales:
            for victim in sale.victims:
                del self.sleepers[victim.uid]
                self.units.pop(victim.uid, None)
                self.table.remove_pod(victim.uid)
            for order in sale.orders:
                self._bind(self.guests, order.pod, order.type, order.node, is_stock=False)
        for place in plan.stock.places:
            self._bind(self.sleepers, place.pod, place.type, place.node, is_stock=True)

    def _bind(
        self, pods: dict[str, Pod], pod: Pod, name: str, node: str, *, is_stock: bool
    ) -> None:
        spec = msgspec.structs.replace(
            pod.spec, node_name=node, node_selector={HOSTNAME: node}, scheduling_gates=()
        )
        bound = msgspec.structs.replace(pod, spec=spec)
        uid = pod.metadata.uid
        pods[uid] = bound
        self.units[uid] = UnitRecord(name, node, is_stock, 1_700_000_000)
        self.table.add_pod(bound)


class Planned(msgspec.Struct):
    """Milliseconds of processor time that plans of one size took: a plan waits for nothing."""

    nodes: int
    types: int
    guests: int
    stocked: float
    """From nothing: all stock is placed."""
    sold: float
    """All guests at once."""
    idle: Times
    """All are sold, and nothing is to be done."""
    event: Times
    """A guest more that is sold, or one less."""
    line: Times
    """As many as there are wait in vain."""


def planned(world: PlanWorld) -> MachinePlan:
    return plan_machine(world.snapshot())


def measure(nodes: int, types: int, guests: int, rounds: int = 20) -> Planned:
    """Of a Machine with a little more stock than there are guests."""
    world = PlanWorld(nodes, types, guests + types * rounds)
    world.sleep()
    stocked, plan = timed(world)
    world.carry_out(plan)
    shapes = list(world.shapes.values())
    for n in range(guests):
        world.add_guest(f"guest-{n}", shapes[n % types])
    sold, plan = timed(world)
    assert sum(len(sale.orders) for sale in plan.sales) == guests
    world.carry_out(plan)
    found = Planned(
        nodes, types, guests, stocked, sold, *(Times(of_processor=True) for _ in range(3))
    )
    for _ in range(rounds):
        with found.idle.one():
            planned(world)
    for n in range(rounds):
        world.add_guest(f"late-{n}", shapes[n % types])
        with found.event.one():
            plan = planned(world)
        world.carry_out(plan)
        world.drop_guest(f"guest-{n}")
        with found.event.one():
            plan = planned(world)
        world.carry_out(plan)
    for n in range(2 * guests):
        world.add_guest(f"queued-{n}", shapes[n % types])
    world.carry_out(planned(world))
    for _ in range(rounds):
        with found.line.one():
            plan = planned(world)
    assert len(plan.waiting) >= guests
    return found


def timed(world: PlanWorld) -> tuple[float, MachinePlan]:
    times = Times(of_processor=True)
    with times.one():
        plan = planned(world)
    return times.milliseconds[0], plan
