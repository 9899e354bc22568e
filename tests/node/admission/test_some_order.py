"""Thousands of pods come and go at once, over real sockets: as if they had taken turns.

The journal of the CPU plugin tells in which order pods were decided on. The same pods in that
order, one after the other on plugins that are called directly, must fare the same.
"""

from __future__ import annotations

import asyncio
import tempfile
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.hints.policy import TopologyPolicy
from dovetail.node.plugins.common.serving import RolePlugin
from dovetail.node.plugins.cpu.state import CpuHolding
from dovetail.node.plugins.memory.state import MemoryHolding
from dovetail.node.wire.resource_plugin import ContainerType
from tests.node.admission.shipped import (
    OWN,
    TWICE_EIGHT,
    ShippedNode,
    at_sockets,
    configured,
    shipped,
)
from tests.support.node.fakes import container, pod

ARRIVALS, AT_ONCE = 220, 12
"""Of each policy and scope; pods that come and go side by side."""
GI = 2**30
CPUS_OF_A_NODE, GI_OF_A_NODE = 8, 64


class Event(NamedTuple):
    kind: str
    """admit or end."""
    uid: str


class Fate(NamedTuple):
    """What became of a pod: why it was refused, or what its containers have."""

    refused: str
    cpus: dict[str, str]
    memory: dict[str, str]


def a_pod(uid: str, random: Random) -> Pod:
    """Of one to three containers, one of which may be over before the others start."""

    def wants() -> dict[str, Any]:
        found: dict[str, Any] = {"cpu": random.choice([1, 2, 3, 4, 5, 6, 9, "1.5"])}
        if random.random() < 0.6:
            found["memory"] = random.choice([4, 20, 40, 70]) * GI
        return found

    containers = [container("main", 0, **wants())]
    if random.random() < 0.3:
        containers.append(container("side", 1, type=ContainerType.SIDECAR, **wants()))
    if random.random() < 0.2:
        containers.insert(0, container("prepare", 0, type=ContainerType.INIT, **wants()))
    return pod(uid, *containers, annotations={"kubernetes.io/pod-role": "own"})


def journal_of(plugin: RolePlugin[Any]) -> list[Event]:
    """Filled as the plugin is called: with pods to be admitted, and pods that it is to forget."""
    found: list[Event] = []

    def noting(method: str, kind: str) -> None:
        handler = getattr(plugin, method)

        async def noted(request: Any) -> Any:
            found.append(Event(kind, request.pod_uid))
            return await handler(request)

        setattr(plugin, method, noted)

    for method in ("get_topology_hints", "get_pod_topology_hints", "allocate"):
        noting(method, "admit")
    noting("remove_pod", "end")
    return found


class Crowd:
    """Pods that come and go."""

    def __init__(self, node: ShippedNode, seed: str) -> None:
        self.node, self.random = node, Random(seed)
        self.pods = [a_pod(f"pod-{number}", self.random) for number in range(ARRIVALS)]
        self.fates: dict[str, Fate] = {}
        self.coming = iter(self.pods)

    async def all_of_them(self) -> None:
        await asyncio.gather(*(self.some() for _ in range(AT_ONCE)))

    async def some(self) -> None:
        there: list[str] = []
        for each in self.coming:
            self.fates[each.uid] = await fate_of(self.node, each)
            if not self.fates[each.uid].refused:
                there.append(each.uid)
            while there and self.random.random() < 0.6:
                await self.node.end(there.pop(self.random.randrange(len(there))))


async def fate_of(node: ShippedNode, one: Pod) -> Fate:
    try:
        await node.admit(one)
    except AdmissionRejected as error:
        return Fate(error.reason, {}, {})
    return Fate("", node.held(one.uid), node.held(one.uid, "memory"))


async def in_turn(
    order: list[Event], pods: dict[str, Pod], configuration: AdmissionConfiguration
) -> tuple[dict[str, Fate], ShippedNode]:
    """The same, one after the other."""
    fates: dict[str, Fate] = {}
    with tempfile.TemporaryDirectory() as directory:
        plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
        node = ShippedNode(Path(directory), plugins, configuration)
        for kind, uid in order:
            if kind == "admit":
                fates[uid] = await fate_of(node, pods[uid])
            else:
                await node.end(uid)
    return fates, node


def order_of(journal: list[Event], fates: dict[str, Fate]) -> list[Event]:
    """When each was decided on; that one who was refused is taken back is part of that."""
    seen = dict.fromkeys(journal)
    return [each for each in seen if each.kind == "admit" or not fates[each.uid].refused]


