"""Stranding: with the pins of a plan no scheduler leaves a pod without a node, whatever its order.

The scheduler of these tests is the worst there is: pods come in every order, and each goes to every
node that would take it.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.intents.hpa.answer import hpa_answer
from dovetail.intents.hpa.placement import ClusterPlacement
from tests.intents.hpa.brute import BruteCluster, BrutePod, Options
from tests.intents.hpa.building import (
    Asked,
    app,
    cluster,
    consumer,
    fleet,
    group,
    needing,
    needs,
    node,
    workload,
)
from tests.intents.hpa.worlds import World

State = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""How many pods of each kind are to come, and how many of each are on each node."""


class WorstScheduler:
    def __init__(self, brute: BruteCluster, kinds: list[tuple[BrutePod, int]]) -> None:
        self._brute, self._kinds = brute, kinds
        self._free = [brute.free(each) for each in brute.cluster.nodes]
        self._seen: set[State] = set()

    def can_strand(self) -> bool:
        nothing = tuple((0,) * len(self._kinds) for _ in self._free)
        return self._from((tuple(count for _, count in self._kinds), nothing))

    def _from(self, state: State) -> bool:
        if state in self._seen:
            return False
        self._seen.add(state)
        left, there = state
        for kind, count in enumerate(left):
            if not count:
                continue
            nodes = [at for at in self._kinds[kind][0].nodes if self._takes(kind, at, there[at])]
            if not nodes:
                return True
            less = tuple(number - (at == kind) for at, number in enumerate(left))
            for node_at in nodes:
                now = tuple(
                    tuple(n + (at == kind) for at, n in enumerate(on)) if place == node_at else on
                    for place, on in enumerate(there)
                )
                if self._from((less, now)):
                    return True
        return False

    def _takes(self, kind: int, at: int, there: tuple[int, ...]) -> bool:
        pod = self._kinds[kind][0]
        for resource, amount in pod.amounts.items():
            used = sum(
                self._kinds[other][0].amounts.get(resource, 0) * count
                for other, count in enumerate(there)
            )
            if amount and self._free[at].get(resource, 0) - used < amount:
                return False
        return not any(
            count and one.labels == pod.labels and (one.keeps_apart or pod.keeps_apart)
            for (one, _), count in zip(self._kinds, there, strict=True)
        )


def kinds_of(brute: BruteCluster, placement: ClusterPlacement) -> list[tuple[BrutePod, int]]:
    """As they come out of manifests: labels that are options bind nobody, pins and fabrics do."""
    names = [each.node.metadata.name for each in brute.cluster.nodes]
    found = []
    for app_placed in placement.apps:
        granted: Options = frozenset(
            (app_placed.app, one.consumer, one.requirement)
            for one in app_placed.options
            if one.granted
        )
        for placed in app_placed.workloads:
            pods = brute.written_pods(app_placed.app, placed.name, granted)
            allowed = set(names)
            if placed.pin is not None:
                allowed &= set(placed.pin.nodes)
            for key, value in placed.fabrics.items():
                allowed &= {
                    name
                    for name, each in zip(names, brute.cluster.nodes, strict=True)
                    if each.node.metadata.labels.get(key) == value
                }
            for pod in pods:
                pod.nodes = [at for at in pod.nodes if names[at] in allowed]
                found.append((pod, 1))
    return merged(found)


def merged(pods: list[tuple[BrutePod, int]]) -> list[tuple[BrutePod, int]]:
    """Pods that are the same as one kind."""
    found: list[tuple[BrutePod, int]] = []
    for pod, count in pods:
        for at, (other, known) in enumerate(found):
            if other == pod:
                found[at] = (other, known + count)
                break
        else:
            found.append((pod, count))
    return found


@given(st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_no_pod_is_stranded_unless_it_is_told(seed: int) -> None:
    world = World(seed)
    found = hpa_answer(world.group, fleet(world.cluster))
    brute = BruteCluster(world.group, world.cluster)
    placement = found.placement(world.cluster.name, [each.name for each in world.group.apps])
    if placement is not None and not placement.unproved:
        assert not WorstScheduler(brute, kinds_of(brute, placement)).can_strand(), seed


def test_who_is_in_nobodys_way_is_not_pinned() -> None:
    small, large = needing("small", needs("cpu", 1)), needing("large", needs("cpu", 4))
    asked = Asked([large, small], cluster("c1", node("n1", cpu=5), node("n2", cpu=1)))
    placed = asked.hpa.placement("p1+c1", ("large", "small"))
    assert placed is not None
    assert [each.pin for one in placed.apps for each in one.workloads] == [None, None]


def test_several_that_could_come_are_pinned_each_where_it_is_planned() -> None:
    apps = [
        needing("large", needs("cpu", 4)),
        needing("one", needs("cpu", 1)),
        needing("two", needs("cpu", 1)),
    ]
    asked = Asked(apps, cluster("c1", node("n1", cpu=4), node("n2", cpu=2)))
    placed = asked.hpa.placement("p1+c1", ("large", "one", "two"))
    assert placed is not None
    pins = {each.name: each.pin for one in placed.apps for each in one.workloads}
    assert pins["large"] is None
    assert pins["one"] is not None
    assert pins["two"] is not None
    assert pins["one"].nodes == pins["two"].nodes == ("n2",)
    assert placed.unproved == ()


def test_replicas_that_keep_apart_need_no_pins() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = needing("a", needs("cpu", 1), replicas=3, affinity={"podAntiAffinity": required})
    asked = Asked([spread], cluster("c1", *(node(f"n{at}") for at in range(3))))
    placed = asked.hpa.placement("p1+c1", ("a",))
    assert placed is not None
    assert placed.apps[0].workloads[0].pin is None
    assert placed.unproved == ()


def test_what_pins_cannot_mend_is_told() -> None:
    """Each node takes one pod of each; two of the same on one node leave no room for the others."""
    one, two = workload("one", replicas=2), workload("two", replicas=2)
    both = app(
        "a", one, two, consumers=[consumer(one, needs("cpu", 2)), consumer(two, needs("cpu", 3))]
    )
    asked = Asked([both], cluster("c1", node("n1", cpu=5), node("n2", cpu=5)))
    placed = asked.hpa.placement("p1+c1", ("a",))
    assert placed is not None
    assert "a/two" in placed.unproved


def test_everything_is_pinned_where_that_is_asked_for() -> None:
    small = needing("a", needs("cpu", 1))
    asked = Asked(group(small, pin_nodes=True), cluster("c1", node("n1"), node("n2")))
    pinned = asked.hpa.placement("p1+c1", ("a",))
    assert pinned is not None
    (placed,) = pinned.apps[0].workloads
    assert placed.pin is not None
    assert placed.pin.nodes == tuple(placed.nodes)
    assert placed.pin.why == "pin: nodes is asked for"
