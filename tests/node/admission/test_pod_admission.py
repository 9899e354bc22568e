"""Pods are admitted as a whole or not at all, and get what their plugins say."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.core.explanation import Verdict
from dovetail.node.admission.admission_log import AdmissionLog, AdmissionRecord
from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.admission.explain import explanation_of
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected, PluginFailure
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import (
    ContainerType,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
)
from tests.support.loops import eventually
from tests.support.node.fakes import (
    TWO_NODES,
    FakePlugin,
    FakePlugins,
    Node,
    Pieces,
    PodPieces,
    container,
    pod,
    sandbox,
)

POD_SCOPE = msgspec.structs.replace(TWO_NODES, scope=Scope.POD)


def memory() -> Pieces:
    class Memory(Pieces):
        def wanted(self, question: Any) -> int:
            return 1

    return Memory("memory", {0: [0], 1: [1]}, property_name="CpusetMems")


async def test_a_container_gets_cpus_and_memory_of_one_node(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    mems.held["other"] = {"main": mems.nodes[0]}
    own = pod("a", container(cpu=2, memory=2**30))
    node = Node(tmp_path, [cpu, mems], [own])

    async def story() -> ContainerSettings:
        await node.manager.admit_pod(sandbox(own))
        return await node.manager.admit_container(sandbox(own), "main", ContainerSettings())

    settings = await story()
    assert (settings.cpus, settings.mems) == ("4-5", "1")


async def test_the_question_tells_requests_limits_role_and_labels(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod(
        "a",
        container(cpu="1.2345", limits={"cpu": 3}),
        labels={"app": "web"},
        annotations={"kubernetes.io/pod-role": "online", "kubernetes.io/resource-type": "x"},
        qos_class="Burstable",
        runtime_class="kata",
    )
    await Node(tmp_path, [cpu], [own]).start(own)
    (asked,) = cpu.asked("Allocate")
    assert (asked.resource_requests, asked.limits) == ({"cpu": 1.235}, {"cpu": 3.0})
    assert (asked.pod_role, asked.pod_type) == ("online", "x")
    assert (asked.native_qos_class, asked.runtime_class) == ("Burstable", "kata")
    assert asked.labels == {"app": "web"}
    assert asked.hint.nodes == (0,)
    assert (asked.container_type, asked.container_index) == (ContainerType.MAIN, 0)


async def test_resources_without_a_plugin_are_nobodys_business(tmp_path: Path) -> None:
    own = pod("a", container(cpu=1, memory=5))
    assert await Node(tmp_path, [Pieces()], [own]).start(own) == {"main": "0"}


async def test_init_containers_come_first_then_the_main_one(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod(
        "a",
        container("prepare", 0, cpu=1, type=ContainerType.INIT),
        container("mesh", 1, cpu=1, type=ContainerType.SIDECAR, restartable=True),
        container("logs", 0, cpu=1, type=ContainerType.SIDECAR),
        container("main", 1, cpu=1),
        container("debug", 0, cpu=1, type=ContainerType.EPHEMERAL),
    )
    await Node(tmp_path, [cpu], [own]).manager.admit_pod(sandbox(own))
    order = [each.container_name for each in cpu.asked("Allocate")]
    assert order == ["prepare", "mesh", "main", "logs"]


async def test_an_ephemeral_container_is_admitted_when_it_comes(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=1), container("debug", cpu=1, type=ContainerType.EPHEMERAL))
    node = Node(tmp_path, [cpu], [own])
    assert await node.start(own) == {"main": "0", "debug": "1"}
    assert cpu.asked("Allocate")[-1].container_type is ContainerType.EPHEMERAL


async def test_a_failure_takes_back_what_others_gave(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    mems.failure = PluginFailure.REFUSED
    mems.options.with_topology_alignment = False
    own = pod("a", container(cpu=2, memory=1))
    node = Node(tmp_path, [cpu, mems], [own])
    with pytest.raises(AdmissionRejected) as caught:
        await node.manager.admit_pod(sandbox(own))
    assert caught.value.reason == "plugin_refused"
    assert not caught.value.later
    assert cpu.asked("Allocate")
    assert cpu.held == {}
    assert [each.pod_uid for each in mems.asked("RemovePod")] == ["a"]
    assert node.store.state == msgspec.structs.replace(node.store.state, pods={}, removals={}), (
        "nothing is left"
    )


async def test_a_later_container_that_fails_takes_the_earlier_ones_along(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=3), container("second", 1, cpu=5, type=ContainerType.SIDECAR))
    with pytest.raises(AdmissionRejected, match="second") as caught:
        await Node(tmp_path, [cpu], [own]).manager.admit_pod(sandbox(own))
    assert caught.value.reason == "topology_affinity"
    assert cpu.held == {}


async def test_what_cannot_be_taken_back_now_is_when_the_plugin_returns(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    own = pod("a", container(cpu=2, memory=1))
    node = Node(tmp_path, [cpu, mems], [own])

    def leave(question: Any) -> ResourceAllocationResponse:
        cpu.up = False
        raise mems.refuse("no")

    mems.override["Allocate"] = leave

    with pytest.raises(AdmissionRejected):
        await node.manager.admit_pod(sandbox(own))
    assert node.store.state.removals == {"a": ("cpu",)}
    await node.manager.removals.deliver()
    assert cpu.held
    cpu.up = True
    await node.manager.removals.deliver()
    assert cpu.held == {}
    assert node.store.state.removals == {}


async def test_a_pod_that_comes_again_first_gives_back_what_waits_to_be(tmp_path: Path) -> None:
    """Otherwise the belated removal would take the new allocation."""
    cpu = Pieces()
    own = pod("a", container(cpu=2))
    node = Node(tmp_path, [cpu], [own])
    node.store.drop("a", ["cpu"])

    await node.manager.admit_pod(sandbox(own))
    await node.manager.removals.deliver()
    assert [name for name, _ in cpu.calls] == ["RemovePod", "GetTopologyHints", "Allocate"]
    assert cpu.held


async def test_admitted_again_it_has_what_it_had_and_nobody_is_asked(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=2))

    node = Node(tmp_path, [cpu], [own])
    first = await node.start(own)
    calls = len(cpu.calls)
    assert await node.start(own) == first
    assert await Node(tmp_path, [cpu], [own]).start(own) == first, "after a restart, too"
    assert len(cpu.calls) == calls


async def test_a_pod_that_grew_is_asked_for_again(tmp_path: Path) -> None:
    cpu = Pieces()
    node = Node(tmp_path, [cpu], [pod("a", container(cpu=2))])
    await node.start(pod("a", container(cpu=2)))
    cpu.held.clear()
    node.source.pods["a"] = pod("a", container(cpu=3))  # type: ignore[union-attr]
    assert await node.start(node.source.pods["a"]) == {"main": "0-2"}  # type: ignore[union-attr]


async def test_memory_that_is_counted_in_nodes_is_not_asked_for_again(tmp_path: Path) -> None:
    """The specification's own answer, 1 for one NUMA node, is less than any request of bytes."""
    mems = memory()
    own = pod("a", container(memory=40 * 2**30))
    node = Node(tmp_path, [mems], [own])

    await node.start(own)
    await node.start(own)
    assert len(mems.asked("Allocate")) == 1


