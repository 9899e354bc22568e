"""A plugin's devices are had by class, by ID, and directly, as the kubelet likes: each once.

The node is played here: the agent lists the plugin's devices, tells the kubelet which ones classes
hold and the scheduler which ones the kubelet gave away, each when it gets round to it.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import pytest

from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.scheduler.decide import Choice, Refusal, choice_of
from dovetail.kube.scheduler.plans import BindingPlan
from dovetail.kube.scheduler.pod_requirements import RequirementsCache
from dovetail.podfit.objects import Node, Pod, ResourceClass
from tests.kube.scheduler.world import class_body, empty_state, node_body, pod_body

GPU = "vendor.com/gpu"


def listed(*names: str, kubelet: tuple[str, ...] = (), ill: tuple[str, ...] = ()) -> list[Any]:
    return [
        {
            "name": name,
            "kind": GPU,
            "resource": GPU,
            "id": f"0000:{name}",
            "healthy": name not in kubelet and name not in ill,
            "properties": {"held-by": "kubelet"} if name in kubelet else {},
        }
        for name in names
    ]


def node(devices: list[Any], allocatable: int, name: str = "n1") -> Node:
    return msgspec.convert(node_body(name, devices, plugged={GPU: allocatable}), Node)


def pod(uid: str, *, direct: int = 0, by_class: int = 0) -> Pod:
    asked: dict[str, Any] = {"direct": {GPU: direct}} if direct else {}
    if by_class:
        asked["gpu"] = by_class
    body = pod_body(uid, **asked)
    body["metadata"]["uid"] = uid
    return msgspec.convert(body, Pod)


def bound(one: Pod, choice: Choice) -> Pod:
    notes = annotations_of(choice.node, choice.holdings) if choice.holdings else {}
    body = msgspec.to_builtins(one)
    body["metadata"]["annotations"] = notes
    body["spec"]["nodeName"] = choice.node
    return msgspec.convert(body, Pod)


class Scene:
    """A cluster state, and the pods that were placed by it."""

    def __init__(self, first: Node) -> None:
        self.state = empty_state()
        self.state.on_class(None, msgspec.convert(class_body("gpu", GPU), ResourceClass))
        self.node = first
        self.state.on_node(None, first)
        self._wants = RequirementsCache()

    def tell(self, now: Node) -> None:
        self.state.on_node(self.node, now)
        self.node = now

    def known_with_kubelet(self) -> set[str]:
        return {each.name for each in self.state.devices["n1"] if "held-by" in each.properties}

    def ask(self, one: Pod) -> Choice | Refusal:
        return choice_of(self.state, self._wants.of(one), Strategy.FIRST_FIT)

    def place(self, one: Pod) -> Choice | Refusal:
        found = self.ask(one)
        if isinstance(found, Choice):
            self.state.on_pod(None, one)
            self.state.assume(BindingPlan(one, found.node, found.holdings))
            self.state.on_pod(one, bound(one, found))
        return found


def why(found: Choice | Refusal) -> str:
    assert isinstance(found, Refusal)
    return found.why


def test_where_the_agent_alone_has_the_plugin_nobody_gets_its_devices_directly() -> None:
    scene = Scene(node(listed("g0", "g1"), allocatable=0))
    assert f"Insufficient {GPU}" in why(scene.place(pod("direct", direct=1)))
    assert isinstance(scene.place(pod("classy", by_class=2)), Choice)


def test_what_classes_hold_is_taken_from_the_kubelets_number_once() -> None:
    scene = Scene(node(listed("g0", "g1", "g2"), allocatable=3))
    assert isinstance(scene.place(pod("a", by_class=1)), Choice)
    assert scene.state.nodes.free("n1", GPU) == 2
    # The kubelet has heard of it.
    scene.tell(node(listed("g0", "g1", "g2"), allocatable=2))
    assert scene.state.nodes.free("n1", GPU) == 2
    # One of the others falls ill; the kubelet is late to say so.
    scene.tell(node(listed("g0", "g1", "g2", ill=("g2",)), allocatable=2))
    assert scene.state.nodes.free("n1", GPU) == 1
    scene.tell(node(listed("g0", "g1", "g2", ill=("g2",)), allocatable=1))
    assert scene.state.nodes.free("n1", GPU) == 1


def test_a_device_of_a_class_that_falls_ill_is_nobody_elses_loss() -> None:
    scene = Scene(node(listed("g0", "g1", "g2"), allocatable=3))
    found = scene.place(pod("a", by_class=1))
    assert isinstance(found, Choice)
    (held,) = found.holdings
    scene.tell(node(listed("g0", "g1", "g2", ill=(held.device,)), allocatable=2))
    assert scene.state.nodes.free("n1", GPU) == 2


def test_while_it_is_unknown_which_devices_a_pod_has_classes_get_none() -> None:
    scene = Scene(node(listed("g0", "g1", "g2"), allocatable=3))
    assert isinstance(scene.place(pod("direct", direct=1)), Choice)
    assert "held by pod default/direct" in why(scene.ask(pod("classy", by_class=1)))
    scene.tell(node(listed("g0", "g1", "g2", kubelet=("g0",)), allocatable=3))
    found = scene.place(pod("classy", by_class=2))
    assert isinstance(found, Choice)
    assert {each.device for each in found.holdings} == {"g1", "g2"}
    assert f"Insufficient {GPU}" in why(scene.ask(pod("more", direct=1)))


def test_of_pods_that_are_over_nothing_is_waited_for() -> None:
    scene = Scene(node(listed("g0"), allocatable=1))
    one = pod("direct", direct=1)
    found = scene.place(one)
    assert isinstance(found, Choice)
    scene.state.on_pod(bound(one, found), None)
    assert isinstance(scene.ask(pod("classy", by_class=1)), Choice)


def test_a_pod_cannot_have_them_both_ways() -> None:
    scene = Scene(node(listed("g0", "g1", "g2"), allocatable=3))
    assert "held by the pod itself" in why(scene.ask(pod("both", direct=1, by_class=1)))
    # And nothing stays of the question.
    assert isinstance(scene.ask(pod("one", by_class=3)), Choice)


def test_labels_tell_of_all_devices_and_the_agent_of_one() -> None:
    body = node_body("n1", listed("g0", "g1"))
    body["metadata"]["labels"] = {
        f"{GPU}.memory": "40G",
        "vendor.com.feature.node.kubernetes.io/gpu.link": "nv4",
    }
    written = json.loads(body["metadata"]["annotations"]["dovetail.dev/devices"])
    written[1]["properties"] = {"memory": "80G"}
    body["metadata"]["annotations"]["dovetail.dev/devices"] = json.dumps(written)
    state = empty_state()
    state.on_node(None, msgspec.convert(body, Node))
    told = {each.name: dict(each.properties) for each in state.devices["n1"]}
    link = {"link": "nv4"}
    assert told == {
        "g0": {"memory": "40G", "id": "0000:g0", **link},
        "g1": {"memory": "80G", "id": "0000:g1", **link},
    }


# -- whatever comes and goes -----------------------------------------------------------------------


class PlayedNode:
    """The agent and the kubelet of one node that share a plugin, and what each knows by now."""

    def __init__(self, rng: Random, names: tuple[str, ...]) -> None:
        self._rng, self._names = rng, names
        self.by_class: dict[str, str] = {}
        """By device, the pod that the agent sees it is for."""
        self.direct: dict[str, str] = {}
        """By device, the pod that the kubelet gave it to."""
        self._withheld: frozenset[str] = frozenset()
        """What the kubelet was told that classes have."""
        self._annotated = listed(*names)
        self._allocatable = len(names)

    def node(self) -> Node:
        return node(self._annotated, self._allocatable)

    def kubelet_hears(self) -> None:
        self._withheld = frozenset(self.by_class)

    def kubelet_reports(self) -> None:
        self._allocatable = len(self._names) - len(self._withheld)

    def agent_publishes(self) -> None:
        self._annotated = listed(*self._names, kubelet=tuple(sorted(self.direct)))

    def start(self, uid: str, count: int) -> bool:
        """The kubelet admits a pod that asks directly, with devices of its own choice."""
        free = [each for each in self._names if each not in self._withheld | self.direct.keys()]
        if len(free) < count:
            return False
        chosen = self._rng.sample(free, count)
        # The agent refuses what it knows a class to have; the kubelet fails the pod then.
        if any(each in self.by_class for each in chosen):
            return False
        self.direct |= dict.fromkeys(chosen, uid)
        return True

    def end(self, uid: str) -> None:
        for held in (self.by_class, self.direct):
            for each in [each for each, whose in held.items() if whose == uid]:
                del held[each]


class Play:
    """Pods come and go on a played node, and everybody hears of it sooner or later."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.names = tuple(f"g{number}" for number in range(self.rng.randint(1, 5)))
        self.real = PlayedNode(self.rng, self.names)
        self.scene = Scene(self.real.node())
        self.placed: dict[str, tuple[Pod, int]] = {}
        self._starting: list[str] = []
        self._number = 0

    def step(self) -> None:
        acts = (
            *(self.real.kubelet_hears, self.real.kubelet_reports, self.real.agent_publishes),
            *(self.hear, self.hear, self.come, self.come, self.start, self.start, self.go),
        )
        self.rng.choice(acts)()

    def hear(self) -> None:
        self.scene.tell(self.real.node())

    def settle(self) -> None:
        while self._starting:
            self.start()
        self.real.kubelet_hears()
        self.real.kubelet_reports()
        self.real.agent_publishes()
        self.hear()

    def come(self) -> None:
        self._number += 1
        uid, units = f"p{self._number}", self.rng.randint(1, 2)
        direct = self.rng.random() < 0.5
        one = pod(uid, direct=units) if direct else pod(uid, by_class=units)
        found = self.scene.place(one)
        if isinstance(found, Refusal):
            return
        chosen = {each.device for each in found.holdings}
        assert not chosen & self.real.by_class.keys(), "given by class twice"
        if chosen & self.real.direct.keys():
            # The agent refuses the pod. That can only be if somebody who had such devices ended,
            # and somebody else came, between two words of the agent.
            assert self.scene.known_with_kubelet() - self.real.direct.keys()
            self.scene.state.on_pod(bound(one, found), None)
            return
        self.placed[uid] = bound(one, found), units
        if direct:
            self._starting.append(uid)
        self.real.by_class |= dict.fromkeys(chosen, uid)

    def start(self) -> None:
        if self._starting:
            uid = self._starting.pop(0)
            if not self.real.start(uid, self.placed[uid][1]):
                self.leave(uid)

    def go(self) -> None:
        started = sorted(self.placed.keys() - set(self._starting))
        if started:
            self.leave(self.rng.choice(started))

    def leave(self, uid: str) -> None:
        one, _ = self.placed.pop(uid)
        self.real.end(uid)
        self.scene.state.on_pod(one, None)

    @property
    def left(self) -> int:
        return len(self.names) - sum(units for _, units in self.placed.values())


@pytest.mark.parametrize("seed", range(200))
def test_pods_of_both_sorts_never_have_one_device_nor_more_than_there_are(seed: int) -> None:
    play = Play(seed)
    for _ in range(60):
        play.step()
        assert play.left >= 0
    play.settle()
    # And nobody is refused what is left, once everybody knows.
    for units in (1, 2):
        fits = play.left >= units
        assert isinstance(play.scene.ask(pod("x", direct=units)), Choice) == fits
        assert isinstance(play.scene.ask(pod("x", by_class=units)), Choice) == fits
