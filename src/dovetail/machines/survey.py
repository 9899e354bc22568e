"""Survey: where each guest and sleeper of a Machine stands, and what follows from that alone.

The planner takes one of a snapshot before it decides anything. A guest goes from waiting (behind
its gate, no unit) to granted (a unit in the ledger, not bound yet) to bound, and is over or gone in
the end; a sleeper likewise. Whatever step somebody died after, the next survey finds it there.
"""

from __future__ import annotations

from dovetail.machines.marks import state_of
from dovetail.machines.names import NODE_POOL, READY, stock_name, type_key
from dovetail.machines.placement_rules import tied, tolerating
from dovetail.machines.pods import (
    is_bound,
    is_gated_guest,
    is_gated_sleeper,
    is_leaving,
    is_opted_in,
    is_over,
    ordinal_of,
    type_of,
)
from dovetail.machines.shapes import shapes_of, types_served, types_unserved
from dovetail.machines.snapshot import MachineSnapshot, UnitRecord
from dovetail.machines.stock.sleepers import Sleeper, sleeper_of
from dovetail.podfit.objects import Pod

REVISION = "controller-revision-hash"


class Survey:
    def __init__(self, snapshot: MachineSnapshot) -> None:
        self._snapshot = snapshot
        self.serving: dict[str, list[str]] = {each.name: [] for each in snapshot.spec.machine_types}
        """By type: nodes that are ready, and marked so."""
        self.unmarked: list[str] = []
        """Nodes that would serve a type, but are not marked yet."""
        self.unserved: tuple[str, ...] = ()
        self.guests: list[Pod] = []
        """All that are not over."""
        self.waiting: list[Pod] = []
        """As they are judged: with all tolerations of their units, and tied to their volumes."""
        self.holders: list[Pod] = []
        """Guests that have a unit, or are on a node without one in the ledger."""
        self.places: dict[str, str] = {}
        """By uid: the node of each holder."""
        self.adoptions: list[Pod] = []
        """Bound guests of which the ledger knows nothing, or something else."""
        self.releases: list[str] = []
        self.lost: list[UnitRecord] = []
        """Units whose holder was not seen: they count as sold until it is known to be gone."""
        self.granted: list[tuple[Pod, str]] = []
        """Guests that have their unit and are still behind the gate, with their node."""
        self.lifts: list[tuple[Pod, str]] = []
        """Sleepers, likewise."""
        self.sleepers: list[Sleeper] = []
        """Those that hold stock, or will as soon as they are bound."""
        self.stock_adoptions: list[Sleeper] = []
        """Bound sleepers of which the ledger knows nothing, or another node."""
        self.gated: dict[str, list[Pod]] = {}
        """By type: sleepers without a place, the lowest ordinal first."""
        self.removals: list[tuple[Pod, str]] = []
        """Sleepers that must go, and why."""
        self._revisions = newest_revisions(snapshot)
        self._look_at_nodes()
        for uid, pod in snapshot.guests.items():
            self._look_at_guest(uid, pod)
        for uid, pod in snapshot.sleepers.items():
            self._look_at_sleeper(uid, pod)
        for waiting in self.gated.values():
            waiting.sort(key=ordinal_of)
        self._look_at_units()

    def _look_at_nodes(self) -> None:
        spec, group = self._snapshot.spec, self._snapshot.machine.group
        types = types_served(spec)
        for entry in spec.node_pool:
            names = types.of(entry.types)
            node = self._snapshot.nodes.get(entry.name)
            if node is None or state_of(node, entry) != READY:
                continue
            labels = node.metadata.labels
            marked = labels.get(NODE_POOL) == READY and all(
                labels.get(type_key(name)) == group for name in names
            )
            if not marked:
                self.unmarked.append(entry.name)
                continue
            for name in names:
                self.serving[name].append(entry.name)
        self.unserved = types_unserved(spec)
        self._serving_sets = {name: frozenset(nodes) for name, nodes in self.serving.items()}

    def _look_at_guest(self, uid: str, pod: Pod) -> None:
        unit = self._snapshot.units.get(uid)
        if unit is None and not self._is_injected(pod):
            # Only labelled like one: nothing was injected, and nothing is sold.
            return
        if is_over(pod):
            if unit is not None:
                self.releases.append(uid)
            return
        self.guests.append(pod)
        if is_bound(pod):
            node = pod.spec.node_name
            self._hold(uid, pod, node)
            if unit is None or unit.node != node or unit.type != type_of(pod):
                self.adoptions.append(pod)
        elif unit is not None:
            self._hold(uid, pod, unit.node)
            if is_gated_guest(pod) and not is_leaving(pod):
                self.granted.append((pod, unit.node))
        elif is_gated_guest(pod) and not is_leaving(pod):
            self._wait(pod)

    def _wait(self, pod: Pod) -> None:
        shape = shapes_of(self._snapshot.spec).get(type_of(pod))
        if shape is not None and shape.companions:
            pod = tolerating(pod, shape, self._snapshot.machine.group)
        volumes = self._snapshot.volumes.get(pod.metadata.uid)
        if volumes is not None and volumes.demands:
            pod = tied(pod, volumes.demands)
        self.waiting.append(pod)

    def _is_injected(self, pod: Pod) -> bool:
        namespace = self._snapshot.namespaces.get(pod.metadata.namespace)
        return is_gated_guest(pod) or is_opted_in(namespace)

    def send_back(self, pod: Pod) -> None:
        """A guest that was granted a unit where it cannot go any more waits again."""
        uid = pod.metadata.uid
        self.granted = [each for each in self.granted if each[0] is not pod]
        self.holders.remove(pod)
        del self.places[uid]
        self.releases.append(uid)
        self._wait(pod)

    def is_in_use(self, node: str, name: str) -> bool:
        """Whether units of the type may be there now, as far as is known before it is marked."""
        return node in self._serving_sets.get(name, ()) or node in self.unmarked

    def _hold(self, uid: str, pod: Pod, node: str) -> None:
        self.holders.append(pod)
        self.places[uid] = node

    def _look_at_sleeper(self, uid: str, pod: Pod) -> None:
        unit = self._snapshot.units.get(uid)
        if is_over(pod):
            if unit is not None:
                self.releases.append(uid)
        elif is_leaving(pod):
            # It holds no stock any more; its room is its own until it is gone. The API server marks
            # a pod before it removes it: if the one who asked died in between, it stays until
            # somebody asks again.
            self.removals.append((pod, "its deletion has begun"))
        elif is_bound(pod):
            is_held = unit is not None and unit.node == pod.spec.node_name
            self._look_at_holding(sleeper_of(pod, pod.spec.node_name, is_held=is_held))
        elif unit is not None:
            self._look_at_holding(sleeper_of(pod, unit.node, is_held=True))
        elif not is_gated_sleeper(pod):
            self.removals.append((pod, "it was let go without a place"))
        elif why := self._outdated(pod):
            self.removals.append((pod, why))
        else:
            self.gated.setdefault(type_of(pod), []).append(pod)

    def _look_at_holding(self, sleeper: Sleeper) -> None:
        """One that is on a node, or is to be."""
        pod = sleeper.pod
        if why := self._unfit(pod, sleeper.node):
            self.removals.append((pod, why))
            return
        self.sleepers.append(sleeper)
        if not sleeper.is_held:
            self.stock_adoptions.append(sleeper)
        if is_gated_sleeper(pod):
            self.lifts.append((pod, sleeper.node))

    def _unfit(self, pod: Pod, node: str) -> str:
        """Why a sleeper cannot stay where it is; empty if it can."""
        if not self.is_in_use(node, type_of(pod)):
            return f"node {node} does not serve {type_of(pod)} at present"
        return self._outdated(pod)

    def _outdated(self, pod: Pod) -> str:
        newest = self._revisions.get(type_of(pod))
        is_old = newest and pod.metadata.labels.get(REVISION, newest) != newest
        return "the shape of its type has changed" if is_old else ""

    def _look_at_units(self) -> None:
        snapshot = self._snapshot
        for uid in snapshot.units.keys() - snapshot.guests.keys() - snapshot.sleepers.keys():
            if uid in snapshot.gone:
                self.releases.append(uid)
            elif not snapshot.units[uid].is_stock:
                self.lost.append(snapshot.units[uid])


def newest_revisions(snapshot: MachineSnapshot) -> dict[str, str]:
    """By type, of sleepers; none where the StatefulSet has not been looked at since it changed."""
    owners = {
        each.name: snapshot.stateful_sets.get(stock_name(each.name, snapshot.machine.group))
        for each in snapshot.spec.machine_types
    }
    return {
        name: owner.status.update_revision
        for name, owner in owners.items()
        if owner is not None and owner.status.observed_generation == owner.metadata.generation
    }
