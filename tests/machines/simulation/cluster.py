"""A cluster in memory: what users, nodes, StatefulSets, the scheduler and kubelets do in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from dovetail.core.rows import Rows
from dovetail.machines.documents import Machine
from dovetail.machines.injection import inject
from dovetail.machines.marks import change_of, marks_of, state_of, tainted
from dovetail.machines.names import GUEST, INJECT_RESOURCE, MACHINE_GROUP, role_labels
from dovetail.machines.pods import is_leaving, is_over, is_sleeper
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import StockSettings
from dovetail.machines.survey import REVISION
from dovetail.podfit.objects import Namespace, Node, Pod, StatefulSet, Taint
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.table import NodeTable
from tests.machines.building import namespace
from tests.machines.simulation.ledger import SimulatedLedger

SETTINGS = StockSettings()
BEGIN = datetime(2026, 11, 16, 9, tzinfo=UTC)
NOT_READY_TAINT = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
LABS = {name: namespace(name, {INJECT_RESOURCE: "enabled"}) for name in ("red", "blue")}


def time_text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def is_stock(pod: Pod) -> bool:
    return is_sleeper(pod, SETTINGS.namespace)


def owner_name(sleeper: Pod) -> str:
    return sleeper.metadata.name.rpartition("-")[0]


class SimulatedCluster:
    def __init__(
        self,
        machine: Machine,
        nodes: Iterable[Node],
        chance: random.Random | None = None,
        namespaces: Mapping[str, Namespace] = LABS,
    ) -> None:
        self.chance = chance or random.Random(0)
        meta = replace(machine.metadata, generation=1, uid="machine")
        self.machine = replace(machine, metadata=meta)
        self.nodes = {each.metadata.name: each for each in nodes}
        self.namespaces = dict(namespaces)
        self.pods: dict[str, Pod] = {}
        """All of them, by uid."""
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.gpus_of_others: dict[str, int] = {}
        self.ledger = SimulatedLedger(self.nodes, self.gpus_of_others)
        self.ledger.set_stock(machine.spec)
        self.now = BEGIN
        self._count = 0

    @property
    def group(self) -> str:
        return self.machine.group

    def number(self) -> int:
        """Another one whenever it is asked for."""
        self._count += 1
        return self._count

    # -- what users do ---------------------------------------------------------------------------

    def create_guest(
        self,
        machine_type: str,
        *,
        lab: str = "red",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Pod:
        """As admission makes it."""
        written = {
            "metadata": {
                "name": f"guest-{self.number()}",
                "labels": {**role_labels(self.group, machine_type, GUEST), **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {"containers": [{"name": "main"}], **spec},
        }
        shape = shapes_of(self.machine.spec)[machine_type]
        return self._create(lab, inject(written, shape, self.group, "mei"))

    def create_pod(self, cpu: int, node: str = "", **spec: Any) -> Pod:
        """One that has nothing to do with machines, bound already if a node is named."""
        requests = {"cpu": str(cpu), "memory": f"{cpu}Gi"}
        written = {
            "metadata": {"name": f"other-{self.number()}"},
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": requests}}],
                "nodeName": node,
                **spec,
            },
        }
        return self._create("elsewhere", written)

    def _create(self, lab: str, written: dict[str, Any]) -> Pod:
        self.now += timedelta(seconds=1)
        meta = {
            **written["metadata"],
            "namespace": lab,
            "uid": f"{written['metadata']['name']}.{self.number()}",
            "creationTimestamp": time_text(self.now),
        }
        document = {**written, "metadata": meta, "status": {"phase": "Pending"}}
        return self.write(msgspec.convert(document, Pod))

    def write(self, pod: Pod) -> Pod:
        """The pod is so from now on."""
        meta = replace(pod.metadata, resource_version=str(self.number()))
        self.pods[pod.metadata.uid] = found = replace(pod, metadata=meta)
        return found

    def end(self, uid: str, phase: str = "Succeeded") -> None:
        pod = self.pods[uid]
        self.write(replace(pod, status=replace(pod.status, phase=phase)))

    def delete(self, uid: str) -> None:
        """What is bound takes its time to end."""
        pod = self.pods[uid]
        if not pod.spec.node_name or is_over(pod):
            del self.pods[uid]
        elif not is_leaving(pod):
            meta = replace(pod.metadata, deletion_timestamp=time_text(self.now))
            self.write(replace(pod, metadata=meta))

    def change_spec(self, change: Callable[[dict[str, Any]], None]) -> None:
        """A new generation, which is accepted."""
        spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.machine.spec))
        change(spec)
        meta = replace(self.machine.metadata, generation=self.machine.metadata.generation + 1)
        machine = msgspec.convert({"spec": spec}, Machine)
        self.machine = replace(self.machine, metadata=meta, spec=machine.spec)
        self.ledger.set_stock(self.machine.spec)

    # -- what nodes do ---------------------------------------------------------------------------

    def set_ready(self, name: str, is_ready: bool) -> None:
        node = self.nodes[name]
        others = tuple(each for each in node.spec.taints if each != NOT_READY_TAINT)
        taints = others if is_ready else (*others, NOT_READY_TAINT)
        self.nodes[name] = replace(node, spec=replace(node.spec, taints=taints))

    def run_kubelets(self) -> None:
        """What is bound runs; what was to end has ended. Pods of nodes that are gone go."""
        for uid, pod in list(self.pods.items()):
            node = pod.spec.node_name
            if node and (node not in self.nodes or is_leaving(pod)):
                del self.pods[uid]
            elif node and pod.status.phase == "Pending":
                self.end(uid, "Running")

    def mark_nodes(self) -> None:
        """As the node pool controller does."""
        entries = {each.name: each for each in self.machine.spec.node_pool}
        for name, node in list(self.nodes.items()):
            wanted = None
            if name in entries:
                entry = entries[name]
                wanted = marks_of(self.machine.spec, self.group, entry, state_of(node, entry))
            change = change_of(node, wanted)
            if change is None:
                continue
            meta = msgspec.to_builtins(node.metadata)
            for key in change.stale_labels:
                del meta["labels"][key]
            meta["annotations"].pop(MACHINE_GROUP, None)
            if wanted is not None:
                meta["labels"] |= wanted.labels
                meta["annotations"][MACHINE_GROUP] = wanted.group
            spec = msgspec.to_builtins(node.spec)
            taints = tainted(list(spec["taints"]), wanted.taints if wanted is not None else {})
            spec["taints"] = spec["taints"] if taints is None else taints
            self.nodes[name] = replace(
                node,
                metadata=msgspec.convert(meta, type(node.metadata)),
                spec=msgspec.convert(spec, type(node.spec)),
            )

    # -- what Kubernetes does --------------------------------------------------------------------

    def run_stateful_sets(self) -> None:
        for name, found in list(self.stateful_sets.items()):
            revision = str(hash(msgspec.json.encode(found.spec["template"])))
            status = replace(
                found.status,
                observed_generation=found.metadata.generation,
                update_revision=revision,
            )
            self.stateful_sets[name] = replace(found, status=status)
            there = {
                pod.metadata.name: uid
                for uid, pod in list(self.pods.items())
                if is_stock(pod) and owner_name(pod) == name and not self._is_replaced(pod)
            }
            wanted = [f"{name}-{ordinal}" for ordinal in range(found.spec["replicas"])]
            for each in there.keys() - set(wanted):
                del self.pods[there[each]]
            for each in wanted:
                if each not in there:
                    self._create_sleeper(each, found.spec["template"], revision)
        for uid, pod in list(self.pods.items()):
            if is_stock(pod) and owner_name(pod) not in self.stateful_sets:
                del self.pods[uid]

    def _is_replaced(self, sleeper: Pod) -> bool:
        """One that is over is deleted, and made again."""
        if is_over(sleeper):
            del self.pods[sleeper.metadata.uid]
        return is_over(sleeper)

    def _create_sleeper(self, name: str, template: dict[str, Any], revision: str) -> None:
        written = deepcopy(template)
        written["metadata"]["name"] = name
        written["metadata"]["labels"][REVISION] = revision
        self._create(SETTINGS.namespace, written)

    def schedule(self) -> None:
        """Bind what can be bound, by priority and age."""
        table = self.table(self.pods, self.nodes, {})
        waiting = [
            pod
            for pod in self.pods.values()
            if not pod.spec.node_name and not pod.spec.scheduling_gates and not is_over(pod)
        ]
        waiting.sort(key=lambda pod: (-pod.spec.priority, pod.metadata.creation_timestamp))
        for pod in waiting:
            rows = np.flatnonzero(table.filter(pod_request_of(pod)).mask)
            if len(rows):
                name = table.nodes.rows.names[self.chance.choice(list(rows))]
                table.add_pod(self.write(replace(pod, spec=replace(pod.spec, node_name=name))))

    def table(
        self, pods: Mapping[str, Pod], nodes: Mapping[str, Node], places: Mapping[str, str]
    ) -> NodeTable:
        """`places`: where pods count that are not bound, by uid."""
        table = NodeTable(Rows())
        for node in nodes.values():
            table.set_node(node)
        for each in self.namespaces.values():
            table.set_namespace(each)
        for uid, pod in pods.items():
            table.add_pod(pod, pod.spec.node_name or places.get(uid, ""))
        return table