async def test_stored_hints_count_when_only_another_resource_is_asked(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    own = pod("a", container(cpu=2))
    cpu.held["other"] = {"main": cpu.nodes[0]}
    node = Node(tmp_path, [cpu, mems], [own])
    await node.start(own)
    node.source.pods["a"] = grown = pod("a", container(cpu=2, memory=1))  # type: ignore[union-attr]

    async def story() -> ContainerSettings:
        await node.manager.admit_pod(sandbox(grown))
        return await node.manager.admit_container(sandbox(grown), "main", ContainerSettings())

    assert (await story()).mems == "1"
    assert len(cpu.asked("Allocate")) == 1


async def test_a_plugin_without_alignment_is_not_asked_where(tmp_path: Path) -> None:
    cpu = Pieces(aligned=False)
    own = pod("a", container(cpu=5))
    assert await Node(tmp_path, [cpu], [own]).start(own) == {"main": "0-4"}
    assert not cpu.asked("GetTopologyHints")


async def test_an_answer_without_allocation_is_garbage(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.override["Allocate"] = ResourceAllocationResponse()
    own = pod("a", container(cpu=1))
    with pytest.raises(AdmissionRejected, match="it allocated nothing") as caught:
        await Node(tmp_path, [cpu], [own]).manager.admit_pod(sandbox(own))
    assert caught.value.reason == "plugin_garbage"


async def test_an_init_container_may_get_nothing(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container("first", cpu=1, type=ContainerType.INIT), container(cpu=1))

    def only_main(question: Any) -> Any:
        return cpu.Allocate(question) if question.container_name == "main" else empty

    empty = ResourceAllocationResponse()
    cpu.override["Allocate"] = only_main
    assert await Node(tmp_path, [cpu], [own]).start(own) == {"first": "", "main": "0"}


@pytest.mark.parametrize("quantity", [float("nan"), float("inf"), -1.0])
async def test_a_quantity_that_is_none_is_garbage(tmp_path: Path, quantity: float) -> None:
    cpu = Pieces()
    info = ResourceAllocationInfo(allocated_quantity=quantity)
    cpu.override["Allocate"] = ResourceAllocationResponse(
        allocation_result=ResourceAllocation(resource_allocation={"cpu": info})
    )
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [cpu], [own])
    with pytest.raises(AdmissionRejected) as caught:
        await node.manager.admit_pod(sandbox(own))
    assert caught.value.reason == "plugin_garbage"
    assert Node(tmp_path, [cpu], [own]).store.troubles == ()


async def test_hints_for_nodes_that_are_not_there_are_garbage(tmp_path: Path) -> None:
    cpu = Pieces(nodes={0: [0], 7: [1, 2, 3]})
    own = pod("a", container(cpu=2))
    with pytest.raises(AdmissionRejected, match="7") as caught:
        await Node(tmp_path, [cpu], [own]).manager.admit_pod(sandbox(own))
    assert caught.value.reason == "plugin_garbage"


async def test_accompanying_resources_are_kept_under_their_names(tmp_path: Path) -> None:
    cpu = Pieces()

    def with_company(question: Any) -> ResourceAllocationResponse:
        answer = cpu.Allocate(question)
        assert answer.allocation_result
        answer.allocation_result.resource_allocation["cache"] = ResourceAllocationInfo(
            envs={"CACHE": "3"}
        )
        return answer

    cpu.override["Allocate"] = with_company
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [cpu], [own])

    async def story() -> ContainerSettings:
        await node.manager.admit_pod(sandbox(own))
        return await node.manager.admit_container(sandbox(own), "main", ContainerSettings())

    assert (await story()).envs == {"CACHE": "3"}
    assert set(node.store.pods["a"].containers["main"].allocations) == {"cpu", "cache"}


