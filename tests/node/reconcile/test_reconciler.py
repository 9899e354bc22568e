"""Containers that run are kept as plugins want them, whoever makes trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.node.admission.configuration import Outage
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import (
    ContainerPhase,
    ObservedContainer,
    PluginError,
    PluginFailure,
    RuntimeRefused,
)
from dovetail.node.reconcile.reconciler import DRIFT, UPDATES, Reconciler
from dovetail.node.wire.resource_plugin import (
    ContainerResources,
    GetResourcesAllocationResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
)
from tests.support.node.fakes import TWO_NODES, FakePlugin, Node, Pieces, container, pod, sandbox

FAIL_OPEN = msgspec.structs.replace(TWO_NODES, outage=Outage.FAIL_OPEN)


class Pools(Pieces):
    """Tells what everybody holds; with no hints, as some plugins do."""

    def GetResourcesAllocation(self, _: Any) -> GetResourcesAllocationResponse:
        return GetResourcesAllocationResponse(
            pod_resources={
                uid: ContainerResources(
                    container_resources={name: self.tells(own) for name, own in containers.items()}
                )
                for uid, containers in self.held.items()
            }
        )

    def tells(self, own: CpuSet) -> ResourceAllocation:
        info = ResourceAllocationInfo(
            oci_property_name=self.property_name,
            is_scalar_resource=True,
            allocated_quantity=float(len(own)),
            allocation_result=str(own),
        )
        return ResourceAllocation(resource_allocation={self.resource: info})


class Runtime:
    """Containers in memory, which remember what they are told."""

    def __init__(self) -> None:
        self.present: list[Sandbox] = []
        self.found: dict[str, ObservedContainer] = {}
        self.updates: list[tuple[str, ContainerSettings]] = []
        self.refusal: str = ""
        self.deaf: set[str] = set()
        """Ids of containers that say yes and do nothing."""

    def add(
        self, uid: str, name: str, cpus: str, state: ContainerPhase = ContainerPhase.RUNNING
    ) -> None:
        id_ = f"{uid}-{name}"
        self.found[id_] = ObservedContainer(
            id=id_, pod_uid=uid, container=name, state=state, applied=ContainerSettings(cpus=cpus)
        )
        self.present = [*{each.uid: each for each in [*self.present, sandbox(uid)]}.values()]

    def cpus(self, id_: str) -> str:
        return self.found[id_].applied.cpus

    async def sandboxes(self) -> Sequence[Sandbox]:
        return self.present

    async def containers(self) -> Sequence[ObservedContainer]:
        return list(self.found.values())

    async def update(self, id_: str, change: ContainerSettings) -> None:
        self.updates.append((id_, change))
        if self.refusal:
            raise RuntimeRefused(self.refusal)
        if id_ not in self.deaf:
            self.found[id_] = msgspec.structs.replace(self.found[id_], applied=change)


class World:
    def __init__(self, directory: Path, *uids: str, **more: Any) -> None:
        self.cpu: Pools = more.pop("cpu", None) or Pools(aligned=False)
        self.pods = [*more.pop("pods", ()), *(pod(uid, container(cpu=2)) for uid in uids)]
        plugins: list[FakePlugin] = [self.cpu, *more.pop("others", ())]
        names = more.pop("names", None)
        timing = {key: more.pop(key) for key in ("wait_seconds", "shortest_pause") if key in more}
        self.node = Node(directory, plugins, self.pods, **more)
        self.runtime = Runtime()
        self.now = 1000.0
        self.reconciler = Reconciler(
            self.node.manager.gate,
            self.node.manager.collector,
            self.node.store,
            self.node.plugins,
            self.runtime,
            names=names,
            clock=lambda: self.now,
            **timing,
        )

    async def start(self) -> None:
        for each in self.pods:
            started = await self.node.start(each)
            for name, cpus in started.items():
                self.runtime.add(each.uid, name, cpus)
                applied = self.node.store.applied[each.uid, name]
                self.node.store.applied[each.uid, name] = msgspec.structs.replace(
                    applied, id=f"{each.uid}-{name}"
                )

    async def look(self, after: float = 3.0) -> None:
        self.now += after
        await self.reconciler.look()

    def repool(self, uid: str, cpus: str) -> None:
        self.cpu.held[uid] = {"main": CpuSet.parse(cpus)}


def count(metric: Any, *labels: str) -> float:
    found: float = (metric.labels(*labels) if labels else metric)._value.get()
    return found


async def test_nothing_is_updated_while_nothing_differs(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")

    await world.start()
    for _ in range(3):
        await world.look()
    assert world.runtime.updates == []


async def test_a_pool_that_changed_is_applied_and_saved(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")

    await world.start()
    world.repool("a", "4-6")
    await world.look()
    await world.look()
    assert world.runtime.updates == [("a-main", ContainerSettings(cpus="4-6"))]
    again = Node(tmp_path, []).store.pods["a"].containers["main"].allocations["cpu"]
    assert (again.allocation_result, again.allocated_quantity) == ("4-6", 3)


async def test_defect_5_an_answer_without_hints_does_not_erase_those_that_are_known(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, "a")

    await world.start()
    before = world.node.store.pods["a"].containers["main"].allocations["cpu"].resource_hints
    assert before is not None
    world.repool("a", "6-7")
    await world.look()
    after = world.node.store.pods["a"].containers["main"].allocations["cpu"]
    assert (after.allocation_result, after.resource_hints) == ("6-7", before)


async def test_what_somebody_else_changed_is_put_right_and_counted_once(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    drifts = count(DRIFT)
    world.runtime.add("a", "main", "0-7")
    await world.look()
    await world.look()
    assert world.runtime.cpus("a-main") == "0-1"
    assert len(world.runtime.updates) == 1
    assert count(DRIFT) == drifts + 1


async def test_drift_that_cannot_be_put_right_is_counted_once(tmp_path: Path) -> None:
    world = World(tmp_path, "a")
    world.runtime.refusal = "no"

    await world.start()
    drifts = count(DRIFT)
    world.runtime.add("a", "main", "0-7")
    for _ in range(4):
        await world.look()
    assert count(DRIFT) == drifts + 1
    world.runtime.add("a", "main", "0-6")
    await world.look()
    assert count(DRIFT) == drifts + 2


async def test_a_container_that_was_made_anew_has_not_drifted(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    drifts = count(DRIFT)
    del world.runtime.found["a-main"]
    world.runtime.found["newer"] = ObservedContainer(
        id="newer",
        pod_uid="a",
        container="main",
        state=ContainerPhase.CREATED,
        applied=ContainerSettings(cpus="0-7"),
    )
    await world.look()
    assert world.runtime.updates == [("newer", ContainerSettings(cpus="0-1"))]
    assert count(DRIFT) == drifts


@pytest.mark.parametrize("state", [ContainerPhase.EXITED, ContainerPhase.UNKNOWN])
async def test_containers_that_do_not_run_are_left_alone(
    tmp_path: Path, state: ContainerPhase
) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.runtime.add("a", "main", "0-7", state)
    await world.look()
    assert world.runtime.updates == []


async def test_a_refused_update_is_tried_again_less_and_less_often(tmp_path: Path) -> None:
    world = World(tmp_path, "a")
    world.runtime.refusal = "no such CPU"

    await world.start()
    world.repool("a", "4-5")
    put_off = count(UPDATES, "put_off")
    for _ in range(40):
        await world.look(3.0)
    # After 3, 6, 12, 24 and 48 seconds of the 120.
    assert len(world.runtime.updates) == 6
    assert count(UPDATES, "put_off") == put_off + 34
    # What is wanted now is something else: no reason to wait.
    world.runtime.refusal = ""
    world.repool("a", "6-7")
    await world.look(0.1)
    assert world.runtime.cpus("a-main") == "6-7"


async def test_an_update_that_does_not_stick_is_not_repeated_at_every_look(tmp_path: Path) -> None:
    world = World(tmp_path, "a")
    world.runtime.deaf = {"a-main"}

    await world.start()
    world.repool("a", "4-5")
    for _ in range(40):
        await world.look(3.0)
    assert len(world.runtime.updates) == 6


async def test_one_refusal_does_not_hold_up_the_others(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")

    async def refuse_a(id_: str, change: ContainerSettings) -> None:
        if id_ == "a-main":
            raise RuntimeRefused("no")
        world.runtime.found[id_] = msgspec.structs.replace(world.runtime.found[id_], applied=change)

    await world.start()
    world.runtime.update = refuse_a  # type: ignore[method-assign]
    world.repool("a", "4-5")
    world.repool("b", "6-7")
    await world.look()
    assert world.runtime.cpus("b-main") == "6-7"


async def test_who_gives_cpus_away_goes_before_who_gets_them(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")

    await world.start()
    world.repool("a", "0-3")
    world.repool("b", "2")
    log: list[str] = []

    async def slowly(id_: str, change: ContainerSettings) -> None:
        log.append(f"{id_} begins")
        await asyncio.sleep(0.01)
        log.append(f"{id_} has {change.cpus}")

    world.runtime.update = slowly  # type: ignore[method-assign]
    await world.look()
    assert log == ["b-main begins", "b-main has 2", "a-main begins", "a-main has 0-3"]


async def test_a_plugin_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    hanging = FakePlugin("gpu")
    world = World(tmp_path, "a", others=[hanging], wait_seconds=0.05)

    await world.start()
    hanging.delay = 60
    world.repool("a", "4-5")
    await world.look()
    assert world.runtime.cpus("a-main") == "4-5"
    began = asyncio.get_running_loop().time()
    world.repool("a", "6-7")
    await world.look()
    assert world.runtime.cpus("a-main") == "6-7"
    # It is still being waited for, so it is not asked or waited for again.
    assert asyncio.get_running_loop().time() - began < 1
    await world.reconciler.stop()


@pytest.mark.parametrize("changed", [False, True])
async def test_a_late_answer_counts_unless_the_container_got_something_else_meanwhile(
    tmp_path: Path, changed: bool
) -> None:
    world = World(tmp_path, "a", wait_seconds=0.01)

    await world.start()
    world.repool("a", "4-5")
    world.cpu.delay = 0.05
    await world.look()
    assert world.runtime.updates == []
    if changed:
        given = world.cpu.tells(CpuSet({6, 7})).resource_allocation
        world.node.store.refresh("a", "main", given)
    await asyncio.sleep(0.1)
    await world.look()
    assert world.runtime.cpus("a-main") == ("6-7" if changed else "4-5")


@pytest.mark.parametrize(
    "failure", [PluginFailure.REFUSED, PluginFailure.GARBAGE, PluginFailure.TIMEOUT]
)
async def test_a_plugin_that_fails_changes_nothing(tmp_path: Path, failure: PluginFailure) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.repool("a", "4-5")
    world.cpu.failure = failure
    await world.look()
    assert world.runtime.updates == []
    assert len(world.cpu.asked("Allocate")) == 1


async def test_a_plugin_that_is_down_is_not_asked(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.cpu.up = False
    world.cpu.calls.clear()
    await world.look()
    assert world.cpu.calls == []


async def test_nonsense_from_a_plugin_is_not_taken_in(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    info = ResourceAllocationInfo(oci_property_name="CpusetCpus", allocation_result="most")
    told = ResourceAllocation(resource_allocation={"cpu": info})
    world.cpu.override["GetResourcesAllocation"] = GetResourcesAllocationResponse(
        pod_resources={"a": ContainerResources(container_resources={"main": told})}
    )
    await world.look()
    kept = world.node.store.pods["a"].containers["main"].allocations["cpu"]
    assert kept.allocation_result == "0-1"
    assert world.runtime.updates == []


async def test_nobody_tells_of_what_another_plugin_gives(tmp_path: Path) -> None:
    nic = Pools("nic", aligned=False)
    world = World(tmp_path, "a", others=[nic])

    def meddling(_: Any) -> GetResourcesAllocationResponse:
        cpus = world.cpu.tells(CpuSet({6, 7})).resource_allocation["cpu"]
        given = {"cpu": cpus, "bandwidth": ResourceAllocationInfo(allocated_quantity=5.0)}
        return GetResourcesAllocationResponse(
            pod_resources={
                "a": ContainerResources(
                    container_resources={"main": ResourceAllocation(resource_allocation=given)}
                )
            }
        )

    nic.override["GetResourcesAllocation"] = meddling

    await world.start()
    await world.look()
    held = world.node.store.pods["a"].containers["main"].allocations
    assert held["cpu"].allocation_result == "0-1"
    assert held["bandwidth"].allocated_quantity == 5.0
    assert world.runtime.updates == []


async def test_a_plugin_may_tell_by_the_name_that_pods_use(tmp_path: Path) -> None:
    world = World(tmp_path, "a", names={"vendor/cpu": "cpu"})

    def aliased(_: Any) -> GetResourcesAllocationResponse:
        found = world.cpu.GetResourcesAllocation(None)
        (own,) = found.pod_resources["a"].container_resources.values()
        given = {"vendor/cpu": own.resource_allocation["cpu"]}
        return GetResourcesAllocationResponse(
            pod_resources={
                "a": ContainerResources(
                    container_resources={"main": ResourceAllocation(resource_allocation=given)}
                )
            }
        )

    world.cpu.override["GetResourcesAllocation"] = aliased

    await world.start()
    world.repool("a", "4-5")
    await world.look()
    assert list(world.node.store.pods["a"].containers["main"].allocations) == ["cpu"]
    assert world.runtime.cpus("a-main") == "4-5"


async def test_pods_and_containers_that_only_the_plugin_knows_are_ignored(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.cpu.held["stranger"] = {"main": CpuSet({7})}
    world.cpu.held["a"]["other"] = CpuSet({6})
    await world.look()
    assert list(world.node.store.pods) == ["a"]
    assert list(world.node.store.pods["a"].containers) == ["main"]


async def test_what_the_plugin_forgot_is_allocated_again(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.cpu.held.clear()
    world.cpu.held["other"] = {"main": CpuSet({0, 1})}
    await world.look()
    assert world.cpu.held["a"] == {"main": CpuSet({2, 3})}
    assert world.runtime.cpus("a-main") == "2-3"


async def test_containers_that_run_are_not_about_to_start(tmp_path: Path) -> None:
    """Neither those that the plugin forgot, nor those that are adopted."""
    world = World(tmp_path, "a", "b")
    world.cpu.options.pre_start_required = True
    world.cpu.override["PreStartContainer"] = None

    await world.node.start(world.pods[0])
    for uid in "ab":
        world.runtime.add(uid, "main", "0-1")
    world.cpu.held.clear()
    await world.look()
    assert sorted(world.cpu.held) == ["a", "b"]
    assert [each.pod_uid for each in world.cpu.asked("PreStartContainer")] == ["a"]


async def test_what_cannot_be_allocated_again_stays_as_it_runs(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.cpu.held.clear()
    world.cpu.held["other"] = {"main": CpuSet(range(8))}
    world.runtime.present.append(sandbox("other"))
    for _ in range(40):
        await world.look(3.0)
    kept = world.node.store.pods["a"].containers["main"]
    assert (kept.allocations["cpu"].allocation_result, kept.missing) == ("0-1", ())
    assert world.runtime.updates == []
    # Once at the start, then after 3, 6, 12, 24 and 48 seconds.
    assert len(world.cpu.asked("Allocate")) == 7


async def test_two_resources_that_are_refused_wait_each_for_itself(tmp_path: Path) -> None:
    gpu = Pools("gpu", aligned=False, property_name="")
    world = World(tmp_path, "a", others=[gpu])
    world.pods[0] = pod("a", container(cpu=2, gpu=2))
    assert world.node.source
    world.node.source.pods["a"] = world.pods[0]

    await world.start()
    for each in (world.cpu, gpu):
        each.held.clear()
        each.held["other"] = {"main": CpuSet(range(8))}
    world.runtime.present.append(sandbox("other"))
    for _ in range(40):
        await world.look(3.0)
    assert [len(each.asked("Allocate")) for each in (world.cpu, gpu)] == [7, 7]


async def test_who_started_without_a_plugin_gets_its_share_when_it_is_back(tmp_path: Path) -> None:
    world = World(tmp_path, "a", configuration=FAIL_OPEN)
    world.cpu.up = False

    await world.start()
    assert world.runtime.cpus("a-main") == ""
    await world.look()
    world.cpu.up = True
    await world.look()
    assert world.runtime.cpus("a-main") == "0-1"


async def test_an_init_container_that_is_over_is_not_allocated_again(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    await world.start()
    world.runtime.found.clear()
    world.cpu.held.clear()
    await world.look()
    assert len(world.cpu.asked("Allocate")) == 1


async def test_a_pod_that_is_over_is_released(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b")

    await world.start()
    assert world.node.source is not None
    del world.node.source.pods["a"]
    await world.look()
    assert sorted(world.cpu.held) == ["a", "b"]
    world.runtime.present = [each for each in world.runtime.present if each.uid != "a"]
    world.runtime.found.pop("a-main")
    await world.look()
    assert sorted(world.cpu.held) == ["b"]
    assert sorted(world.node.store.pods) == ["b"]


async def test_a_plugin_that_does_not_let_a_pod_go_holds_up_nobody(tmp_path: Path) -> None:
    world = World(tmp_path, "a", "b", wait_seconds=0.05)
    removing = asyncio.Event()
    answering = world.cpu.call

    async def hang(method: Any, question: Any) -> Any:
        if method.name == "RemovePod":
            removing.set()
            await asyncio.sleep(60)
        return await answering(method, question)

    await world.start()
    assert world.node.source is not None
    del world.node.source.pods["a"]
    world.runtime.present = []
    world.cpu.call = hang  # type: ignore[method-assign]
    await world.look()
    assert removing.is_set()
    world.repool("b", "4-5")
    await world.look()
    assert world.runtime.cpus("b-main") == "4-5"
    await world.reconciler.stop()


async def test_a_runtime_that_is_away_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    async def away() -> Sequence[ObservedContainer]:
        raise RuntimeRefused("containerd is restarting")

    await world.start()
    there, world.runtime.containers = world.runtime.containers, away  # type: ignore[method-assign]
    world.repool("a", "4-5")
    await world.look()
    assert world.runtime.updates == []
    world.runtime.containers = there  # type: ignore[method-assign]
    await world.look()
    assert world.runtime.cpus("a-main") == "4-5"


async def test_pods_that_are_over_are_released_even_if_containers_cannot_be_seen(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, "a")

    async def broken() -> Sequence[ObservedContainer]:
        raise RuntimeRefused("one of them has no status")

    await world.start()
    assert world.node.source is not None
    world.node.source.pods.clear()
    world.runtime.present = []
    world.runtime.containers = broken  # type: ignore[method-assign]
    await world.look()
    assert world.cpu.held == {}


async def test_pods_that_run_already_are_adopted(tmp_path: Path) -> None:
    world = World(tmp_path, "a")

    world.runtime.add("a", "main", "0-7")
    world.runtime.add("unknown", "main", "0-7")
    await world.look()
    assert world.runtime.cpus("a-main") == "0-1"
    assert world.runtime.cpus("unknown-main") == "0-7"
    await world.look()
    assert len(world.runtime.updates) == 1


@pytest.mark.parametrize(("skip", "cpus"), [("false", ["0-1", "2-3"]), ("true", ["0-7", "0-7"])])
async def test_adopted_pods_are_for_plugins_that_come_later_too(
    tmp_path: Path, skip: str, cpus: list[str]
) -> None:
    world = World(tmp_path)
    annotations = {"katalyst.kubewharf.io/skip_qrm_admit": skip}
    two = (container("main", cpu=2), container("side", 1, cpu=2))
    assert world.node.source
    world.node.source.pods["a"] = pod("a", *two, annotations=annotations)
    known = world.node.plugins.known

    del known["cpu"]
    for name in ("main", "side"):
        world.runtime.add("a", name, "0-7")
    await world.look()
    assert world.runtime.updates == []
    known["cpu"] = world.cpu
    await world.look()
    assert [world.runtime.cpus(f"a-{name}") for name in ("main", "side")] == cpus
    before = len(world.cpu.asked("Allocate"))
    await world.look()
    assert len(world.cpu.asked("Allocate")) == before


async def test_looks_go_on_and_are_hastened_by_a_sandbox_that_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, "a", shortest_pause=0.05)
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise PluginError("cpu", PluginFailure.DOWN, "one look that fails is not the last")

    monkeypatch.setattr(world.reconciler, "look", look)

    running = asyncio.create_task(world.reconciler.run())
    await asyncio.sleep(0.01)
    for _ in range(20):
        await world.node.manager.sandbox_gone(sandbox("a"))
        await asyncio.sleep(0)
    await asyncio.sleep(0.3)
    # The period is 3 seconds; the second look is for all that went.
    assert looks == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
