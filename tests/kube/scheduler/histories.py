"""Random histories of a cluster, told to a cluster state event by event, as informers would."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.resource_claims import OURS, ResourceClaim
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.queue import SchedulingQueue
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import KubeObject, Namespace, Node, Pod, ResourceClass, ResourceSlice
from tests.podfit import worlds

PREFIX = "resourceclass.dovetail.dev/"
NODES = tuple(f"node-{number}" for number in range(5))
PODS = tuple(f"pod-{number}" for number in range(9))
CLASSES = ("any", "large", "slotted", "pool")
CONSUMERS = (*PODS, "foreign")
KINDS = (Namespace, ResourceClass, ResourceSlice, ResourceClaim, Node, Pod)
DRIVER = "d.example.com"

Ledger = dict[str, dict[str, dict[str, int]]]
"""By node, device and consumer."""


class History:
    """A cluster as it is, and a state that was told of every change since the beginning."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.queue = SchedulingQueue()
        self.state = ClusterState(devices_of, self.queue, WorkQueue("releases"))
        self.there: dict[type[KubeObject], dict[str, Any]] = {kind: {} for kind in KINDS}
        self.ledger: Ledger = {}
        for name, labels in worlds.NAMESPACES.items():
            self.put(made(Namespace, name, labels=labels))

    def fresh(self) -> ClusterState:
        """A state that is told of all there is now, the ledger first."""
        found = ClusterState(devices_of, SchedulingQueue(), WorkQueue("releases"))
        found.on_ledger(self.ledger)
        for kind in KINDS:
            for each in self.there[kind].values():
                tell(found, kind, None, each)
        return found

    def put(self, new: Any) -> None:
        old = self.there[type(new)].get(new.metadata.name)
        self.there[type(new)][new.metadata.name] = new
        tell(self.state, type(new), old, new)

    def drop(self, kind: type[KubeObject], name: str) -> None:
        old = self.there[kind].pop(name, None)
        if old is not None:
            tell(self.state, kind, old, None)

    def step(self) -> str:
        """Something happens; what it was."""
        events = (
            ("node", self.node, 4),
            ("node gone", self.node_gone, 2),
            ("pod", self.pod, 6),
            ("pod changed", self.pod_changed, 5),
            ("pod gone", self.pod_gone, 3),
            ("namespace", self.namespace, 2),
            ("class", self.resource_class, 2),
            ("class gone", lambda: self.drop(ResourceClass, self._rng.choice(CLASSES)), 1),
            ("slice", self.slice, 1),
            ("resource claim", self.resource_claim, 2),
            ("ledger", self.claim, 2),
        )
        names, calls, weights = zip(*events, strict=True)
        (chosen,) = self._rng.choices(range(len(names)), weights)
        calls[chosen]()
        return str(names[chosen])

    def node(self) -> None:
        rng, name = self._rng, self._rng.choice(NODES)
        body = worlds.node(rng, name)
        made = rng.choice((a_device, of_plugin))
        written = [made(rng, number) for number in range(rng.randint(0, 3))]
        body["metadata"]["annotations"] = {"dovetail.dev/devices": json.dumps(written)}
        self.put(msgspec.convert(body, Node))

    def node_gone(self) -> None:
        self.drop(Node, self._rng.choice(NODES))

    def pod(self) -> None:
        """A pod is bound, by whomever."""
        rng, uid = self._rng, self._rng.choice(PODS)
        if uid in self.there[Pod]:
            return
        pod = a_pod(rng, uid, rng.choice(NODES))
        if rng.random() < 0.3:
            pod = with_class(pod, rng.choice(CLASSES))
            held = DeviceHolding(f"d{rng.randint(0, 2)}", 1, class_of(pod), "c0")
            notes = annotations_of(pod.spec.node_name, (held,))
            pod = replace(pod, metadata=replace(pod.metadata, annotations=notes))
        self.put(pod)

    def pod_changed(self) -> None:
        rng = self._rng
        if not self.there[Pod]:
            return
        pod = self.there[Pod][rng.choice(sorted(self.there[Pod]))]
        match rng.choice(("labels", "leaving", "resized", "infeasible", "annotations")):
            case "labels":
                labels = {
                    key: rng.choice(worlds.VALUES) for key in worlds.KEYS if rng.random() < 0.6
                }
                self.put(replace(pod, metadata=replace(pod.metadata, labels=labels)))
            case "leaving":
                meta = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                self.put(replace(pod, metadata=meta))
            case "annotations":
                self.put(replace(pod, metadata=replace(pod.metadata, annotations={})))
            case change:
                self.put(resized(pod, rng, infeasible=change == "infeasible"))

    def pod_gone(self) -> None:
        uid = self._rng.choice(PODS)
        if uid in self.there[Pod] and self._rng.random() < 0.3:
            pod = self.there[Pod][uid]
            tell(self.state, Pod, pod, replace(pod, status=replace(pod.status, phase="Failed")))
            del self.there[Pod][uid]
        else:
            self.drop(Pod, uid)

    def namespace(self) -> None:
        rng, name = self._rng, self._rng.choice(tuple(worlds.NAMESPACES))
        labels = rng.choice(({}, {"team": "a"}, {"team": "b"}))
        self.put(made(Namespace, name, labels=labels))

    def resource_class(self) -> None:
        name = self._rng.choice(CLASSES)
        self.put(made(ResourceClass, name, spec=class_spec(name)))

    def slice(self) -> None:
        rng, node = self._rng, self._rng.choice(NODES)
        if rng.random() < 0.4:
            self.drop(ResourceSlice, f"slice-{node}")
            return
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"s{number}"} for number in range(rng.randint(1, 2))]
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
        self.put(made(ResourceSlice, f"slice-{node}", spec=spec))

    def resource_claim(self) -> None:
        """Of kube-scheduler, or of ours for one of the pods; with devices, or without."""
        rng, pod = self._rng, self._rng.choice(PODS)
        is_ours = rng.random() < 0.5
        name = f"claim-{pod}" if is_ours else f"claim-{rng.randint(0, 3)}"
        if rng.random() < 0.3:
            self.drop(ResourceClaim, name)
            return
        node = rng.choice(NODES)
        results = [
            {"driver": DRIVER, "pool": node, "device": f"s{number}"}
            for number in range(rng.randint(0, 2))
        ]
        status = {"allocation": {"devices": {"results": results}}} if results else {}
        meta: dict[str, Any] = {"name": name, "uid": f"uid of {name}"}
        if is_ours:
            owner = {"kind": "Pod", "name": "any", "uid": pod, "controller": True}
            meta |= {"labels": {OURS: "true"}, "ownerReferences": [owner]}
        self.put(msgspec.convert({"metadata": meta, "status": status}, ResourceClaim))

    def claim(self) -> None:
        rng, node = self._rng, self._rng.choice(NODES)
        here: dict[str, dict[str, int]] = {}
        for number in range(rng.randint(0, 2)):
            here[f"d{number}"] = {rng.choice(CONSUMERS): 1}
        self.ledger[node] = here
        self.state.on_ledger({node: here})


