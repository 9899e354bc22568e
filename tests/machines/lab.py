"""A lab in memory: one Machine, its nodes, stock and guests; its plans are carried out at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.rows import Rows
from dovetail.kube.runtime.apply import reference
from dovetail.machines.documents import Machine
from dovetail.machines.injection import inject
from dovetail.machines.marks import marked, marks_of, state_of
from dovetail.machines.names import (
    GUEST,
    INJECT_RESOURCE,
    RESERVATION,
    UNIT_GROUP,
    UNIT_GROUP_SIZE,
    role_labels,
    stock_name,
)
from dovetail.machines.objects import sleeper_template
from dovetail.machines.plan import MachinePlan, PutObject, plan_machine
from dovetail.machines.pods import type_of
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import MachineSnapshot, StockSettings, UnitRecord
from dovetail.podfit.objects import Namespace, Node, Pod, PodSpec, StatefulSet
from dovetail.podfit.table import NodeTable
from tests.machines.building import machine, namespace, node

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SETTINGS = StockSettings()
GROUP = "general-machine"


def small(
    *types: dict[str, Any], nodes: Mapping[str, str | list[str]], **more: Any
) -> dict[str, Any]:
    """The specification of a Machine; `nodes` has what each serves."""
    pool = [
        {
            "name": name,
            "machineType": [
                {"name": one} for one in ([served] if isinstance(served, str) else served)
            ],
        }
        for name, served in nodes.items()
    ]
    return {"nodePool": pool, "machineTypes": list(types), **more}


def kind(name: str, cpu: int = 4, available: int = 2, **more: Any) -> dict[str, Any]:
    """A type of so many CPUs, with 4Gi for each."""
    spec = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", **more.pop("spec", {})}
    return {"name": name, "spec": spec, "available": available, **more}


class Lab:
    def __init__(
        self, spec: dict[str, Any], *nodes: Node, namespaces: tuple[Namespace, ...] = ()
    ) -> None:
        self.machine: Machine = machine(spec, uid="m", generation=1)
        self.now = NOW
        self.table = NodeTable(Rows())
        self.nodes: dict[str, Node] = {}
        self.guests: dict[str, Pod] = {}
        self.sleepers: dict[str, Pod] = {}
        self.units: dict[str, UnitRecord] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.namespaces: dict[str, Namespace] = {}
        for each in namespaces or (opted_in("team"), opted_in("other")):
            self.namespaces[each.metadata.name] = each
            self.table.set_namespace(each)
        there = nodes or [node(each.name, cpu=16, gpus=0) for each in self.machine.spec.node_pool]
        for one in there:
            self.set_node(one)
        self.stock()

    def set_node(self, found: Node, *, mark: bool = True) -> None:
        """With the marks of its pool, as far as it is in one."""
        spec = self.machine.spec
        entry = next((one for one in spec.node_pool if one.name == found.metadata.name), None)
        if entry is not None and mark:
            state = state_of(found, entry)
            found = marked(found, marks_of(spec, self.machine.group, entry, state))
        self.nodes[found.metadata.name] = found
        self.table.set_node(found)

    def set_spec(self, spec: dict[str, Any]) -> None:
        self.machine = machine(spec, uid="m", generation=self.machine.metadata.generation + 1)
        for each in list(self.nodes.values()):
            self.set_node(each)

    def snapshot(self) -> MachineSnapshot:
        pool = {each.name for each in self.machine.spec.node_pool}
        return MachineSnapshot(
            machine=self.machine,
            spec=self.machine.spec,
            accepted_generation=self.machine.metadata.generation,
            settings=SETTINGS,
            now=self.now,
            table=self.table,
            nodes={name: each for name, each in self.nodes.items() if name in pool},
            guests=self.guests,
            sleepers=self.sleepers,
            units=self.units,
            gone=frozenset(),
            namespaces=self.namespaces,
            gpus_of_others={},
            stateful_sets=self.stateful_sets,
        )

    def plan(self) -> MachinePlan:
        return plan_machine(self.snapshot())

    def stock(self) -> None:
        """Sleepers, as many as there should be, each in its place."""
        group = self.machine.group
        for put in self.plan().puts:
            if put.kind is StatefulSet:
                self.stateful_sets[put.name] = msgspec.convert(self.written(put), StatefulSet)
        for shape in shapes_of(self.machine.spec).values():
            name = stock_name(shape.name, group)
            replicas = self.stateful_sets[name].spec["replicas"]
            for ordinal in range(replicas):
                uid = f"{name}-{ordinal}"
                if uid not in self.sleepers:
                    meta = {
                        "name": uid,
                        "namespace": SETTINGS.namespace,
                        "uid": uid,
                        "labels": role_labels(group, shape.name, RESERVATION),
                    }
                    template = sleeper_template(shape, group, SETTINGS)
                    self.sleepers[uid] = msgspec.convert(
                        {"metadata": meta, "spec": template["spec"]}, Pod
                    )
        for place in self.plan().stock.places:
            self._bind(self.sleepers, place.pod, place.type, place.node, is_stock=True)

    def written(self, put: PutObject) -> dict[str, Any]:
        """As it is in the API from then on."""
        owners = [reference(self.machine)]
        meta = {**put.body["metadata"], "name": put.name, "ownerReferences": owners}
        return {**put.body, "metadata": meta}

    def ask(
        self,
        name: str,
        of: str,
        *,
        namespace: str = "team",
        unit_group: tuple[str, int] | None = None,
        minutes_ago: int = 60,
        meta: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Pod:
        """A guest is created, and waits; further fields of its `spec` as the API has them."""
        labels = role_labels(self.machine.group, of, GUEST)
        annotations: dict[str, str] = {}
        if unit_group is not None:
            labels[UNIT_GROUP], annotations[UNIT_GROUP_SIZE] = unit_group[0], str(unit_group[1])
        created = (self.now - timedelta(minutes=minutes_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
        raw: dict[str, Any] = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": name,
                "labels": labels,
                "annotations": annotations,
                "creationTimestamp": created,
                **(meta or {}),
            },
            "spec": {"containers": [{"name": "main"}], **spec},
        }
        shape = shapes_of(self.machine.spec).get(of)
        if shape is not None:
            raw = inject(raw, shape, self.machine.group, "ada")
        self.guests[name] = msgspec.convert(raw, Pod)
        return self.guests[name]

    def sell(self) -> None:
        """All that the plan sells, and what is left is held again."""
        for sale in self.plan().sales:
            for victim in sale.victims:
                del self.sleepers[victim.uid]
                self.units.pop(victim.uid, None)
                self.table.remove_pod(victim.uid)
            for order in sale.orders:
                self._bind(self.guests, order.pod, order.type, order.node, is_stock=False)

    def sold(self, name: str, of: str, **more: Any) -> Pod:
        """A guest that came and got its unit."""
        self.ask(name, of, **more)
        self.sell()
        assert self.guests[name].spec.node_name, self.plan().waiting
        return self.guests[name]

    def end(self, name: str) -> None:
        """A guest goes."""
        del self.guests[name]
        self.units.pop(name, None)
        self.table.remove_pod(name)

    def move(self, sleeper: str, node_name: str) -> None:
        """A sleeper is there and nowhere else."""
        pod = self.sleepers[sleeper]
        self._bind(self.sleepers, pod, type_of(pod), node_name, is_stock=True)

    def occupy(self, node_name: str, **requests: str) -> None:
        """Somebody else's pod runs there."""
        content = {
            "metadata": {"name": f"other-{node_name}", "uid": f"other-{node_name}"},
            "spec": {
                "nodeName": node_name,
                "containers": [{"name": "main", "resources": {"requests": requests}}],
            },
        }
        self.table.add_pod(msgspec.convert(content, Pod))

    def _bind(self, pods: dict[str, Pod], pod: Pod, of: str, on: str, *, is_stock: bool) -> None:
        spec: PodSpec = replace(pod.spec, node_name=on, scheduling_gates=())
        pods[pod.metadata.uid] = bound = replace(pod, spec=spec)
        self.units[pod.metadata.uid] = UnitRecord(of, on, is_stock, int(self.now.timestamp()))
        self.table.add_pod(bound)


def opted_in(name: str, **labels: str) -> Namespace:
    return namespace(name, {INJECT_RESOURCE: "enabled", **labels})
