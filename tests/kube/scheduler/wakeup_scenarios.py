"""One pod that waits, and one event that makes it fit: for each kind of event, on a real cluster.

A scenario is played on two sides, each with nodes, namespaces and pods of its own: one side's pods
are placed by Dovetail, the other's by kube-scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dovetail.kube.scheduler.queue import Wake
from tests.kube.scheduler import real
from tests.support.kube.cluster import Cluster, node_object

Json = dict[str, Any]
HERE, ZONE = "test/here", "test/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RESTART_ALL = "RestartAllContainersOnContainerExits"
OK = (200, 201)
WAITING = "waiting"
X: Json = {"matchLabels": {"app": "x"}}


class Side:
    """A corner of the cluster, of one scenario and one scheduler."""

    def __init__(self, cluster: Cluster, name: str, scheduler: str) -> None:
        self.cluster = cluster
        self.name = name
        self.scheduler = scheduler
        self.namespace(self.name)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        status, said = self.cluster.request(method, path, body)
        assert status in OK, said
        return json.loads(said)

    def namespace(self, name: str) -> None:
        self.cluster.make_namespace(name)

    def node(self, name: str, zone: str = "a", **about: Any) -> None:
        labels = {HERE: self.name, ZONE: f"{self.name}-{zone}", **about.pop("labels", {})}
        status = about.pop("status", {})
        made = node_object(f"{self.name}-{name}", labels=labels, **about)
        made["status"] |= status
        self.ask("POST", "/api/v1/nodes", made)

    def change_node(self, name: str, change: Json, sub: str = "") -> None:
        self.ask("PATCH", f"/api/v1/nodes/{self.name}-{name}{sub}", change)

    def drop_node(self, name: str) -> None:
        self.ask("DELETE", f"/api/v1/nodes/{self.name}-{name}")

    def waiting(self, cpu: str = "1", labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """The pod that waits; it may go to this side's nodes alone."""
        selector = {HERE: self.name, **spec.pop("nodeSelector", {})}
        about = {"schedulerName": self.scheduler, "nodeSelector": selector, **spec}
        self.pod(WAITING, cpu=cpu, labels=labels, **about)

    def pod(
        self,
        name: str,
        on: str = "",
        cpu: str = "1",
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
        **spec: Any,
    ) -> None:
        resources = {"requests": {"cpu": cpu, **spec.pop("requests", {})}}
        if "limits" in spec:
            resources["limits"] = spec.pop("limits")
        container = {"name": "main", "image": "none", "resources": resources}
        container |= spec.pop("container", {})
        placed = {"nodeName": f"{self.name}-{on}"} if on else {}
        made = {
            "metadata": {"name": name, "labels": dict(labels or {})},
            "spec": {
                "containers": [container],
                "terminationGracePeriodSeconds": 0,
                **placed,
                **spec,
            },
        }
        self.ask("POST", f"/api/v1/namespaces/{namespace or self.name}/pods", made)

    def change_pod(self, name: str, change: Json, sub: str = "") -> None:
        self.ask("PATCH", f"/api/v1/namespaces/{self.name}/pods/{name}{sub}", change)

    def drop_pod(self, name: str, grace: int = 0) -> None:
        path = f"/api/v1/namespaces/{self.name}/pods/{name}"
        self.ask("DELETE", path, {"gracePeriodSeconds": grace})

    def resize(self, name: str, cpu: str) -> None:
        resources = {"requests": {"cpu": cpu}}
        self.change_pod(
            name, {"spec": {"containers": [{"name": "main", "resources": resources}]}}, "/resize"
        )

    def tell_resources(self, name: str, cpu: str, *conditions: Json) -> None:
        """As the kubelet does: what the container has."""
        status = {
            "name": "main",
            "image": "none",
            "imageID": "none",
            "ready": True,
            "restartCount": 0,
            "resources": {"requests": {"cpu": cpu}},
            "allocatedResources": {"cpu": cpu},
        }
        told = {"phase": "Running", "containerStatuses": [status], "conditions": conditions}
        self.change_pod(name, {"status": told}, "/status")

    def see(self) -> Json:
        found: Json = self.ask("GET", f"/api/v1/namespaces/{self.name}/pods/{WAITING}")
        return found

    @property
    def is_bound(self) -> bool:
        return bool(self.see()["spec"].get("nodeName"))

    def has_been_refused(self) -> bool:
        told = self.see()["status"].get("conditions", [])
        return any(each.get("reason") == "Unschedulable" for each in told)