class Rules:
    """What the policy asks of whoever has something of its own, as nodes it may be on."""

    def __init__(self, configuration: AdmissionConfiguration) -> None:
        self.scope, self.policy = configuration.scope, configuration.policy
        self.pods: dict[str, Pod] = {}

    def broken(self, cpus: Any, memory: Any) -> list[str]:
        """Pods, or containers, that are on more nodes than they may."""
        nodes: dict[str, set[int]] = {}
        for each in (*cpus, *memory):
            who = each.pod if self.scope is Scope.POD else f"{each.pod}/{each.container}"
            own = each.nodes if isinstance(each, MemoryHolding) else nodes_of(each)
            nodes.setdefault(who, set()).update(own)
        return [who for who, own in nodes.items() if len(own) > self.most(*who.split("/"))]

    def most(self, uid: str, name: str = "") -> int:
        if self.policy is TopologyPolicy.SINGLE_NUMA_NODE:
            return 1
        if self.policy is not TopologyPolicy.RESTRICTED:
            return len(TWICE_EIGHT.nodes)
        cpus, memory = (self.asked(uid, name, each) for each in ("cpu", "memory"))
        return max(-(-cpus // CPUS_OF_A_NODE), -(-memory // (GI_OF_A_NODE * GI)))

    def asked(self, uid: str, name: str, resource: str) -> int:
        """By a container, or by the pod: init containers are over before the others start."""
        chosen = [each for each in self.pods[uid].containers if name in ("", each.name)]
        init = [each.type is ContainerType.INIT for each in chosen]
        amounts = [each.requests.get(resource, Fraction()) for each in chosen]
        rest = sum((each for each, over in zip(amounts, init, strict=True) if not over), Fraction())
        return int(max([rest, *(each for each, over in zip(amounts, init, strict=True) if over)]))


def nodes_of(holding: CpuHolding) -> CpuSet:
    return TWICE_EIGHT.nodes_of(holding.cpus)


def oversold(cpus: Any, memory: Any) -> list[str]:
    """What two pods have, or more than there is. Init containers leave theirs to their pod."""
    owners: dict[int, set[str]] = {}
    for each in cpus:
        for cpu in each.cpus:
            owners.setdefault(cpu, set()).add(each.pod)
    found = [f"CPU {cpu}: {pods}" for cpu, pods in owners.items() if len(pods) > 1]
    for node in TWICE_EIGHT.node_ids:
        used = sum(each.given["memory"].get(node, 0) for each in memory if each.given)
        init = sum(each.given["memory"].get(node, 0) for each in memory if each.given and each.init)
        if used - init > GI_OF_A_NODE * GI:
            found.append(f"node {node}: {used - init}")
    return found


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("policy", TopologyPolicy)
async def test_it_is_as_if_they_had_taken_turns(policy: TopologyPolicy, scope: Scope) -> None:
    configuration = configured(policy, scope=scope)
    plugins = shipped(TWICE_EIGHT, OWN, ("cpu", "memory"))
    journal = journal_of(plugins["cpu"])
    wrong: list[str] = []
    rules = Rules(configuration)
    for plugin in plugins.values():
        _checked(plugin, plugins, rules, wrong)
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as directory:
        async with at_sockets(Path(directory), plugins, configuration) as node:
            crowd = Crowd(node, seed=f"{policy} {scope}")
            rules.pods = {each.uid: each for each in crowd.pods}
            await crowd.all_of_them()
    assert not wrong
    order = order_of(journal, crowd.fates)
    fates, replayed = await in_turn(order, rules.pods, configuration)
    assert fates == crowd.fates
    for resource, plugin in plugins.items():
        assert replayed.plugins[resource].state == plugin.state
    admitted = [each for each in fates.values() if not each.refused]
    assert ARRIVALS // 8 < len(admitted) < ARRIVALS, "some fit, some do not"


def _checked(
    plugin: RolePlugin[Any],
    plugins: dict[str, RolePlugin[Any]],
    rules: Rules,
    wrong: list[str],
) -> None:
    """After each change of what is held, whoever breaks the policy is noted."""
    keep = plugin.keep

    def kept(state: Any) -> None:
        keep(state)
        held = [plugins[each].state.holdings for each in ("cpu", "memory")]
        wrong.extend([*rules.broken(*held), *oversold(*held)])

    plugin.keep = kept  # type: ignore[method-assign]
