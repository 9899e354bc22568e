"""A pod is released when it is over, not before, and its plugins hear of it sooner or later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.admission.pod_locks import PodLocks
from dovetail.node.admission.remove_pod_queue import RemovePodQueue
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.reconcile.pod_liveness import STARTING_SECONDS, PodLiveness, unlisted_pods
from dovetail.node.state.pod_state import PodState
from dovetail.node.state.store import StateStore
from tests.support.node.fakes import (
    FakePlugin,
    FakePlugins,
    FakeRuntime,
    Node,
    Pieces,
    container,
    pod,
    sandbox,
)

OWN = pod("a", container(cpu=2))


def held(*uids: str) -> dict[str, PodState]:
    return {each: PodState(uid=each, namespace="n", name=f"pod-{each}") for each in uids}


class TestWithASource:
    def collected(self, tmp_path: Path, **case: Any) -> tuple[Node, Pieces]:
        cpu = Pieces()
        node = Node(tmp_path, [cpu], [OWN])
        assert node.source
        source = node.source
        runtime = FakeRuntime(*([sandbox(OWN)] if case["sandbox"] else []))

        async def story() -> None:
            await node.start(OWN)
            source.known = case.get("known", True)
            if not case["listed"]:
                source.pods.clear()
            await node.manager.collector.collect(runtime, 0)

        asyncio.run(story())
        return node, cpu

    def test_gone_from_both_it_is_released(self, tmp_path: Path) -> None:
        node, cpu = self.collected(tmp_path, listed=False, sandbox=False)
        assert not node.store.pods
        assert not cpu.held
        assert not StateStore.open(tmp_path).pods, "durably"

    @pytest.mark.parametrize(
        "case",
        [
            {"listed": True, "sandbox": False},
            {"listed": False, "sandbox": True},
            {"listed": False, "sandbox": False, "known": False},
        ],
        ids=["its sandbox is to come", "it is still being stopped", "nobody can tell now"],
    )
    def test_otherwise_it_is_kept(self, tmp_path: Path, case: dict[str, bool]) -> None:
        node, cpu = self.collected(tmp_path, **case)
        assert node.store.pods
        assert cpu.held

    async def test_one_that_comes_while_we_look_is_kept(self, tmp_path: Path) -> None:
        """The list of pods was fetched before it was there."""
        cpu = Pieces()
        node = Node(tmp_path, [cpu], [OWN])

        class Late(FakeRuntime):
            async def sandboxes(self) -> Any:
                await node.start(OWN)
                node.source.pods.clear()  # type: ignore[union-attr]
                return ()

        assert await node.manager.collector.collect(Late(), 0) == []
        assert node.store.pods

    def test_a_manifest_without_uid_counts_by_name(self) -> None:
        known = held("a", "b")
        active = [Pod(uid="", namespace="n", name="pod-a")]
        assert unlisted_pods(known, active) == {"b"}


class TestWithoutASource:
    async def test_released_after_a_whole_period_without_sandbox(self, tmp_path: Path) -> None:
        cpu = Pieces()
        node = Node(tmp_path, [cpu], [OWN])
        await node.start(OWN)
        again = Node(tmp_path, [cpu], pods=None)

        async def story() -> list[list[str]]:
            runtime = FakeRuntime()
            first = list(await again.manager.collector.collect(runtime, 0.05))
            await asyncio.sleep(0.06)
            return [first, list(await again.manager.collector.collect(runtime, 0.05))]

        assert await story() == [[], ["a"]]
        assert not cpu.held

    def test_a_sandbox_in_between_begins_the_period_anew(self) -> None:
        absences = PodLiveness()
        absences.look(["a"], [], 0)
        absences.look(["a"], ["a"], 5)
        absences.look(["a"], [], 6)
        assert absences.absent_for(3, 8) == set()
        assert absences.absent_for(3, 9) == {"a"}

    def test_one_that_was_just_admitted_has_time_to_come_up(self) -> None:
        absences = PodLiveness()
        absences.pod_admitted("a", 0)
        absences.look(["a"], [], STARTING_SECONDS - 1)
        assert absences.absent_for(0, STARTING_SECONDS - 1) == set()
        absences.look(["a"], [], STARTING_SECONDS)
        assert absences.absent_for(0, STARTING_SECONDS) == {"a"}

    def test_unless_its_sandbox_is_said_to_have_failed(self) -> None:
        absences = PodLiveness()
        absences.pod_admitted("a", 0)
        absences.sandbox_gone("a")
        absences.look(["a"], [], 1)
        assert absences.absent_for(3, 4) == {"a"}


async def test_a_sandbox_that_went_is_a_reason_to_look_soon(tmp_path: Path) -> None:
    node = Node(tmp_path, [])
    await node.manager.sandbox_gone(sandbox("a"))
    assert node.manager.collector.look_soon.is_set()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class TestRemovals:
    def removals(
        self, tmp_path: Path, *plugins: FakePlugin
    ) -> tuple[RemovePodQueue, StateStore, Clock]:
        store, clock = StateStore.open(tmp_path), Clock()
        return RemovePodQueue(store, FakePlugins(*plugins), PodLocks(), clock), store, clock

    async def test_survive_a_restart(self, tmp_path: Path) -> None:
        store = StateStore.open(tmp_path)
        store.drop("a", ["cpu"])
        await store.commit()
        cpu = Pieces()
        removals, store, _ = self.removals(tmp_path, cpu)
        await removals.deliver()
        assert [each.pod_uid for each in cpu.asked("RemovePod")] == ["a"]
        assert StateStore.open(tmp_path).state.removals == {}

    async def test_a_plugin_that_fails_is_left_alone_for_longer_and_longer(
        self, tmp_path: Path
    ) -> None:
        cpu = Pieces()
        removals, store, clock = self.removals(tmp_path, cpu)
        store.drop("a", ["cpu"])
        store.drop("b", ["cpu"])

        def fail(question: Any) -> None:
            raise PluginError("cpu", PluginFailure.TIMEOUT, "no answer")

        cpu.override["RemovePod"] = fail
        tries = []
        for second in range(130):
            clock.now = 100.0 + second
            before = len(cpu.calls)
            await removals.deliver()
            if len(cpu.calls) > before:
                assert len(cpu.calls) == before + 1, "one pod is enough to find out"
                tries.append(second)
        assert tries == [0, 1, 3, 7, 15, 31, 63, 123]
        del cpu.override["RemovePod"]
        clock.now += 60
        await removals.deliver()
        assert store.state.removals == {}

    async def test_those_that_fail_together_make_the_wait_no_longer(self, tmp_path: Path) -> None:
        cpu = Pieces()
        removals, store, clock = self.removals(tmp_path, cpu)
        cpu.delay = 0.01

        def fail(question: Any) -> None:
            raise PluginError("cpu", PluginFailure.TIMEOUT, "no answer")

        cpu.override["RemovePod"] = fail
        uids = [str(each) for each in range(20)]
        for uid in uids:
            store.drop(uid, ["cpu"])

        await asyncio.gather(*map(removals.attempt, uids))
        assert len(cpu.calls) == len(uids)
        del cpu.override["RemovePod"]
        await removals.attempt("0")
        assert len(cpu.calls) == len(uids), "it failed a moment ago"
        clock.now += 1
        await removals.deliver()
        assert store.state.removals == {}

    async def test_a_failing_plugin_does_not_keep_others_from_hearing(self, tmp_path: Path) -> None:
        cpu, gpu = Pieces(), FakePlugin("gpu")
        gpu.up = False
        removals, store, _ = self.removals(tmp_path, gpu, cpu)
        store.drop("a", ["cpu", "gpu", "unknown"])
        await removals.deliver()
        assert store.state.removals == {"a": ("gpu", "unknown")}

    async def test_a_plugin_that_knows_no_removal_need_not_be_told_again(
        self, tmp_path: Path
    ) -> None:
        removals, store, _ = self.removals(tmp_path, FakePlugin("gpu"))
        store.drop("a", ["gpu"])
        await removals.deliver()
        assert store.state.removals == {}


async def test_pods_come_and_go_and_leave_nothing(tmp_path: Path) -> None:
    cpu = Pieces()
    pods = [pod(str(each), container(cpu=1)) for each in range(200)]
    node = Node(tmp_path, [cpu], pods)

    for own in pods:
        await node.start(own)
        await node.manager.collector.release(own.uid)
    empty = node.store.state
    assert (empty.pods, empty.removals, node.store.applied) == ({}, {}, {})
    gate, collector = node.manager.gate, node.manager.collector
    assert not collector._liveness._admitted_at
    assert len(gate._admissions) == 0
    assert not gate._locks._locks
    assert not collector._liveness._awaited
    assert (tmp_path / "qos_resource_manager_state").stat().st_size < 1000