class Scenario(NamedTuple):
    kind: Wake
    """What the event is one of; Wake(0): the pod itself is changed."""
    prepare: Callable[[Side], None]
    """Until a pod waits."""
    event: Callable[[Side], None]
    has_counterpart: bool = True
    """Whether kube-scheduler heeds such things at once. It has no classes; that a pod leaves or
    cannot be resized, and labels of namespaces, 1.36 finds out with other events or in minutes."""


def term(selector: Json = X, **more: Any) -> list[Json]:
    return [{"labelSelector": selector, "topologyKey": ZONE, **more}]


def near(**more: Any) -> Json:
    return {"podAffinity": {REQUIRED: term(**more)}}


def apart(**more: Any) -> Json:
    return {"podAntiAffinity": {REQUIRED: term(**more)}}


def spread() -> list[Json]:
    return [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": X,
        }
    ]


def steps(*calls: Callable[[Side], None]) -> Callable[[Side], None]:
    def all_of_them(side: Side) -> None:
        for each in calls:
            each(side)

    return all_of_them


def two_zones(side: Side) -> None:
    """One has a pod and room, the other neither."""
    side.node("a")
    side.node("b", "b", cpu="0")
    side.pod("there", "a", labels={"app": "x"})
    side.waiting(labels={"app": "x"}, topologySpreadConstraints=spread())


def device_pod(side: Side) -> None:
    asked = {f"resourceclass.dovetail.dev/{side.name}": "1"}
    side.waiting(requests=asked, limits=asked)


def resource_class(side: Side) -> None:
    side.cluster.apply(real.class_object(side.name))


def other_namespace(side: Side) -> None:
    side.namespace(f"{side.name}-other")
    side.node("a")
    side.pod("there", "a", labels={"app": "x"}, namespace=f"{side.name}-other")


def label_namespace(side: Side, value: str | None) -> None:
    labels = {"team": value and f"{side.name}-{value}"}
    path = f"/api/v1/namespaces/{side.name}-other"
    side.ask("PATCH", path, {"metadata": {"labels": labels}})


def of_team(side: Side) -> Json:
    return {"namespaceSelector": {"matchLabels": {"team": f"{side.name}-one"}}}


