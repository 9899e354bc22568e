"""The state: what is told to whom when pods, nodes and plans change."""

from __future__ import annotations

import json

from msgspec.structs import replace

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.plans import BindingPlan
from dovetail.kube.scheduler.queue import SchedulingQueue, Wake
from dovetail.kube.scheduler.state import ClusterState
from dovetail.podfit.objects import (
    Container,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceClass,
    ResourceRequirements,
)

G0 = (DeviceHolding("g0", 1, "gpu", "main"),)


Log = list[tuple[str, str]]


class LoggedQueue(SchedulingQueue):
    """Writes down what the state puts in."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def offer(self, pod: Pod) -> None:
        self._log.append(("pending", pod.metadata.uid))

    def drop(self, uid: str) -> None:
        self._log.append(("settled", uid))


class LoggedKeys(WorkQueue):
    def __init__(self, log: Log, what: str) -> None:
        super().__init__(what)
        self._log, self._what = log, what

    def add(self, key: str) -> None:
        self._log.append((self._what, key))


class Heard:
    """What came out of a state, on all its ways."""

    def __init__(self) -> None:
        self.log: Log = []
        self.queue = LoggedQueue(self.log)
        self.state = ClusterState(devices_of, self.queue, LoggedKeys(self.log, "over"))
        self.state.catalogue.changed_nodes = LoggedKeys(self.log, "devices")
        self.state.catalogue.changed_classes = LoggedKeys(self.log, "class")

    def since(self) -> tuple[Log, Wake]:
        told = list(self.log)
        self.log.clear()
        changes, self.queue.changes = self.queue.changes, Wake(0)
        return told, changes


def node(*devices: str, label: str = "", version: str = "1", healthy: bool = True) -> Node:
    written = [{"name": name, "kind": "gpu", "healthy": healthy} for name in devices]
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    return Node(
        metadata=ObjectMeta(
            name="n1",
            resource_version=version,
            labels={"label": label},
            annotations={"dovetail.dev/devices": json.dumps(written)},
        ),
        status=NodeStatus(allocatable=amounts, capacity=amounts),
    )


def pod(version: str = "1") -> Pod:
    asked = ResourceRequirements(requests={"resourceclass.dovetail.dev/gpu": "1"})
    return Pod(
        metadata=ObjectMeta(name="p", namespace="ns", uid="p", resource_version=version),
        spec=PodSpec(containers=(Container(name="main", resources=asked),)),
    )


def bound(one: Pod) -> Pod:
    notes = annotations_of("n1", G0)
    return replace(
        one,
        metadata=replace(one.metadata, annotations=notes),
        spec=replace(one.spec, node_name="n1"),
    )


def made() -> tuple[ClusterState, Heard]:
    heard = Heard()
    state = heard.state
    expression = {"key": "Kind", "operator": "Eq", "values": ["gpu"]}
    spec = {"resourceSelector": [{"matchExpressions": [expression]}]}
    state.on_class(None, ResourceClass(metadata=ObjectMeta(name="gpu"), spec=spec))
    state.on_node(None, node("g0", "g1"))
    heard.since()
    return state, heard


def requested(state: ClusterState) -> int:
    return state.inventory.status("gpu").requested


def test_a_pod_that_waits_is_offered_unless_a_plan_is_under_way() -> None:
    state, heard = made()
    state.on_pod(None, pod())
    assert heard.since() == ([("pending", "p")], Wake(0))
    state.assume(BindingPlan(pod(), "n1", G0))
    state.on_pod(pod(), pod("2"))
    assert heard.since() == ([], Wake(0))
    assert state.is_planned("p")
    assert requested(state) == 1


def test_a_plan_is_over_when_the_pod_is_seen_to_be_bound() -> None:
    state, heard = made()
    state.on_pod(None, pod())
    state.assume(BindingPlan(pod(), "n1", G0))
    heard.since()
    state.on_pod(pod(), bound(pod()))
    assert heard.since() == ([("settled", "p")], Wake.PLACED)
    assert not state.is_planned("p")
    assert requested(state) == 1
    assert state.nodes.node_of("p") == "n1"


def test_a_plan_that_is_forgotten_leaves_nothing() -> None:
    state, heard = made()
    state.on_pod(None, pod())
    state.assume(BindingPlan(pod(), "n1", G0))
    heard.since()
    state.forget("p")
    assert heard.since() == ([], Wake.GONE)
    assert requested(state) == 0
    assert state.nodes.node_of("p") is None


def test_forgetting_a_plan_of_a_pod_that_was_bound_leaves_it_there() -> None:
    state, _ = made()
    state.on_pod(None, pod())
    state.assume(BindingPlan(pod(), "n1", G0))
    state.on_pod(pod(), bound(pod()))
    state.forget("p")
    assert requested(state) == 1
    assert state.nodes.node_of("p") == "n1"


def test_a_pod_that_ends_gives_everything_back() -> None:
    state, heard = made()
    state.on_pod(None, bound(pod()))
    heard.since()
    state.on_pod(bound(pod()), None)
    assert heard.since() == ([("settled", "p"), ("over", "p")], Wake.GONE)
    assert requested(state) == 0
    assert state.nodes.node_of("p") is None


def test_a_heartbeat_of_a_node_wakes_nobody() -> None:
    state, heard = made()
    state.on_node(node("g0", "g1"), node("g0", "g1", version="2"))
    assert heard.since() == ([], Wake(0))
    state.on_node(node("g0", "g1"), node("g0", "g1", label="new"))
    assert heard.since() == ([], Wake.NODE)
    state.on_node(node("g0", "g1"), node("g0", label="new"))
    assert heard.since() == ([("devices", "n1")], Wake.DEVICES)
    assert state.take_changed_device_nodes() == {"n1"}
    assert not state.take_changed_device_nodes()


def test_devices_that_cannot_be_read_stay_as_they_were() -> None:
    state, heard = made()
    bad = replace(
        node("g0"), metadata=ObjectMeta(name="n1", annotations={"dovetail.dev/devices": "{"})
    )
    state.on_node(node("g0", "g1"), bad)
    assert heard.since()[0] == []
    assert state.inventory.status("gpu").allocatable == 2


def test_a_held_device_that_falls_ill_and_recovers_is_still_held() -> None:
    state, _ = made()
    state.on_pod(None, bound(pod()))
    state.on_node(node("g0", "g1"), node("g0", "g1", healthy=False))
    assert state.inventory.status("gpu").allocatable == 0
    state.on_node(node("g0", "g1", healthy=False), node("g0", "g1"))
    assert (state.inventory.status("gpu").allocatable, requested(state)) == (2, 1)


def test_a_class_that_cannot_be_read_is_none_and_says_why() -> None:
    state, heard = made()
    bad = ResourceClass(metadata=ObjectMeta(name="gpu"), spec={"resourceSelector": "all"})
    state.on_class(ResourceClass(metadata=ObjectMeta(name="gpu")), bad)
    assert heard.since() == ([("class", "gpu")], Wake(0))
    assert "gpu" not in state.classes
    assert "spec.resourceSelector" in state.catalogue.unreadable["gpu"][0]