def tell(state: ClusterState, kind: type[KubeObject], old: Any, new: Any) -> None:
    handlers = {
        Namespace: state.on_namespace,
        ResourceClass: state.on_class,
        ResourceSlice: state.on_slice,
        ResourceClaim: state.on_resource_claim,
        Node: state.on_node,
        Pod: state.on_pod,
    }
    handlers[kind](old, new)  # type: ignore[operator]


def made(kind: type[KubeObject], name: str, **about: Any) -> Any:
    labels = about.pop("labels", {})
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, **about}, kind)


def a_device(rng: Random, number: int) -> dict[str, Any]:
    properties = {"mem": rng.choice(("10G", "40G"))} if rng.random() < 0.6 else {}
    return {
        "name": f"d{number}",
        "kind": rng.choice(("gpu", "nic")),
        "units": rng.randint(1, 2),
        "healthy": rng.random() < 0.85,
        "properties": properties | ({"slot": "1"} if rng.random() < 0.3 else {}),
    }


def of_plugin(rng: Random, number: int) -> dict[str, Any]:
    """A device that a plugin has, by ID; the kubelet may have given it to somebody."""
    with_kubelet = rng.random() < 0.4
    return {
        "name": f"d{number}",
        "kind": worlds.GPU,
        "healthy": not with_kubelet and rng.random() < 0.85,
        "properties": {"held-by": "kubelet"} if with_kubelet else {},
        "resource": worlds.GPU,
        "id": f"GPU:{number}",
    }


def class_spec(name: str) -> dict[str, Any]:
    wanted: dict[str, dict[str, Any]] = {
        "any": {"key": "Kind", "operator": "In", "values": ["gpu", "nic"]},
        "large": {"key": "mem", "operator": "GtEq", "values": ["30G"]},
        "slotted": {"key": "slot", "operator": "Exists"},
        "pool": {"key": "Kind", "operator": "In", "values": [worlds.GPU]},
    }
    return {"resourceSelector": [{"matchExpressions": [wanted[name]]}]}


def a_pod(rng: Random, uid: str, node: str | None = None) -> Pod:
    pod = worlds.a_pod(worlds.pod(rng, uid, node))
    return replace(pod, spec=replace(pod.spec, scheduler_name="dovetail"))


def with_class(pod: Pod, name: str) -> Pod:
    """Asks for one of the class, besides."""
    first, *rest = pod.spec.containers
    asked = {f"{PREFIX}{name}": "1"}
    resources = replace(
        first.resources,
        requests=first.resources.requests | asked,
        limits=first.resources.limits | asked,
    )
    containers = (replace(first, resources=resources), *rest)
    return replace(pod, spec=replace(pod.spec, containers=containers))


def class_of(pod: Pod) -> str:
    names = (name for each in pod.spec.containers for name in each.resources.requests)
    return next(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))


def resized(pod: Pod, rng: Random, *, infeasible: bool) -> Pod:
    """The kubelet tells what containers have now, which may be more than they ask for."""
    has = [
        {
            "name": each.name,
            "resources": {"requests": {"cpu": rng.choice(("100m", "1", "2"))}},
            "allocatedResources": {"cpu": rng.choice(("100m", "1"))},
        }
        for each in pod.spec.containers
        if "cpu" in each.resources.requests
    ]
    never = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    status = {"containerStatuses": has, "conditions": [never] if infeasible else []}
    return replace(pod, status=msgspec.convert(status, type(pod.status)))
