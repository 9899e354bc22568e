"""Pods that come at once are decided on one after the other, whatever a plugin does meanwhile."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.node.admission.configuration import Outage, Scope
from dovetail.node.admission.turns import PATIENCE_SECONDS, Turns
from dovetail.node.common.ports import AdmissionRejected, PluginError, PluginFailure
from dovetail.node.state.pod_state import PodState
from dovetail.node.topology import synthetic
from dovetail.node.wire.resource_plugin import ALLOCATE, ContainerType, ResourceRequest
from tests.node.admission.shipped import (
    OWN,
    TWICE_EIGHT,
    at_sockets,
    configured,
    nodes_of,
    shipped,
)
from tests.node.registry.rig import Pinner
from tests.support.loops import eventually
from tests.support.node.fakes import TWO_NODES, FakePlugin, Node, Pieces, container, pod, sandbox

DEADLINE_SECONDS = 10.0
ROLE: dict[str, Any] = {"annotations": {"kubernetes.io/pod-role": "own"}}


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("policy", ["single-numa-node", "restricted"])
async def test_two_pods_at_once_are_on_one_node_each(policy: str, scope: Scope) -> None:
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as directory:
        plugins = shipped(TWICE_EIGHT, OWN)
        async with at_sockets(Path(directory), plugins, configured(policy, scope=scope)) as node:
            pods = [pod(each, container(cpu=5), **ROLE) for each in "ab"]
            await asyncio.gather(*map(node.admit, pods))
            given = [node.held(each)["main"] for each in "ab"]
    assert sorted(given) == ["0-4", "8-12"]
    assert all(len(nodes_of(TWICE_EIGHT, each)) == 1 for each in given)


async def test_of_two_pods_that_exclude_each_other_one_is_admitted() -> None:
    """Not neither: each had a container in, and no room for the second."""
    machine = synthetic(sockets=1, cores=8, threads=1)
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as directory:
        configuration = configured("single-numa-node", machine)
        async with at_sockets(Path(directory), shipped(machine, OWN), configuration) as node:
            pods = [
                pod(
                    each,
                    container(cpu=4),
                    container("second", 1, cpu=4, type=ContainerType.SIDECAR),
                    **ROLE,
                )
                for each in "abcd"
            ]
            results = await asyncio.gather(*map(node.admit, pods), return_exceptions=True)
            assert len(node.holders()) == 1
    rejected = [each for each in results if each is not None]
    assert [type(each) for each in rejected] == [AdmissionRejected] * 3


class Slow(FakePlugin):
    """Answers after so many seconds, if that is within the deadline."""

    def __init__(self, resource: str, seconds: float) -> None:
        super().__init__(resource)
        self.seconds = seconds

    async def call(self, method: Any, question: Any) -> Any:
        await asyncio.sleep(min(self.seconds, DEADLINE_SECONDS))
        if self.seconds > DEADLINE_SECONDS:
            raise PluginError(self.resource, PluginFailure.TIMEOUT, "no answer")
        return question


class TestTurns:
    """With a clock that jumps, so times are exact."""

    pytestmark = pytest.mark.virtual_time

    def setup_method(self) -> None:
        self.turns, self.done = Turns(), dict[str, float]()

    async def decide(self, name: str, after: float, *plugins: FakePlugin) -> None:
        """Come after so many seconds, and ask these plugins one after the other."""
        await asyncio.sleep(after)
        async with self.turns.taken(each.resource for each in plugins) as turn:
            try:
                for each in plugins:
                    await turn.call(each, ALLOCATE, ResourceRequest())
            except PluginError:
                name = f"not {name}"
            self.done[name] = round(asyncio.get_running_loop().time() - self.began, 3)

    async def all_of(self, *deciding: Any) -> dict[str, float]:
        """When each had decided, in seconds from now."""
        self.began = asyncio.get_running_loop().time()
        await asyncio.gather(*deciding)
        return self.done

    async def test_are_taken_in_order_of_arrival(self) -> None:
        cpu, nic = Slow("cpu", 1), Slow("nic", 1)
        assert await self.all_of(
            self.decide("a", 0, cpu, nic),
            self.decide("b", 0.1, cpu),
            self.decide("c", 0.2, nic),
            self.decide("d", 0.3, cpu, nic),
            self.decide("e", 0.4, cpu),
        ) == {"a": 2, "b": 3, "c": 3, "d": 5, "e": 6}

    async def test_who_needs_no_plugin_of_others_does_not_wait(self) -> None:
        found = await self.all_of(
            self.decide("a", 0, Slow("nic", 9)), self.decide("b", 0.5, Slow("cpu", 1))
        )
        assert found == {"b": 1.5, "a": 9}

    async def test_a_slow_plugin_is_waited_for_while_nobody_else_must(self) -> None:
        slow = Slow("nic", 9)
        found = await self.all_of(self.decide("a", 0, slow), self.decide("b", 1, slow))
        assert found == {"a": 9, "b": 18}

    async def test_one_that_hangs_costs_others_the_patience_once(self) -> None:
        cpu, hanging = Slow("cpu", 0.1), Slow("nic", 60)
        found = await self.all_of(
            *(self.decide(str(number), 0, cpu, hanging) for number in range(3)),
            self.decide("b", 0.5, cpu),
            self.decide("c", 0.6, cpu),
            self.decide("d", 5, cpu),
        )
        assert found == {
            "not 0": PATIENCE_SECONDS + 0.1,
            "b": PATIENCE_SECONDS + 0.2,
            "c": PATIENCE_SECONDS + 0.3,
            "not 1": 5,
            "d": 5.1,
            "not 2": 15.2,
        }

    async def test_who_waits_elsewhere_is_not_held_up(self) -> None:
        """The third waits for the second, not for the first, who may take its time."""
        cpu = Slow("cpu", 3)
        found = await self.all_of(
            self.decide("a", 0, Slow("nic", 9)),
            self.decide("b", 0, cpu),
            self.decide("c", 1, cpu),
        )
        assert found == {"b": 3, "c": 6, "a": 9}

    async def test_who_waits_behind_one_who_waits_is(self) -> None:
        """The second keeps the CPUs while it waits for the NIC."""
        cpu, hanging = Slow("cpu", 0.1), Slow("nic", 60)
        found = await self.all_of(
            self.decide("a", 0, hanging),
            self.decide("b", 0.1, cpu, hanging),
            self.decide("c", 0.2, cpu),
        )
        assert found == {"not a": 2, "c": 2.1, "not b": 12.2}

    async def test_a_plugin_that_answers_again_is_trusted(self) -> None:
        cpu, slow = Slow("cpu", 0.1), Slow("nic", 60)
        await self.all_of(self.decide("a", 0, cpu, slow), self.decide("b", 0, cpu))
        slow.seconds, self.done = 1.5, {}
        await self.all_of(self.decide("c", 0, slow))
        found = await self.all_of(self.decide("d", 0, cpu, slow), self.decide("e", 0.2, cpu))
        assert found == {"c": 1.5, "d": 1.6, "e": 1.7}

    async def test_who_gives_up_waiting_is_in_nobodys_way(self) -> None:
        cpu = Slow("cpu", 1)
        waiting = asyncio.create_task(self.decide("b", 0.1, cpu))
        asyncio.get_running_loop().call_later(0.5, waiting.cancel)
        found = await self.all_of(self.decide("a", 0, cpu), self.decide("c", 0.2, cpu))
        assert found == {"a": 1, "c": 2}


class Hanging(Pieces):
    """Allocates nothing, ever; forgets nothing either."""

    async def call(self, method: Any, question: Any) -> Any:
        if method.name in ("Allocate", "RemovePod"):
            await asyncio.sleep(600)
        return await super().call(method, question)


def a_node(
    directory: Path, plugins: Iterable[FakePlugin], outage: Outage, wait: float = 0.3
) -> Node:
    configuration = msgspec.structs.replace(TWO_NODES, outage=outage, outage_wait=wait)
    pods = [pod("both", container(cpu=1, gpu=1)), pod("cpu", container(cpu=1))]
    return Node(directory, [*plugins], pods, configuration, patience=0.1)


async def test_at_its_socket_it_is_not_waited_for_either() -> None:
    """The question is cancelled, which must not end the turn, nor look as if the plugin went."""
    hanging = Pinner("gpu")
    both = msgspec.structs.replace(pod("both", container(cpu=5, gpu=1), **ROLE), name="hang")
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as directory:
        async with at_sockets(
            Path(directory),
            shipped(TWICE_EIGHT, OWN),
            configured("single-numa-node"),
            hanging,
            patience=0.1,
        ) as node:
            admitting = asyncio.create_task(node.admit(both))
            await eventually(lambda: hanging.asked)
            await node.admit(pod("cpu", container(cpu=5), **ROLE))
            with pytest.raises(AdmissionRejected, match="no answer yet") as caught:
                await admitting
            assert caught.value.reason == "plugin_timeout"
            assert node.held("cpu") == {"main": "0-4"}, "what was taken back was there to be had"
            assert node.holders() == {"cpu"}


@pytest.mark.parametrize("outage", [Outage.REJECT, Outage.RETRY, Outage.FAIL_OPEN])
async def test_a_plugin_that_hangs_holds_up_nobody_who_does_not_need_it(
    tmp_path: Path, outage: Outage
) -> None:
    cpu, gpu = Pieces(), Hanging("gpu", {0: [0], 1: [1]}, property_name="")
    node = a_node(tmp_path, [cpu, gpu], outage)
    both = asyncio.create_task(node.manager.admit_pod(sandbox("both")))
    await eventually(lambda: cpu.held)
    async with asyncio.timeout(10):
        await node.manager.admit_pod(sandbox("cpu"))
        if outage is Outage.FAIL_OPEN:
            await both
            assert cpu.held.keys() == {"cpu", "both"}
            return
        with pytest.raises(AdmissionRejected) as caught:
            await both
    assert caught.value.reason == "plugin_timeout"
    assert cpu.held.keys() == {"cpu"}, "what it had is given back"
    assert node.store.state.removals == {"both": ("gpu",)}, "and will be there"


async def test_a_pod_that_ends_waits_for_no_plugin_that_hangs(tmp_path: Path) -> None:
    cpu, gpu = Pieces(), Hanging("gpu", {0: [0], 1: [1]}, property_name="")
    node = a_node(tmp_path, [cpu, gpu], Outage.FAIL_OPEN)
    await node.manager.admit_pod(sandbox("cpu"))
    node.store.put(PodState(uid="both", namespace="", name="", plugins=("cpu", "gpu")))
    async with asyncio.timeout(10):
        assert await node.manager.collector.release("both")
        await node.manager.collector.release("cpu")
    assert not cpu.held
    assert node.store.state.removals == {"both": ("gpu",)}


async def test_a_role_that_waits_for_a_plugin_waits_without_a_turn(tmp_path: Path) -> None:
    cpu, gpu = Pieces(), Pieces("gpu", {0: [0], 1: [1]}, property_name="")
    gpu.up = False
    node = a_node(tmp_path, [cpu, gpu], Outage.RETRY, wait=60)
    both = asyncio.create_task(node.manager.admit_pod(sandbox("both")))
    await node.manager.admit_pod(sandbox("cpu"))
    assert not both.done()
    gpu.up = True
    await both
    assert cpu.held.keys() == {"cpu", "both"}
