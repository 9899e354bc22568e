"""Stories of a simulated cluster: Machines and events by chance, and the operator among them.

Between any two writes of the operator anything may happen, its caches may be behind, and it may
die; now and then everybody is given time until nothing is left to do.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import Any

from msgspec.structs import replace

from dovetail.machines.documents import Machine
from dovetail.machines.names import HOSTNAME, UNIT_GROUP, UNIT_GROUP_SIZE
from dovetail.machines.pods import is_bound, is_guest, is_over
from dovetail.machines.shapes import shapes_of
from dovetail.podfit.objects import Node, Pod
from tests.machines.building import machine, node
from tests.machines.simulation.cluster import SimulatedCluster, is_stock, time_text
from tests.machines.simulation.operator import KINDS, SimulatedOperator
from tests.machines.simulation.oracle import check_numbers, check_order, check_room
from tests.machines.simulation.rest import Rest

TENANTS = ("red", "blue")
MOST_PODS = 14
"""Guests and others at a time."""


def kind(name: str, cpu: int, available: int, parent: str = "", ratio: float = 0.0) -> Any:
    shape: dict[str, Any] = {"cpu": cpu, "memory": f"{cpu}Gi"}
    if parent:
        shape["dependence"] = {"parent": parent, "availableRatio": ratio}
    return {"name": name, "spec": shape, "available": available}


def gpu_kind(name: str, gpus: int, available: int) -> Any:
    gpu = {"type": "nvidia.com/gpu", "num": gpus, "product": "A"}
    return {
        "name": name,
        "spec": {"cpu": gpus, "memory": "1Gi", "gpu": gpu},
        "available": available,
    }


PLAIN = [kind("plain", 4, 4)]
TERMS = [
    {
        **kind("plain", 4, 4),
        "caps": {"perNamespace": 3},
        "maxDuration": "2h",
        "whenExpired": "evict",
        "windows": [
            {
                "name": "lesson",
                "start": "2026-11-16T10:00:00Z",
                "duration": "1h",
                "rrule": "FREQ=DAILY;BYHOUR=10,14,18,22",
                "holdBefore": "30m",
                "units": 2,
                "buyers": {"namespaces": ["blue"]},
            }
        ],
    }
]
HALVES = [kind("whole", 4, 3), kind("half", 2, 6, "whole", 0.5)]
TENTHS = [
    kind("whole", 10, 2),
    kind("large", 6, 3, "whole", 0.6),
    kind("small", 2, 5, "whole", 0.2),
]
NESTED = [
    kind("whole", 8, 2),
    kind("half", 4, 3, "whole", 0.5),
    kind("quarter", 2, 6, "half", 0.5),
]
MIXED = [kind("large", 5, 2), kind("middle", 3, 2), kind("small", 2, 2)]
TIGHT = [kind("four", 4, 2), kind("three", 3, 4)]
"""Four, three and three on each of two nodes of ten: first fit does not find that."""
MIXED_FAMILIES = [*HALVES, kind("other", 3, 2)]
GPUS = [gpu_kind("pair", 2, 2), gpu_kind("single", 1, 3)]

LAYOUTS: dict[str, tuple[list[Any], list[str], list[int]]] = {
    "plain": (PLAIN, ["plain", "plain", "plain"], [8, 8, 4]),
    "terms": (TERMS, ["plain", "plain"], [8, 8]),
    "halves": (HALVES, ["whole", "whole"], [8, 6]),
    "tenths": (TENTHS, ["whole", "whole"], [20, 10]),
    "nested": (NESTED, ["whole", "whole"], [16, 8]),
    "halves alone": (HALVES, ["half", "half"], [8, 6]),
    "halves besides": (HALVES, ["whole", "half"], [12, 4]),
    "mixed": (MIXED, ["large middle small", "large middle", "middle small"], [8, 8, 5]),
    "tight": (TIGHT, ["four three"] * 2, [10, 10]),
    "mixed families": (MIXED_FAMILIES, ["whole other", "whole", "other"], [8, 8, 6]),
    "gpus": (GPUS, ["pair single", "pair", "single"], [4, 4, 4]),
}
"""By name: types, what each node serves, and the CPUs of each node."""


def layout(name: str, chance: random.Random) -> tuple[Machine, list[Node]]:
    types, served, cpus = LAYOUTS[name]
    names = ["a", "b", "c"][: len(served)]
    taint = chance.random() < 0.3
    spec = {
        "nodePool": [
            {
                "name": each,
                "taint": taint,
                "machineType": [{"name": one} for one in some.split()],
            }
            for each, some in zip(names, served, strict=True)
        ],
        "machineTypes": types,
        "severalTypesPerNode": True,
    }
    gpus = 4 if name == "gpus" else 0
    labels = {"nvidia.com/gpu.product": "A", "zone": "east"}
    nodes = [
        node(each, cpu=cpu, memory="64Gi", gpus=gpus, labels=labels | {"zone": f"zone-{n % 2}"})
        for n, (each, cpu) in enumerate(zip(names, cpus, strict=True))
    ]
    return machine(spec), nodes


class Story:
    def __init__(self, name: str, seed: int) -> None:
        self.chance = random.Random(f"{name} {seed}")
        made, nodes = layout(name, self.chance)
        self.cluster = SimulatedCluster(made, nodes, self.chance)
        self.operator = SimulatedOperator(self.cluster)
        self.types = [each.name for each in made.spec.machine_types]
        self.available = {each.name: each.available for each in made.spec.machine_types}
        self.cpus = {each.metadata.name: int(each.status.allocatable["cpu"]) for each in nodes}
        self.away: dict[str, Node] = {}
        self.lowered: set[str] = set()
        """Types of which more may be in use than there are."""
        self.strays: dict[str, str] = {}
        """By uid: types of guests that nobody sold a unit."""
        self.told: list[str] = []
        events: dict[Callable[[], str], int] = {
            self.guest_comes: 20,
            self.unit_group_comes: 4,
            self.guest_ends: 12,
            self.stray_comes: 1,
            self.other_comes: 4,
            self.other_ends: 4,
            self.health_changes: 4,
            self.mode_changes: 3,
            self.node_goes_or_comes: 2,
            self.node_changes: 2,
            self.sleeper_ends: 2,
            self.gpus_change_hands: 4 if name == "gpus" else 0,
            self.stock_changes: 3,
            self.time_passes: 8 if name == "terms" else 1,
            self.kubernetes_works: 14,
            self.caches_catch_up: 10,
            self.operator_works: 20,
        }
        self._events, self._weights = list(events), list(events.values())

    # -- telling ---------------------------------------------------------------------------------

    def tell(self, steps: int) -> None:
        """So many events, then rest; each with all that has to hold."""
        try:
            for _ in range(steps):
                self._one(self.chance.choices(self._events, self._weights)[0])
                if self.chance.random() < 0.05:
                    self._rest()
            self._rest()
        except AssertionError as error:
            error.add_note("\n".join(self.told[-60:]))
            raise

    def _one(self, event: Callable[[], str]) -> None:
        words = event()
        if words:
            self.told.append(words)
        self._check_numbers()

    def _check_numbers(self) -> None:
        self.strays = {uid: name for uid, name in self.strays.items() if uid in self.cluster.pods}
        for name in self.strays.values():
            self.lowered.update(shapes_of(self.cluster.machine.spec)[name].line)
        check_numbers(self.cluster, self.lowered)

    def _rest(self) -> None:
        self.told.append("-- rest --")
        plan = self.operator.settle()
        self._check_numbers()
        Rest(self.operator, plan).check()

    # -- what happens ----------------------------------------------------------------------------

    def guest_comes(self) -> str:
        if self._crowd() >= MOST_PODS:
            return ""
        return f"comes {self._guest({}, {}).metadata.uid}"

    def _guest(self, labels: dict[str, str], annotations: dict[str, str]) -> Pod:
        spec: dict[str, Any] = {"priority": self.chance.choice([0, 0, 0, 5])}
        constraint = self.chance.random()
        if constraint < 0.2:
            spec["nodeSelector"] = {HOSTNAME: self.chance.choice("abc")}
        elif constraint < 0.3:
            spec["nodeSelector"] = {"zone": self.chance.choice(["zone-0", "zone-1"])}
        elif constraint < 0.4:
            labels = {**labels, "app": self.chance.choice("xy")}
            term = {
                "topologyKey": HOSTNAME,
                "labelSelector": {"matchLabels": {"app": labels["app"]}},
            }
            required = "requiredDuringSchedulingIgnoredDuringExecution"
            spec["affinity"] = {"podAntiAffinity": {required: [term]}}
        if self.chance.random() < 0.1:
            claim = {"claimName": "data"}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        lab, name = self.chance.choice(TENANTS), self.chance.choice(self.types)
        if UNIT_GROUP in labels:
            lab = "red"
        return self.cluster.create_guest(
            name, lab=lab, labels=labels, annotations=annotations, **spec
        )

    def stray_comes(self) -> str:
        """A pod that is labelled as a guest, and on a node, when nobody was there to gate it."""
        name = self.chance.choice(self.types)
        pod = self.cluster.create_guest(name)
        spec = replace(pod.spec, scheduling_gates=())
        self.cluster.write(replace(pod, spec=spec))
        self.cluster.schedule()
        self.strays[pod.metadata.uid] = name
        return f"comes without a gate {pod.metadata.uid}"

    def unit_group_comes(self) -> str:
        if self._crowd() >= MOST_PODS:
            return ""
        size, group = self.chance.choice([2, 3]), f"group-{self.cluster.number()}"
        come = size if self.chance.random() < 0.8 else size - 1
        pods = [self._guest({UNIT_GROUP: group}, {UNIT_GROUP_SIZE: str(size)}) for _ in range(come)]
        return f"come {[each.metadata.uid for each in pods]} of {size}"

    def _crowd(self) -> int:
        return sum(not is_stock(pod) for pod in self.cluster.pods.values())

    def guest_ends(self) -> str:
        guests = [uid for uid, pod in self.cluster.pods.items() if is_guest(pod)]
        if not guests:
            return ""
        uid = self.chance.choice(guests)
        pod = self.cluster.pods[uid]
        if is_bound(pod) and not is_over(pod) and self.chance.random() < 0.5:
            self.cluster.end(uid, self.chance.choice(["Succeeded", "Failed"]))
            return f"ends {uid}"
        self.cluster.delete(uid)
        return f"deleted by its user {uid}"

    def other_comes(self) -> str:
        """It goes where there is room, as the scheduler sees it."""
        if self._crowd() >= MOST_PODS:
            return ""
        tolerations = [{"operator": "Exists"}] if self.chance.random() < 0.3 else []
        pod = self.cluster.create_pod(self.chance.choice([1, 2, 3]), tolerations=tolerations)
        if self.chance.random() < 0.7:
            self.cluster.schedule()
        return f"comes {pod.metadata.uid}"

    def other_ends(self) -> str:
        others = [
            uid for uid, pod in self.cluster.pods.items() if pod.metadata.namespace == "elsewhere"
        ]
        if not others:
            return ""
        uid = self.chance.choice(others)
        self.cluster.delete(uid)
        return f"goes {uid}"

    def health_changes(self) -> str:
        if not self.cluster.nodes:
            return ""
        name, is_ready = self.chance.choice(list(self.cluster.nodes)), self.chance.random() < 0.6
        self.cluster.set_ready(name, is_ready)
        return f"node {name} is {'' if is_ready else 'not '}ready"

    def mode_changes(self) -> str:
        at = self.chance.randrange(len(self.cluster.machine.spec.node_pool))
        mode = self.chance.choice(["ready", "ready", "maintenance"])

        def change(spec: dict[str, Any]) -> None:
            spec["nodePool"][at]["mode"] = mode

        self.cluster.change_spec(change)
        return f"node {at} is in mode {mode}"

    def node_goes_or_comes(self) -> str:
        if self.away:
            name, found = self.away.popitem()
            self.cluster.nodes[name] = found
            return f"node {name} is back"
        name = self.chance.choice(list(self.cluster.nodes))
        self.away[name] = self.cluster.nodes.pop(name)
        return f"node {name} is gone"

    def node_changes(self) -> str:
        """It has less to give than before, or as much again."""
        if not self.cluster.nodes:
            return ""
        name = self.chance.choice(list(self.cluster.nodes))
        cpus = self.chance.choice([self.cpus[name], self.cpus[name] - 2])
        found = self.cluster.nodes[name]
        allocatable = {**found.status.allocatable, "cpu": str(cpus)}
        status = replace(found.status, allocatable=allocatable)
        self.cluster.nodes[name] = replace(found, status=status)
        return f"node {name} has {cpus} CPUs"

    def sleeper_ends(self) -> str:
        """Somebody deletes one, or it is evicted; some take their time."""
        sleepers = [uid for uid, pod in self.cluster.pods.items() if is_stock(pod)]
        if not sleepers:
            return ""
        uid = self.chance.choice(sleepers)
        if self.chance.random() < 0.3:
            self.cluster.end(uid, "Failed")
            return f"fails {uid}"
        self.cluster.delete(uid)
        return f"deleted by somebody {uid}"

    def gpus_change_hands(self) -> str:
        """Others than machines take GPUs in the ledger, as many as are free there, or give back."""
        name = self.chance.choice(list(self.cpus))
        held = sum(
            shapes_of(self.cluster.machine.spec)[unit.type].gpus
            for unit in self.cluster.ledger.units.values()
            if unit.node == name
        )
        self.cluster.gpus_of_others[name] = self.chance.randint(0, max(4 - held, 0))
        return f"others have {self.cluster.gpus_of_others[name]} GPUs of {name}"

    def time_passes(self) -> str:
        self.cluster.now += timedelta(minutes=self.chance.choice([5, 20, 60]))
        return f"it is {time_text(self.cluster.now)}"

    def stock_changes(self) -> str:
        at = self.chance.randrange(len(self.types))
        name = self.types[at]
        count = self.chance.randint(0, self.available[name])
        before = self.cluster.machine.spec.machine_types[at].available

        def change(spec: dict[str, Any]) -> None:
            spec["machineTypes"][at]["available"] = count

        self.cluster.change_spec(change)
        if count < before:
            self.lowered.add(name)
        return f"{count} of {name} are available"

    # -- who works -------------------------------------------------------------------------------

    def kubernetes_works(self) -> str:
        work = self.chance.choice(
            [
                self.cluster.run_stateful_sets,
                self.cluster.schedule,
                self.cluster.run_kubelets,
                self.cluster.mark_nodes,
            ]
        )
        work()
        return work.__name__

    def caches_catch_up(self) -> str:
        kinds = self.chance.sample(KINDS, self.chance.randint(1, len(KINDS)))
        self.operator.look(kinds)
        return f"seen: {', '.join(kinds)}"

    def operator_works(self) -> str:
        """A plan, of which perhaps only the beginning is carried out, or with others between."""
        is_fresh = self.chance.random() < 0.5
        if is_fresh:
            self.operator.look()
        plan = self.operator.plan(self.chance.choice([inf, inf, 1, 2]))
        check_order(plan, self.operator.pods)
        check_room(self.operator, plan)
        dies_at = self.chance.choice([None, None, self.chance.randint(0, 6)])
        self.told.append("plan:")
        for at, words in enumerate(self.operator.carrying_out(plan)):
            self.told.append(f"  {words}")
            self._check_numbers()
            if at == dies_at:
                return "  the operator dies"
            if self.chance.random() < 0.1:
                self._one(self.chance.choice([self.kubernetes_works, self.other_comes]))
        return ""
