"""Each known defect of the existing manager, as something that ours does not do.

Numbers are those of the list of defects in the reference; 10 is about a plugin.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.node.admission.configuration import Scope
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sdk.plugin import amounts_of
from dovetail.node.state.checkpoint import Checkpoint, decode_state, encode_state
from dovetail.node.state.pod_state import AgentState, ContainerHolding, PodState
from dovetail.node.wire.resource_plugin import (
    ListOfTopologyHints,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourceHintsResponse,
)
from tests.support.node.fakes import TWO_NODES, FakePlugin, Node, Pieces, container, pod, sandbox

MILLI = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
MAPPED = msgspec.structs.replace(TWO_NODES, names={MILLI: "cpu"})
MAPPED_POD = msgspec.structs.replace(MAPPED, scope=Scope.POD)


def held(uid: str, **allocations: ResourceAllocationInfo) -> PodState:
    return PodState(
        uid=uid,
        namespace="default",
        name=f"pod-{uid}",
        admitted=True,
        containers={"main": ContainerHolding(allocations=allocations)},
    )


@pytest.mark.parametrize("quantity", [1.5, 0.1, 237182648320.0, 4.0, 5e-324, 1.7e308])
def test_defect_1_any_quantity_survives_the_checkpoint(quantity: float) -> None:
    info = ResourceAllocationInfo(
        allocated_quantity=quantity,
        allocation_result="\xff",
        topology_assignments={1: 237182648320, 0: 3},
    )
    state = AgentState(pods={"a": held("a", cpu=info)})
    assert decode_state(encode_state(state)) == state


async def test_defect_2_pod_scope_allocates_for_every_container(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.override["GetPodTopologyHints"] = cpu.GetTopologyHints
    own = pod("a", container(**{MILLI: 2}), container("more", 1, **{MILLI: 1}))
    cpu.held["other"] = {"main": type(cpu.nodes[0])({0, 1})}
    node = Node(tmp_path, [cpu], [own], MAPPED_POD)
    assert await node.start(own) == {"main": "4-5", "more": "6"}
    (asked,) = cpu.asked("GetPodTopologyHints")
    assert asked.resource_requests[MILLI] == 3.0, "of the pod, not of nothing"


async def test_defect_2_hints_are_found_under_the_plugins_own_name(tmp_path: Path) -> None:
    """Looked for as the pod calls it, there would be no preference and node 0 be taken."""
    cpu = Pieces()
    cpu.held["other"] = {"main": type(cpu.nodes[0])({0, 1, 2})}
    own = pod("a", container(**{MILLI: 2}))
    node = Node(tmp_path, [cpu], [own], MAPPED)
    assert await node.start(own) == {"main": "4-5"}


@pytest.mark.parametrize("configuration", [MAPPED, MAPPED_POD], ids=["container", "pod"])
async def test_defect_3_two_names_of_one_resource_are_a_bad_request(
    tmp_path: Path, configuration: Any
) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=1, **{MILLI: 1}))
    with pytest.raises(AdmissionRejected, match=f"both cpu and {MILLI}") as caught:
        await Node(tmp_path, [cpu], [own], configuration).manager.admit_pod(sandbox(own))
    assert caught.value.reason == "bad_request"
    assert not cpu.calls


async def test_defect_4_a_request_of_nothing_is_no_request_anywhere(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=0))
    node = Node(tmp_path, [cpu], [own])
    assert await node.start(own) == {"main": ""}
    assert await node.start(own) == {"main": ""}
    assert not cpu.calls
    assert await Node(tmp_path, [cpu], [own], MAPPED_POD).start(own) == {"main": ""}
    assert not cpu.calls


async def test_defect_4_nothing_of_one_name_and_something_of_the_other_is_no_conflict(
    tmp_path: Path,
) -> None:
    own = pod("a", container(cpu=0, **{MILLI: 1}))
    assert await Node(tmp_path, [Pieces()], [own], MAPPED).start(own) == {"main": "0"}


async def test_defect_5_hints_stay_when_a_plugin_does_not_repeat_them(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=2))
    node = Node(tmp_path, [cpu], [own])
    await node.start(own)
    before = node.store.pods["a"].containers["main"].allocations["cpu"]
    assert before.resource_hints
    told = msgspec.structs.replace(before, allocation_result="2-3", resource_hints=None)
    assert node.store.refresh("a", "main", {"cpu": told})
    after = node.store.pods["a"].containers["main"].allocations["cpu"]
    assert after.allocation_result == "2-3"
    assert after.resource_hints == before.resource_hints
    assert not node.store.refresh("a", "main", {"cpu": told}), "that is no news any more"


def test_defect_5_hints_that_a_plugin_does_tell_are_taken(tmp_path: Path) -> None:
    node = Node(tmp_path, [])
    first = ListOfTopologyHints()
    node.store.put(held("a", cpu=ResourceAllocationInfo()))
    assert node.store.refresh("a", "main", {"cpu": ResourceAllocationInfo(resource_hints=first)})


async def test_defect_6_order_of_allocation_and_of_errors_is_fixed(tmp_path: Path) -> None:
    order: list[str] = []
    names = ["net", "cpu", "gpu", "memory"]
    words = set()
    for turn in range(4):
        plugins = []
        for name in names[turn:] + names[:turn]:
            plugin = FakePlugin(name)
            info = ResourceAllocationInfo(envs={"WHO": name})
            plugin.override["Allocate"] = ResourceAllocationResponse(
                allocation_result=ResourceAllocation(resource_allocation={name: info})
            )
            plugin.before = lambda method, name=name: order.append(name)  # type: ignore[misc]
            plugins.append(plugin)
        own = pod(str(turn), container(**{each.resource: 1 for each in plugins}))
        with pytest.raises(AdmissionRejected) as caught:
            await Node(tmp_path, plugins, [own]).manager.admit_pod(sandbox(own))
        words.add(str(caught.value))
        assert order[:4] == sorted(names)
        order.clear()
    assert len(words) == 1
    assert "cpu and gpu set the environment variable WHO" in words.pop()


async def test_defect_7_a_slow_plugin_does_not_hold_up_other_pods(tmp_path: Path) -> None:
    slow, cpu = Pieces("slow", {0: [0], 1: [1]}, property_name=""), Pieces()
    slow.delay = 0.5
    one, other = pod("a", container(slow=1)), pod("b", container(cpu=1))
    node = Node(tmp_path, [slow, cpu], [one, other])

    waiting = asyncio.create_task(node.start(one))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(0.3):
        assert await node.start(other) == {"main": "0"}
    assert not waiting.done()
    await waiting


async def test_defect_7_a_plugin_that_is_down_does_not_keep_a_pod_for_ever(tmp_path: Path) -> None:
    cpu, gone = Pieces(), Pieces("gpu", {0: [0], 1: [1]}, property_name="")
    own = pod("a", container(cpu=1, gpu=1))
    node = Node(tmp_path, [cpu, gone], [own])

    await node.start(own)
    gone.up = False
    await node.manager.collector.release("a")
    assert "a" not in node.store.pods
    assert not cpu.held
    assert node.store.state.removals == {"a": ("gpu",)}


async def test_defect_8_quantities_can_be_found_by_either_name(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(**{MILLI: 2}, limits={MILLI: 3}))
    await Node(tmp_path, [cpu], [own], MAPPED).start(own)
    (asked,), (hinted,) = cpu.asked("Allocate"), cpu.asked("GetTopologyHints")
    assert asked.resource_requests == hinted.resource_requests == {MILLI: 2.0}
    assert asked.limits == hinted.limits == {MILLI: 3.0}
    assert amounts_of(asked) == amounts_of(hinted) == {"cpu": 2.0}
    assert asked.resource_name == hinted.resource_name == "cpu"


async def test_defect_9_what_a_plugin_sets_is_there_when_the_container_is_created(
    tmp_path: Path,
) -> None:
    cpu = FakePlugin("cpu")
    info = ResourceAllocationInfo(oci_property_name="CpuShares", allocation_result="77")
    cpu.override["Allocate"] = ResourceAllocationResponse(
        allocation_result=ResourceAllocation(resource_allocation={"cpu": info})
    )
    own = pod("a", container(cpu=2))
    node = Node(tmp_path, [cpu], [own])

    async def story() -> Any:
        await node.manager.admit_pod(sandbox(own))
        return await node.manager.admit_container(sandbox(own), "main", ContainerSettings())

    assert (await story()).numbers == {"CpuShares": 77}


class Disk(Checkpoint):
    """One that can fill up."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.room = 0

    def save(self, state: AgentState) -> None:
        if not self.room:
            raise OSError(28, "No space left on device")
        self.room -= 1
        super().save(state)