async def test_plugins_that_contradict_each_other_reject_the_pod(tmp_path: Path) -> None:
    one, other = Pieces(), Pieces("dsa", {0: [5], 1: [6]})
    own = pod("a", container(cpu=1, dsa=1))
    with pytest.raises(
        AdmissionRejected, match="cpu and dsa set the property CpusetCpus"
    ) as caught:
        await Node(tmp_path, [one, other], [own]).manager.admit_pod(sandbox(own))
    assert caught.value.reason == "conflicting_settings"
    assert one.held == other.held == {}


async def test_plugins_that_allocate_the_same_resource_differently_reject_the_pod(
    tmp_path: Path,
) -> None:
    """As a plugin for memory that answers under the name of cpu, besides its own."""
    cpu, mems = Pieces(), memory()

    def with_cpu(question: Any) -> ResourceAllocationResponse:
        answer = mems.Allocate(question)
        assert answer.allocation_result
        given = answer.allocation_result.resource_allocation
        given["cpu"] = given["memory"]
        return answer

    mems.override["Allocate"] = with_cpu
    own = pod("a", container(cpu=1, memory=1))
    with pytest.raises(AdmissionRejected, match="cpu and memory both allocate cpu") as caught:
        await Node(tmp_path, [cpu, mems], [own]).start(own)
    assert caught.value.reason == "conflicting_settings"
    assert cpu.held == mems.held == {}


async def test_an_answer_under_another_resources_name_alone_is_garbage(tmp_path: Path) -> None:
    mems = memory()
    mems.override["Allocate"] = ResourceAllocationResponse(
        allocation_result=ResourceAllocation(resource_allocation={"cpu": ResourceAllocationInfo()})
    )
    own = pod("a", container(memory=1))
    with pytest.raises(
        AdmissionRejected, match="asked to allocate it, and it allocated cpu"
    ) as caught:
        await Node(tmp_path, [mems], [own]).start(own)
    assert caught.value.reason == "plugin_garbage"


