"""Small random fleets and groups, tight enough that much does not fit."""

from __future__ import annotations

from random import Random

from dovetail.core.device import Device
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterInventory, ClusterNode
from dovetail.intents.group import AnyRequirement, DeploymentGroup
from tests.intents.hpa.building import (
    App,
    Json,
    app,
    cluster,
    consumer,
    device_class,
    devices,
    group,
    label,
    needs,
    node,
    pod,
    workload,
)

GPU = "nvidia.com/gpu"
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}
CLASSES = (
    device_class("big", model="b"),
    device_class("any", model="a|b|c"),
    device_class("slow", model="a|c"),
)
BROUGHT = device_class("brought", model="b|c")
APART = "kubernetes.io/hostname"


class World:
    def __init__(self, seed: int, *, has_devices: bool = False, clusters: int = 1) -> None:
        self._random, self._has_devices = Random(seed), has_devices
        self.group: DeploymentGroup = group(
            *(self._app(name) for name in "abc"[: self._random.randint(1, 3)])
        )
        self.clusters = [self._cluster(f"c{at + 1}") for at in range(clusters)]
        self.cluster = self.clusters[0]

    def _cluster(self, name: str) -> ClusterInventory:
        return cluster(
            name,
            *(self._node(f"n{at}") for at in range(self._random.randint(1, 3))),
            classes=CLASSES[: self._random.randint(1, 3)],
        )

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _node(self, name: str) -> ClusterNode:
        draw = self._random
        pods = [
            pod(f"p{at}", name, requests={"cpu": draw.choice(("500m", 1))})
            for at in range(draw.randint(0, 1))
        ]
        listed = self._devices(name) if self._has_devices else []
        return node(
            name,
            {"zone": draw.choice("xy")} if self._chance(0.8) else {},
            taints=[TAINT] if self._chance(0.15) else (),
            unschedulable=self._chance(0.1),
            is_ready=not self._chance(0.1),
            pods=pods,
            cpu=draw.randint(1, 4),
            memory=draw.randint(1, 4),
            more={GPU: draw.randint(0, 2), "pods": draw.choice((2, 4, 8))},
            held={GPU: 1} if self._chance(0.2) else {},
            devices=listed,
            held_devices=[each.name for each in listed if self._chance(0.15)],
        )

    def _devices(self, on: str) -> list[Device]:
        draw = self._random
        return [
            Device(
                node=on,
                name=f"{on}-{at}",
                kind="gpu",
                units=1 if self._chance(0.9) else 2,
                healthy=not self._chance(0.1),
                properties={"model": draw.choice("abc")},
            )
            for at in range(draw.randint(0, 3))
        ]

    def _app(self, name: str) -> App:
        objects = [self._workload(f"{name}{at}") for at in range(1 if self._chance(0.6) else 2)]
        consumers = [
            consumer(
                made,
                *self._requirements(),
                replicas=2 if made["kind"] != "DaemonSet" and self._chance(0.1) else None,
                within_one="zone" if made["kind"] != "DaemonSet" and self._chance(0.1) else "",
            )
            for made in objects
            if self._chance(0.85)
        ]
        return app(name, *objects, consumers=consumers)

    def _workload(self, name: str) -> Json:
        draw = self._random
        spec: Json = {}
        if self._chance(0.2):
            spec["tolerations"] = [TOLERATION]
        if self._chance(0.1):
            spec["nodeSelector"] = {"zone": draw.choice("xy")}
        if self._chance(0.15):
            term = {"topologyKey": APART, "labelSelector": {"matchLabels": {"app": name}}}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
        kind = "DaemonSet" if self._chance(0.1) else "Deployment"
        requests = {"cpu": draw.choice(("250m", 1))} if self._chance(0.5) else {}
        return workload(name, kind, replicas=draw.choice((0, 1, 1, 2)), requests=requests, **spec)

    def _requirements(self) -> list[AnyRequirement]:
        return [
            self._requirement(f"r{at}", None if self._chance(0.6) else self._random.randint(1, 10))
            for at in range(self._random.randint(0, 3))
        ]

    def _requirement(self, name: str, weight: int | None) -> AnyRequirement:
        draw = self._random
        if self._has_devices and self._chance(0.6):
            classes: tuple[str | DeviceClass, ...] = ("big", "any", "slow", BROUGHT)
            return devices(draw.choice(classes), draw.choice((1, 1, 2)), name=name, optional=weight)
        match draw.randint(0, 4):
            case 0:
                return needs("cpu", draw.choice(("0.5", "1", "2")), name=name, optional=weight)
            case 1:
                return needs("memory", draw.randint(1, 3), name=name, optional=weight)
            case 2:
                return needs(GPU, draw.randint(1, 2), name=name, optional=weight)
            case 3:
                values = draw.choice(("x", "y"))
                return label("zone", values, name=name, optional=weight)
            case _:
                return label("zone", "x", operator="NotIn", name=name, optional=weight)