@pytest.mark.parametrize("room", [0, 1])
async def test_defect_11_what_cannot_be_written_down_is_not_admitted(
    tmp_path: Path, room: int
) -> None:
    """Neither if the intention can't be, nor if the result can't be."""
    cpu, disk = Pieces(), Disk(tmp_path)
    disk.room = room
    own = pod("a", container(cpu=2))
    node = Node(tmp_path, [cpu], [own], checkpoint=disk)
    with pytest.raises(AdmissionRejected, match="No space left") as caught:
        await node.manager.admit_pod(sandbox(own))
    assert (caught.value.reason, caught.value.later) == ("checkpoint_failed", True)
    assert bool(cpu.asked("Allocate")) == bool(room)
    assert cpu.held == {}
    disk.room = 9
    assert await node.start(own) == {"main": "0-1"}


async def test_no_preference_and_no_possibility_are_not_the_same(tmp_path: Path) -> None:
    for uid, listed, fits in (("a", None, True), ("b", ListOfTopologyHints(), False)):
        cpu = Pieces()
        cpu.override["GetTopologyHints"] = ResourceHintsResponse(resource_hints={"cpu": listed})
        own = pod(uid, container(cpu=1))
        node = Node(tmp_path, [cpu], [own])
        if fits:
            assert await node.start(own) == {"main": "0"}
        else:
            with pytest.raises(AdmissionRejected, match="fits on no set of NUMA nodes"):
                await node.start(own)