async def test_hints_for_nodes_that_the_machine_lost_do_not_count(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    node = Node(tmp_path, [cpu, mems], [pod("a", container(cpu=2))])
    cpu.held["other"] = {"main": cpu.nodes[0]}
    await node.start(pod("a", container(cpu=2)))
    smaller = msgspec.structs.replace(TWO_NODES, nodes=CpuSet({0}), distances={0: {0: 10}})
    mems.nodes.pop(1)
    own = pod("a", container(cpu=2, memory=1))
    assert await Node(tmp_path, [cpu, mems], [own], smaller).start(own) == {"main": "4-5"}


async def test_aliases_in_different_containers_are_no_conflict(tmp_path: Path) -> None:
    names = msgspec.structs.replace(TWO_NODES, names={"milli": "cpu"})
    own = pod("a", container(cpu=1), container("more", 1, milli=1, type=ContainerType.SIDECAR))
    node = Node(tmp_path, [Pieces()], [own], names)
    assert await node.start(own) == {"main": "0", "more": "1"}


def counting_pages() -> Pieces:
    mems = memory()
    mems.options.extra_resources = ("hugepages-2Mi", "hugepages-1Gi")
    return mems


@pytest.mark.parametrize("scope", list(Scope))
async def test_what_a_plugin_counts_besides_is_asked_together(tmp_path: Path, scope: Scope) -> None:
    mems = counting_pages()
    wants = {"memory": 2**30, "hugepages-2Mi": 2**22}
    own = pod("a", container(**wants, limits={"hugepages-2Mi": 2**22}))
    node = Node(tmp_path, [mems], [own], msgspec.structs.replace(TWO_NODES, scope=scope))
    await node.start(own)
    for method in ("GetTopologyHints", "Allocate"):
        (asked,) = mems.asked(method)
        assert asked.resource_name == "memory"
        assert asked.resource_requests == {"memory": 2.0**30, "hugepages-2Mi": 2.0**22}
        assert asked.limits == {"hugepages-2Mi": 2.0**22}
    (record,) = node.manager.gate.log.of("a")
    assert [each.requested for each in record.resources] == ["1Gi, hugepages-2Mi 4Mi"]


async def test_for_a_whole_pod_that_is_the_sum(tmp_path: Path) -> None:
    mems = PodPieces("memory", {0: [0], 1: [1]}, property_name="CpusetMems")
    mems.wanted = lambda question: 1  # type: ignore[method-assign]
    mems.options.extra_resources = ("hugepages-2Mi",)
    both = [container(name, memory=2**30, **{"hugepages-2Mi": 2**22}) for name in ("one", "two")]
    own = pod("a", *both)
    await Node(tmp_path, [mems], [own], POD_SCOPE).start(own)
    for method in ("GetPodTopologyHints", "AllocateForPod"):
        (asked,) = mems.asked(method)
        assert asked.resource_requests == {"memory": 2.0**31, "hugepages-2Mi": 2.0**23}


async def test_unless_it_has_a_plugin_of_its_own(tmp_path: Path) -> None:
    mems, pages = counting_pages(), Pieces("hugepages-2Mi", property_name="", aligned=False)
    own = pod("a", container(**{"memory": 2**30, "hugepages-2Mi": 2}))
    await Node(tmp_path, [mems, pages], [own]).start(own)
    assert [list(each.resource_requests) for each in mems.asked("Allocate")] == [["memory"]]
    assert [each.resource_name for each in pages.asked("Allocate")] == ["hugepages-2Mi"]


async def test_pods_that_share_no_plugin_are_admitted_at_the_same_time(tmp_path: Path) -> None:
    """Each plugin answers only when all are asked."""
    everybody = asyncio.Barrier(3)

    class Together(Pieces):
        async def call(self, method: Any, question: Any) -> Any:
            if method.name == "Allocate":
                await everybody.wait()
            return await super().call(method, question)

    plugins = [Together(each, property_name="") for each in "xyz"]
    pods = [pod(each, container(**{each: 1})) for each in "xyz"]
    node = Node(tmp_path, plugins, pods)
    async with asyncio.timeout(10):
        await asyncio.gather(*map(node.start, pods))
    assert all(len(each.held) == 1 for each in plugins)


async def test_pods_that_share_a_plugin_take_turns(tmp_path: Path) -> None:
    cpu = Pieces(nodes={0: range(20), 1: range(20, 40)})
    cpu.delay = 0.001
    pods = [pod(str(each), container(cpu=1)) for each in range(10)]
    node = Node(tmp_path, [cpu], pods)
    await asyncio.gather(*map(node.start, pods))
    asked = [question.pod_uid for _, question in cpu.calls]
    assert asked == [uid for uid in dict.fromkeys(asked) for _ in range(2)], "hints and Allocate"


async def test_one_that_lost_a_race_is_tried_again_where_there_is_room(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.delay = 0.01
    pods = [pod(each, container(cpu=3)) for each in "ab"]
    node = Node(tmp_path, [cpu], pods)

    async def story() -> list[dict[str, str]]:
        return await asyncio.gather(*(node.start(each) for each in pods))

    assert sorted(each["main"] for each in await story()) == ["0-2", "4-6"]


async def test_the_same_pod_is_admitted_in_turn(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.delay = 0.01
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [cpu], [own])

    await asyncio.gather(*(node.manager.admit_pod(sandbox(own)) for _ in range(3)))
    assert len(cpu.asked("Allocate")) == 1


async def test_who_stops_waiting_finds_it_done_later(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.delay = 0.02
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [cpu], [own])

    async def story() -> dict[str, str]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await node.manager.admit_pod(sandbox(own))
        return await node.start(own)

    assert await story() == {"main": "0"}
    assert len(cpu.asked("Allocate")) == 1


async def test_when_the_agent_ends_nothing_is_left_half_done(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.delay = 0.02
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [cpu], [own])

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await node.manager.admit_pod(sandbox(own))
    await node.manager.stop()
    # Now another agent may begin, with what is on the disk.
    assert StateStore.open(tmp_path).pods["a"].admitted


async def test_an_agent_that_ends_takes_back_what_takes_too_long(tmp_path: Path) -> None:
    class Slow(Pieces):
        async def call(self, method: Any, question: Any) -> Any:
            if method.name == "Allocate":
                await asyncio.sleep(600)
            return await super().call(method, question)

    cpu, slow = Pieces("cpu"), Slow("gpu")
    own = pod("a", container(cpu=1, gpu=1))
    node = Node(tmp_path, [cpu, slow], [own], AdmissionConfiguration(), grace_seconds=0.01)

    asking = asyncio.create_task(node.manager.admit_pod(sandbox(own)))
    await eventually(lambda: bool(cpu.held), 5)
    await node.manager.stop()
    await asyncio.gather(asking, return_exceptions=True)
    assert not cpu.held
    assert [each.pod_uid for each in slow.asked("RemovePod")] == ["a"]
    assert "a" not in StateStore.open(tmp_path).pods


async def test_a_pod_that_nobody_knows_may_come_later(tmp_path: Path) -> None:
    with pytest.raises(AdmissionRejected) as caught:
        await Node(tmp_path, [Pieces()]).manager.admit_pod(sandbox("a"))
    assert (caught.value.reason, caught.value.later) == ("pod_unknown", True)


async def test_without_a_source_containers_are_what_the_runtime_says(tmp_path: Path) -> None:
    cpu, mems = Pieces(), memory()
    node = Node(tmp_path, [cpu, mems], pods=None)
    asked = ContainerSettings(
        numbers={"CpuShares": 2048, "MemoryLimitInBytes": 2**30, "OomScoreAdj": -997}
    )

    async def story() -> ContainerSettings:
        await node.manager.admit_pod(sandbox("a"))
        await node.manager.admit_container(sandbox("a"), "first", asked)
        return await node.manager.admit_container(sandbox("a"), "second", asked)

    settings = await story()
    assert (settings.cpus, settings.mems) == ("4-5", "1")
    first, second = cpu.asked("Allocate")
    assert first.resource_requests == {"cpu": 2.0}
    assert first.native_qos_class == "Guaranteed"
    types = (first.container_type, second.container_type)
    assert types == (ContainerType.MAIN, ContainerType.SIDECAR)


async def test_pods_may_be_skipped_the_first_time(tmp_path: Path) -> None:
    cpu = Pieces()
    own = pod("a", container(cpu=1), annotations={"katalyst.kubewharf.io/skip_qrm_admit": "true"})
    node = Node(tmp_path, [cpu], [own])
    assert await node.start(own) == {"main": ""}
    assert node.manager.gate.log.of("a")[-1].result == "skipped"
    assert not cpu.calls
    assert await node.start(own) == {"main": "0"}


async def test_daemon_sets_are_like_others_unless_told_otherwise(tmp_path: Path) -> None:
    own, other = (pod(each, container(cpu=1), owner_kind="DaemonSet") for each in "ab")
    assert await Node(tmp_path, [Pieces()], [own]).start(own) == {"main": "0"}
    skipping = msgspec.structs.replace(TWO_NODES, skip_owners=frozenset({"DaemonSet"}))
    left_out = Node(tmp_path, [Pieces()], [other], skipping)
    assert await left_out.start(other) == {"main": ""}


async def test_a_plugin_that_wants_to_know_hears_of_the_start(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.options.pre_start_required = True
    cpu.override["PreStartContainer"] = None
    own = pod("a", container(cpu=1))
    await Node(tmp_path, [cpu], [own]).start(own)
    (asked,) = cpu.asked("PreStartContainer")
    assert (asked.pod_uid, asked.container_name) == ("a", "main")


class TestPodScope:
    async def test_all_containers_on_the_same_node(self, tmp_path: Path) -> None:
        """By container, the first would go to node 0, where there is no room for both."""
        cpu = Pieces()
        cpu.held["other"] = {"main": CpuSet({0, 1})}
        own = pod("a", container(cpu=2), container("more", 1, cpu=2, type=ContainerType.SIDECAR))
        cpu.override["GetPodTopologyHints"] = cpu.GetTopologyHints
        node = Node(tmp_path, [cpu], [own], POD_SCOPE)
        assert await node.start(own) == {"main": "4-5", "more": "6-7"}
        assert {each.hint.nodes for each in cpu.asked("Allocate")} == {(1,)}

    async def test_a_plugin_that_knows_pods_gives_all_containers_the_same(
        self, tmp_path: Path
    ) -> None:
        cpu = PodPieces()
        own = pod(
            "a",
            container("init", cpu=3, type=ContainerType.INIT),
            container(cpu=1),
            container("more", 1, cpu=1, type=ContainerType.SIDECAR),
        )
        node = Node(tmp_path, [cpu], [own], POD_SCOPE)
        shared = {"init": "0-2", "main": "0-2", "more": "0-2"}
        assert await node.start(own) == shared
        assert not cpu.asked("Allocate")
        assert await node.start(own) == shared
        assert len(cpu.asked("AllocateForPod")) == 1

    async def test_plugins_that_know_no_pods_are_asked_by_container(self, tmp_path: Path) -> None:
        """The nodes that will do for each of them."""
        cpu = Pieces()
        cpu.held["other"] = {"main": CpuSet({0, 1})}
        own = pod("a", container(cpu=1), container("more", 1, cpu=3, type=ContainerType.SIDECAR))
        node = Node(tmp_path, [cpu], [own], POD_SCOPE)
        assert await node.start(own) == {"main": "4", "more": "5-7"}

    async def test_what_the_pod_itself_asks_for_all_its_containers_have(
        self, tmp_path: Path
    ) -> None:
        cpu = PodPieces()
        own = pod("a", container(), container("more", 1), requests={"cpu": Fraction(3)})
        node = Node(tmp_path, [cpu], [own], POD_SCOPE)
        assert await node.start(own) == {"main": "0-2", "more": "0-2"}
        (asked,) = cpu.asked("AllocateForPod")
        assert asked.resource_requests == {"cpu": 3.0}

    @pytest.mark.parametrize("scope", list(Scope))
    async def test_a_plugin_that_knows_no_pods_cannot_serve_who_asks_by_its_pod_only(
        self, tmp_path: Path, scope: Scope
    ) -> None:
        cpu = Pieces()
        own = pod("a", container(cpu=1), container("more", 1), requests={"cpu": Fraction(3)})
        configuration = msgspec.structs.replace(TWO_NODES, scope=scope)
        node = Node(tmp_path, [cpu], [own], configuration)
        words = r"asks for cpu as a whole .*does not know AllocateForPod: give container more a"
        with pytest.raises(AdmissionRejected, match=words) as caught:
            await node.start(own)
        assert caught.value.reason == "plugin_refused"
        assert cpu.held == {}
        known = pod("a", container(cpu=1), container("more", 1, cpu=1), requests=own.requests)
        node = Node(tmp_path, [cpu], [known], configuration)
        assert await node.start(known) == {"main": "0", "more": "1"}

    async def test_a_refusal_for_the_pod_is_not_asked_again_by_container(
        self, tmp_path: Path
    ) -> None:
        cpu = PodPieces()
        cpu.options.with_topology_alignment = False
        cpu.held["other"] = {"main": cpu.nodes[0] | cpu.nodes[1]}
        own = pod("a", container(cpu=1))
        with pytest.raises(AdmissionRejected, match="0 are free"):
            await Node(tmp_path, [cpu], [own], POD_SCOPE).start(own)
        assert not cpu.asked("Allocate")

    async def test_containers_that_come_later_share_what_the_pod_has(self, tmp_path: Path) -> None:
        cpu = PodPieces()
        own = pod("a", container(cpu=2))
        node = Node(tmp_path, [cpu], [own], POD_SCOPE)
        await node.start(own)
        debug = container("debug", cpu=1, type=ContainerType.EPHEMERAL)
        node.source.pods["a"] = msgspec.structs.replace(  # type: ignore[union-attr]
            own, containers=(*own.containers, debug)
        )
        assert (
            await node.manager.admit_container(sandbox(own), "debug", ContainerSettings())
        ).cpus == "0-1"
        assert not cpu.asked("Allocate")


class TestRecords:
    async def test_tell_hints_merge_and_allocation(self, tmp_path: Path) -> None:
        cpu, mems = Pieces(), memory()
        mems.held["other"] = {"main": mems.nodes[0]}
        own = pod("a", container(cpu=2, memory=2**30))
        node = Node(tmp_path, [cpu, mems], [own])
        await node.start(own)
        (record,) = node.manager.gate.log.of("default/pod-a")
        told = msgspec.json.decode(msgspec.json.encode(record))
        first, second = told["resources"]
        assert (first["resource"], first["requested"]) == ("cpu", "2")
        assert [each["nodes"] for each in first["hints"]] == ["0", "1", "0-1"]
        assert first["merged"] == {"nodes": "1", "preferred": True}
        assert first["allocation"]["allocation_result"] == "4-5"
        assert second["requested"] == "1Gi"

    async def test_tell_why_a_pod_was_rejected(self, tmp_path: Path) -> None:
        own = pod("a", container(cpu=5))
        node = Node(tmp_path, [Pieces()], [own])
        with pytest.raises(AdmissionRejected):
            await node.manager.admit_pod(sandbox(own))
        (record,) = node.manager.gate.log.of("a")
        assert (record.result, record.reason) == ("rejected", "topology_affinity")
        explanation = explanation_of(record)
        assert (explanation.verdict, explanation.summary) == (Verdict.NOT_NOW, record.words)
        assert [each.constraint for each in explanation.nearest[0].findings] == ["cpu"]
        assert explanation.fitting == 0
        assert "cpu fits on no single NUMA node" in record.words

    async def test_tell_a_failure_of_our_own_from_an_admission(self, tmp_path: Path) -> None:
        node = Node(tmp_path, [Pieces()], [])

        async def broken(_: Sandbox) -> Pod | None:
            raise ZeroDivisionError("a bug")

        assert node.source
        node.source.pod = broken  # type: ignore[method-assign,assignment]
        with pytest.raises(ZeroDivisionError):
            await node.manager.admit_pod(sandbox("a"))
        (record,) = node.manager.gate.log.of("a")
        assert record.result == "failed"
        assert "a bug" in record.words

    def test_are_a_few_of_each_container(self) -> None:
        records = AdmissionLog()
        for at in range(6):
            for name in ("", "one", "two"):
                records.add(
                    AdmissionRecord(
                        uid="a", namespace="default", name="a", at=float(at), container=name
                    )
                )
        found = [(each.at, each.container) for each in records.of("a")]
        assert found == [(at, name) for at in (2, 3, 4, 5) for name in ("", "one", "two")]

    async def test_are_bounded(self, tmp_path: Path) -> None:
        plugin = FakePlugin("gpu")
        pods = [pod(str(each), container()) for each in range(1005)]
        node = Node(tmp_path, [plugin], pods)

        async def story() -> None:
            await asyncio.gather(*(node.manager.admit_pod(sandbox(each)) for each in pods))

        await story()
        assert not node.manager.gate.log.of("0")
        assert node.manager.gate.log.of("1004")


async def test_unknown_plugins_do_not_disturb(tmp_path: Path) -> None:
    own = pod("a", container(cpu=1))
    node = Node(tmp_path, [], [own])
    assert await node.start(own) == {"main": ""}
    assert isinstance(node.plugins, FakePlugins)
