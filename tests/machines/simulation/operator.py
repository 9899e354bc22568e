"""The operator of a simulated cluster: plans by its caches and writes as the executor does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.kube.runtime.apply import reference
from dovetail.machines.documents import MachineNodePool, MachineShape, MachineStatus
from dovetail.machines.names import HOSTNAME, STOCK_GATE, UNIT_GATE
from dovetail.machines.placement_rules import tolerating
from dovetail.machines.plan import DropObject, MachinePlan, PutObject, plan_machine
from dovetail.machines.pods import is_guest, type_of
from dovetail.machines.selling.seller import is_pinned
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.podfit.objects import KubeObject, Node, Pod, Service, StatefulSet
from tests.machines.simulation.cluster import SETTINGS, SimulatedCluster, is_stock
from tests.machines.simulation.ledger import UnitRefused, WantedUnit

KINDS = ("pods", "nodes", "stateful_sets")
MOST_ROUNDS = 30
"""Of controllers and plans, until nothing is left to do."""


class SimulatedOperator:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.pods: dict[str, Pod] = {}
        """As the caches have them; each kind may be behind."""
        self.nodes: dict[str, Node] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self._written: dict[type[KubeObject], dict[str, Any]] = {
            Service: {},
            MachineShape: {},
            MachineNodePool: {},
        }
        self.look()

    def look(self, kinds: Iterable[str] = KINDS) -> None:
        """Caches catch up."""
        for kind in kinds:
            setattr(self, kind, dict(getattr(self.cluster, kind)))

    def snapshot(self) -> MachineSnapshot:
        """Of what the caches have. Of the ledger, the operator knows all that it did itself."""
        cluster, units = self.cluster, dict(self.cluster.ledger.units)
        places = {uid: unit.node for uid, unit in units.items()}
        pool = {each.name for each in cluster.machine.spec.node_pool}
        return MachineSnapshot(
            machine=cluster.machine,
            spec=cluster.machine.spec,
            accepted_generation=cluster.machine.metadata.generation,
            settings=SETTINGS,
            now=cluster.now,
            table=cluster.table(self.pods, self.nodes, places),
            nodes={name: node for name, node in self.nodes.items() if name in pool},
            guests={uid: pod for uid, pod in self.pods.items() if is_guest(pod)},
            sleepers={uid: pod for uid, pod in self.pods.items() if is_stock(pod)},
            units=units,
            gone=frozenset(units.keys() - self.pods.keys() - cluster.pods.keys()),
            namespaces=cluster.namespaces,
            gpus_of_others=cluster.gpus_of_others,
            pool=next(iter(self._written[MachineNodePool].values()), None),
            stateful_sets=self.stateful_sets,
            services=self._written[Service],
            shapes=self._written[MachineShape],
        )

    def plan(self, enough: float = inf) -> MachinePlan:
        return plan_machine(self.snapshot(), enough)

    # -- writing ---------------------------------------------------------------------------------

    def carrying_out(self, plan: MachinePlan) -> Iterator[str]:
        """Each write of the plan, told when it was done, in the order of the executor.

        Whoever does not ask for the next one lets the operator die there.
        """
        ledger = self.cluster.ledger
        if plan.releases:
            ledger.release(plan.releases)
            yield f"released {plan.releases}"
        yield from self._adopt(plan)
        is_sold = True
        for sale in self._shuffled(plan.sales):
            units = [self._unit(each.pod, each.type, each.node) for each in sale.orders]
            victims = [each.uid for each in sale.victims]
            try:
                ledger.move(units, victims)
                yield f"sold {units} for {victims}"
            except UnitRefused as error:
                is_sold = False
                yield f"refused: {error}"
        if not is_sold:
            return
        yield from self._write_objects(plan)
        removed = [pod for pod, _ in plan.removals]
        yield from self._delete(removed)
        for sale in self._shuffled(plan.sales):
            yield from self._delete([each.pod for each in sale.victims])
            for order in self._shuffled(sale.orders):
                yield self._lift(order.pod, order.node)
        for pod, node in self._shuffled(plan.lifts):
            yield self._lift(pod, node)
        if left := [uid for pod in removed if (uid := pod.metadata.uid) in ledger.units]:
            ledger.release(left)
            yield f"gave back {left}"
        yield from self._stock(plan)
        for notice in plan.notices:
            if notice.evict and notice.pod.metadata.uid in self.cluster.pods:
                self.cluster.delete(notice.pod.metadata.uid)
                yield f"evicted {notice.pod.metadata.uid}"
        self._write_status(plan)

    def _adopt(self, plan: MachinePlan) -> Iterator[str]:
        ledger = self.cluster.ledger
        for pod in plan.adoptions:
            unit = self._unit(pod, type_of(pod), pod.spec.node_name)
            try:
                ledger.adopt(unit)
                yield f"adopted {unit}"
            except UnitRefused:
                # It is where somebody else was sold a unit: nothing can be done but to say so.
                continue
        for each in plan.stock_adoptions:
            try:
                ledger.move([self._unit(each.pod, each.type, each.node)], ())
                yield f"adopted {each.uid}"
            except UnitRefused as error:
                self.cluster.pods.pop(each.uid, None)
                yield f"deleted {each.uid}: {error}"

    def _delete(self, sleepers: Iterable[Pod]) -> Iterator[str]:
        for pod in self._shuffled(sleepers):
            assert is_stock(pod)
            self.cluster.pods.pop(pod.metadata.uid, None)
            yield f"deleted {pod.metadata.uid}"

    def _stock(self, plan: MachinePlan) -> Iterator[str]:
        for place in self._shuffled(plan.stock.places):
            unit = self._unit(place.pod, place.type, place.node)
            try:
                self.cluster.ledger.move([unit], ())
                yield f"stocked {unit}"
            except UnitRefused as error:
                yield f"refused: {error}"
                continue
            yield self._lift(place.pod, place.node)

    def _unit(self, pod: Pod, name: str, node: str) -> WantedUnit:
        at = int(self.cluster.now.timestamp())
        return WantedUnit(pod.metadata.uid, name, node, is_stock(pod), at)

    def _shuffled(self, things: Iterable[Any]) -> list[Any]:
        """The executor does them at once: any may be the first."""
        found = list(things)
        self.cluster.chance.shuffle(found)
        return found

    def _write_objects(self, plan: MachinePlan) -> Iterator[str]:
        for put in self._shuffled(plan.puts):
            self._put(put)
            yield f"put {put.kind.__name__} {put.name} {put.body.get('spec', {}).get('replicas')}"
        for drop in self._shuffled(plan.drops):
            self._drop(drop)
            yield f"dropped {drop}"

    def _put(self, put: PutObject) -> None:
        owners = [reference(self.cluster.machine)]
        meta = {**put.body["metadata"], "name": put.name, "ownerReferences": owners}
        if put.kind is not StatefulSet:
            body = {**put.body, "metadata": meta}
            self._written[put.kind][put.name] = msgspec.convert(body, put.kind)
            return
        before = self.cluster.stateful_sets.get(put.name)
        generation = 1
        if before is not None:
            generation = before.metadata.generation + (before.spec != put.body["spec"])
        found = msgspec.convert(
            {**put.body, "metadata": {**meta, "generation": generation}}, StatefulSet
        )
        status = found.status if before is None else before.status
        self.cluster.stateful_sets[put.name] = replace(found, status=status)

    def _drop(self, drop: DropObject) -> None:
        there = self._written.get(drop.kind, self.cluster.stateful_sets)
        there.pop(drop.name, None)

    def _lift(self, pod: Pod, node: str) -> str:
        now = self.cluster.pods.get(pod.metadata.uid)
        if now is None or now.metadata.resource_version != pod.metadata.resource_version:
            return f"{pod.metadata.uid} is another by now"
        unit = self.cluster.ledger.units[pod.metadata.uid]
        assert unit.node == node, "lifted where it has no unit"
        selector = {**now.spec.node_selector, **({HOSTNAME: node} if is_pinned(now) else {})}
        gates = tuple(
            each for each in now.spec.scheduling_gates if each.name not in (UNIT_GATE, STOCK_GATE)
        )
        spec = replace(now.spec, scheduling_gates=gates, node_selector=selector)
        shape = shapes_of(self.cluster.machine.spec)[type_of(pod)]
        lifted = tolerating(replace(now, spec=spec), shape, self.cluster.group)
        self.cluster.write(lifted)
        return f"lifted {pod.metadata.uid} to {node}"

    def _write_status(self, plan: MachinePlan) -> None:
        conditions = [
            {"type": each.type, "status": str(each.status), "reason": each.reason}
            for each in plan.conditions
        ]
        status = msgspec.convert({**plan.status, "conditions": conditions}, MachineStatus)
        self.cluster.machine = replace(self.cluster.machine, status=status)

    # -- coming to rest --------------------------------------------------------------------------

    def settle(self) -> MachinePlan:
        """Everybody does what is to do until nothing is; the last plan, which writes nothing."""
        cluster = self.cluster
        history: list[str] = []
        for _ in range(MOST_ROUNDS):
            before = (dict(cluster.pods), dict(cluster.nodes))
            cluster.mark_nodes()
            cluster.run_stateful_sets()
            cluster.schedule()
            cluster.run_kubelets()
            self.look()
            plan = self.plan()
            done = list(self.carrying_out(plan))
            if not done and before == (cluster.pods, cluster.nodes):
                return plan
            history.append("; ".join(done))
        raise AssertionError("never at rest:\n" + "\n".join(history[-6:]))