SCENARIOS: dict[str, Scenario] = {
    "node-comes": Scenario(Wake.NODE, lambda side: side.waiting(), lambda side: side.node("a")),
    "node-labelled": Scenario(
        Wake.NODE,
        steps(lambda s: s.node("a"), lambda s: s.waiting(nodeSelector={"disk": "ssd"})),
        lambda side: side.change_node("a", {"metadata": {"labels": {"disk": "ssd"}}}),
    ),
    "taint-goes": Scenario(
        Wake.NODE,
        steps(
            lambda s: s.node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
            lambda s: s.waiting(),
        ),
        lambda side: side.change_node("a", {"spec": {"taints": None}}),
    ),
    "uncordoned": Scenario(
        Wake.NODE,
        steps(
            lambda s: s.node("a"),
            lambda s: s.cluster.cordon(f"{s.name}-a"),
            lambda s: s.waiting(),
        ),
        lambda side: side.cluster.cordon(f"{side.name}-a", undo=True),
    ),
    "node-grows": Scenario(
        Wake.NODE,
        steps(lambda s: s.node("a", cpu="500m"), lambda s: s.waiting()),
        lambda side: side.change_node("a", {"status": {"allocatable": {"cpu": "2"}}}, "/status"),
    ),
    "feature-declared": Scenario(
        Wake.NODE,
        steps(
            lambda s: s.node("a"),
            lambda s: s.waiting(
                container={
                    "restartPolicy": "Never",
                    "restartPolicyRules": [
                        {
                            "action": "RestartAllContainers",
                            "exitCodes": {"operator": "In", "values": [42]},
                        }
                    ],
                }
            ),
        ),
        lambda side: side.change_node(
            "a", {"status": {"declaredFeatures": [RESTART_ALL]}}, "/status"
        ),
    ),
    "emptiest-zone-goes": Scenario(Wake.NODE_GONE, two_zones, lambda side: side.drop_node("b")),
    "room": Scenario(
        Wake.GONE,
        steps(lambda s: s.node("a", cpu="1"), lambda s: s.pod("there", "a"), lambda s: s.waiting()),
        lambda side: side.drop_pod("there"),
    ),
    "port": Scenario(
        Wake.GONE,
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a", container={"ports": [PORT]}),
            lambda s: s.waiting(container={"ports": [PORT]}),
        ),
        lambda side: side.drop_pod("there"),
    ),
    "disk": Scenario(
        Wake.GONE,
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a", volumes=[DISK]),
            lambda s: s.waiting(volumes=[DISK]),
        ),
        lambda side: side.drop_pod("there"),
    ),
    "kept-away": Scenario(
        Wake.GONE,
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a", affinity=apart()),
            lambda s: s.waiting(labels={"app": "x"}),
        ),
        lambda side: side.drop_pod("there"),
    ),
    "resized-down": Scenario(
        Wake.RESIZED,
        steps(
            lambda s: s.node("a", cpu="2"),
            lambda s: s.pod("there", "a", cpu="2"),
            lambda s: s.tell_resources("there", "2"),
            lambda s: s.resize("there", "1"),
            lambda s: s.waiting(),
        ),
        lambda side: side.tell_resources("there", "1"),
    ),
    "resize-infeasible": Scenario(
        Wake.RESIZED,
        steps(
            lambda s: s.node("a", cpu="2"),
            lambda s: s.pod("there", "a", cpu="1"),
            lambda s: s.tell_resources("there", "1"),
            lambda s: s.resize("there", "2"),
            lambda s: s.waiting(),
        ),
        lambda side: side.tell_resources("there", "1", INFEASIBLE),
        has_counterpart=False,
    ),
    "neighbour-comes": Scenario(
        Wake.PLACED,
        steps(lambda s: s.node("a"), lambda s: s.waiting(affinity=near())),
        lambda side: side.pod("there", "a", labels={"app": "x"}),
    ),
    "emptiest-zone-fills": Scenario(
        Wake.PLACED, two_zones, lambda side: side.pod("more", "b", labels={"app": "x"})
    ),
    "neighbour-labelled": Scenario(
        Wake.RELABELLED,
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a"),
            lambda s: s.waiting(affinity=near()),
        ),
        lambda side: side.change_pod("there", {"metadata": {"labels": {"app": "x"}}}),
    ),
    "enemy-relabelled": Scenario(
        Wake.RELABELLED,
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a", labels={"app": "x"}),
            lambda s: s.waiting(affinity=apart()),
        ),
        lambda side: side.change_pod("there", {"metadata": {"labels": {"app": "y"}}}),
    ),
    "counted-pod-relabelled": Scenario(
        Wake.RELABELLED,
        two_zones,
        lambda side: side.change_pod("there", {"metadata": {"labels": {"app": "y"}}}),
    ),
    "counted-pod-leaves": Scenario(
        Wake.RELABELLED,
        two_zones,
        lambda side: side.drop_pod("there", grace=600),
        has_counterpart=False,
    ),
    "namespace-labelled": Scenario(
        Wake.NAMESPACE,
        steps(other_namespace, lambda s: s.waiting(affinity=near(**of_team(s)))),
        lambda side: label_namespace(side, "one"),
        has_counterpart=False,
    ),
    "namespace-unlabelled": Scenario(
        Wake.NAMESPACE,
        steps(
            other_namespace,
            lambda s: label_namespace(s, "one"),
            lambda s: s.waiting(affinity=apart(**of_team(s))),
        ),
        lambda side: label_namespace(side, None),
        has_counterpart=False,
    ),
    "tolerates-now": Scenario(
        Wake(0),
        steps(
            lambda s: s.node("a", taints=[{"key": "k", "effect": "NoSchedule"}]),
            lambda s: s.waiting(),
        ),
        lambda side: side.change_pod(
            WAITING, {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}
        ),
    ),
    "labelled-itself": Scenario(
        Wake(0),
        steps(
            lambda s: s.node("a"),
            lambda s: s.pod("there", "a", affinity=apart()),
            lambda s: s.waiting(labels={"app": "x"}),
        ),
        lambda side: side.change_pod(WAITING, {"metadata": {"labels": {"app": "y"}}}),
    ),
    "class-comes": Scenario(
        Wake.CLASS,
        steps(lambda s: s.node("a", annotations=real.devices("g0")), device_pod),
        resource_class,
        has_counterpart=False,
    ),
    "devices-come": Scenario(
        Wake.DEVICES,
        steps(resource_class, lambda s: s.node("a"), device_pod),
        lambda side: side.change_node("a", {"metadata": {"annotations": real.devices("g0")}}),
        has_counterpart=False,
    ),
}
PORT: Json = {"containerPort": 80, "hostPort": 8080}
DISK: Json = {"name": "v", "gcePersistentDisk": {"pdName": "disk"}}
INFEASIBLE: Json = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
