"""A container whose amounts change while it runs has what a new one with these would have."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dovetail.node.agent.manager import Manager
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import (
    AdmissionRejected,
    ContainerPhase,
    ObservedContainer,
    PluginError,
    PluginFailure,
)
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from dovetail.node.topology import synthetic
from dovetail.node.wire.resource_plugin import ALLOCATE
from tests.node.admission.shipped import (
    OWN,
    CalledDirectly,
    DirectPlugins,
    ShippedNode,
    configured,
    shipped,
)
from tests.support.node.fakes import container, pod, sandbox

FOUR = synthetic(sockets=1, cores=4, threads=1)
TWICE_FOUR = synthetic(sockets=2, cores=4, threads=1, memory=10 * 2**30)
ROLE = {"kubernetes.io/pod-role": "own"}
GI = 2**30


def told(cpus: float, gi: float = 0) -> ContainerSettings:
    """What the kubelet tells a runtime of a container with these requests and limits."""
    numbers = {
        "CpuShares": max(2, int(cpus * 1000) * 1024 // 1000),
        "CpuQuota": int(cpus * 100000),
        "CpuPeriod": 100000,
    }
    if gi:
        numbers["MemoryLimitInBytes"] = int(gi * GI)
    return ContainerSettings(numbers=numbers)


def asking(uid: str, cpus: float, role: bool = True, **more: Any) -> Pod:
    wanted = {"cpu": cpus, **more}
    return pod(uid, container(**wanted, limits=wanted), annotations=ROLE if role else {})


class Resized(ShippedNode):
    """A node whose runtime does what it is told."""

    async def run(self, of: Pod, said: ContainerSettings) -> str:
        await self.admit(of)
        settings = await self.manager.admit_container(sandbox(of), "main", said)
        await self.manager.container_created(sandbox(of), "main", f"id-{of.uid}", settings)
        return settings.cpus

    async def resize(self, of: Pod, said: ContainerSettings) -> ContainerSettings:
        """What the kubelet does, and the runtime after it."""
        settings = await self.manager.resize_container(sandbox(of), "main", said)
        await self.manager.container_resized(sandbox(of), "main", f"id-{of.uid}", settings)
        return settings

    def own(self, uid: str, resource: str = "cpu") -> Any:
        return self.plugins[resource].state.of(uid, "main")


def a_node(directory: Path, **more: Any) -> Resized:
    machine = more.pop("machine", FOUR)
    kinds = more.pop("kinds", ("cpu",))
    return Resized(
        directory,
        shipped(machine, OWN, kinds),
        configured(more.pop("policy", "none"), machine, **more),
    )


async def test_a_container_grows(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1)
    assert await node.run(own, told(1)) == "0"
    assert (await node.resize(own, told(2))).cpus == "0-1"
    assert node.own("a").amount == 2
    assert node.held("a") == {"main": "0-1"}


async def test_a_container_shrinks_and_the_next_one_has_what_it_left(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 3)
    await node.run(own, told(3))
    kept = (await node.resize(own, told(1))).cpus
    other = await node.run(asking("b", 3), told(3))
    assert {*kept.split(","), *other.split(",")} == {kept, other}
    assert node.own("a").cpus | node.own("b").cpus == {0, 1, 2, 3}
    assert not node.own("a").cpus & node.own("b").cpus


async def test_a_part_of_a_cpu_is_shared(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    assert (await node.resize(own, told(1.5))).cpus == "0-3"
    assert (await node.resize(own, told(0.5))).cpus == "0-3"
    assert node.own("a").amount == Fraction(1, 2)
    assert (await node.resize(own, told(2))).cpus == "0-1"


async def test_what_is_not_there_is_refused_with_the_reason(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    await node.run(asking("b", 2), told(2))
    with pytest.raises(AdmissionRejected, match="wants 3 CPUs") as caught:
        await node.resize(own, told(3))
    assert (caught.value.reason, caught.value.later) == ("plugin_refused", False)
    assert node.manager.current_settings("a", "main").cpus == "0"
    assert node.own("a").amount == 1
    (record,) = (each for each in node.manager.gate.log.of("a") if each.result == "rejected")
    assert record.container == "main"
    await node.run(asking("c", 1), told(1))


async def test_who_shares_a_pool_stays_there(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1, role=False)
    assert await node.run(own, told(1)) == "0-3"
    assert (await node.resize(own, told(2))).cpus == "0-3"
    assert node.own("a").amount == 2


async def test_an_update_that_changes_no_amount_asks_nobody(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    before = node.manager.gate.log.of("a")
    assert (await node.resize(own, ContainerSettings(numbers={"OomScoreAdj": 3}))).cpus == "0"
    assert (await node.resize(own, told(1))).cpus == "0"
    assert node.manager.gate.log.of("a") == before


async def test_bound_memory_grows_where_it_is(tmp_path: Path) -> None:
    node = a_node(tmp_path, machine=TWICE_FOUR, kinds=("cpu", "memory"), policy="single-numa-node")
    await node.run(asking("first", 4, memory=1 * GI), told(4, 1))
    own = asking("a", 2, memory=2 * GI)
    await node.run(own, told(2, 2))
    assert node.held("a", "memory") == {"main": "1"}
    await node.end("first")
    assert (await node.resize(own, told(2, 4))).mems == "1"
    assert node.own("a", "memory").wanted == {"memory": 4 * GI}
    assert (await node.resize(own, told(4, 4))).cpus == "4-7"


async def test_a_request_below_the_limit_is_what_the_specification_says(tmp_path: Path) -> None:
    node = a_node(tmp_path, machine=TWICE_FOUR, kinds=("cpu", "memory"))
    limits = {"cpu": 2, "memory": 4 * GI}
    own = pod("a", container(cpu=1, memory=GI, limits=limits), annotations=ROLE)
    burst = ContainerSettings(
        numbers={**told(2, 4).numbers, "CpuShares": 1024, "MemoryLimitInBytes": 4 * GI}
    )
    await node.run(own, burst)
    wanted = container(cpu=1, memory=2 * GI, limits={"cpu": 2, "memory": 6 * GI})
    node.source.pods["a"] = msgspec.structs.replace(own, containers=(wanted,))
    numbers = {**burst.numbers, "MemoryLimitInBytes": 6 * GI}
    await node.resize(own, ContainerSettings(numbers=numbers))
    assert node.own("a", "memory").wanted == {"memory": 2 * GI}


async def test_what_one_plugin_refuses_the_other_gives_back(tmp_path: Path) -> None:
    node = a_node(tmp_path, machine=TWICE_FOUR, kinds=("cpu", "memory"))
    own = asking("a", 1, memory=GI)
    await node.run(own, told(1, 1))
    with pytest.raises(AdmissionRejected, match="30Gi"):
        await node.resize(own, told(3, 30))
    assert node.own("a").amount == 1
    assert node.held("a") == {"main": "0"}
    await node.run(asking("b", 7, memory=GI), told(7, 1))


async def test_a_runtime_that_does_not_do_it_leaves_everything_as_it_was(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 2)
    await node.run(own, told(2))
    await node.manager.resize_container(sandbox(own), "main", told(1))
    await node.manager.resize_failed(sandbox(own), "main")
    assert node.own("a").amount == 2
    assert node.manager.current_settings("a", "main").cpus == "0-1"


async def test_nobody_has_what_a_container_still_runs_on(tmp_path: Path) -> None:
    """It may have shrunk at its plugin, and not yet at the runtime."""
    node, own = a_node(tmp_path, settle_seconds=0.1), asking("a", 3)
    await node.run(own, told(3))
    settings = await node.manager.resize_container(sandbox(own), "main", told(1))
    with pytest.raises(AdmissionRejected, match="pod-a") as caught:
        await node.run(asking("b", 2), told(2))
    assert (caught.value.reason, caught.value.later) == ("resize_under_way", True)
    await node.manager.container_resized(sandbox(own), "main", "id-a", settings)
    await node.run(asking("b", 2), told(2))


async def test_a_container_created_anew_has_the_new_amount(tmp_path: Path) -> None:
    """One whose resize policy wants a restart."""
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    settings = await node.manager.admit_container(sandbox(own), "main", told(2))
    assert settings.cpus == "0-1"
    await node.manager.container_created(sandbox(own), "main", "id-2", settings)
    await node.run(asking("b", 2), told(2))


async def test_a_sandbox_made_anew_has_what_was_given_whatever_is_wished_for(
    tmp_path: Path,
) -> None:
    """The specification says what is wanted; the kubelet may have put it off."""
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    await node.run(asking("b", 3), told(3))
    assert await node.run(asking("a", 3), told(1)) == "0"


async def test_a_plugin_that_is_down_puts_it_off(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), asking("a", 1)
    await node.run(own, told(1))
    plugin = node.manager._plugins.of("cpu")

    async def away(*_: Any) -> Any:
        raise PluginError("cpu", PluginFailure.DOWN, "nobody is there")

    plugin.call = away  # type: ignore[method-assign, union-attr]
    with pytest.raises(AdmissionRejected) as caught:
        await node.resize(own, told(2))
    assert (caught.value.reason, caught.value.later) == ("plugin_down", True)
    assert node.manager.current_settings("a", "main").cpus == "0"


class OneContainer:
    """A runtime with one container."""

    def __init__(self, of: Sandbox, cpus: str, said: ContainerSettings) -> None:
        self.of, self.applied = of, msgspec.structs.replace(said, cpus=cpus)

    async def sandboxes(self) -> Sequence[Sandbox]:
        return [self.of]

    async def containers(self) -> Sequence[ObservedContainer]:
        return [
            ObservedContainer(
                id="id-a",
                pod_uid=self.of.uid,
                container="main",
                state=ContainerPhase.RUNNING,
                applied=self.applied,
            )
        ]

    async def update(self, id_: str, change: ContainerSettings) -> None:
        assert id_ == "id-a"
        self.applied = msgspec.structs.replace(self.applied, cpus=change.cpus)


class Restarted(Resized):
    """A node that comes up with a checkpoint of before."""

    def __init__(self, directory: Path, plugins: Any, own: Pod) -> None:
        super().__init__(directory, plugins, configured("none", FOUR))
        self.store = StateStore(Checkpoint(directory))
        self.manager = Manager(
            configured("none", FOUR, settle_seconds=0.1),
            DirectPlugins(plugins),
            self.store,
            self.source,
        )
        self.source.pods[own.uid] = own


@pytest.mark.parametrize("step", ["asked", "written", "told"])
async def test_a_crash_in_between_is_made_good(tmp_path: Path, step: str) -> None:
    """The plugin shrank it, and the agent died before it wrote that down, or told the runtime."""
    plugins, own, saved = shipped(FOUR, OWN), asking("a", 3), tmp_path / "saved"
    (tmp_path / "first").mkdir()
    node = Restarted(tmp_path / "first", plugins, own)
    await node.run(own, told(3))
    plugin = node.manager._plugins.of("cpu")
    assert plugin is not None

    def save() -> None:
        shutil.copytree(tmp_path / "first", saved)

    class Saving(CalledDirectly):
        async def call(self, method: Any, question: Any) -> Any:
            answer = await super().call(method, question)
            if method is ALLOCATE and step == "asked":
                save()
            return answer

    plugin.__class__ = Saving
    settings = await node.manager.resize_container(sandbox(own), "main", told(1))
    if step == "written":
        save()
    await node.manager.container_resized(sandbox(own), "main", "id-a", settings)
    if step == "told":
        await node.store.commit()
        save()
    node = Restarted(saved, plugins, own)
    if step != "told":
        with pytest.raises(AdmissionRejected, match="a resize of"):
            await node.run(asking("b", 2), told(2))
    # The runtime has the old amount unless it was told: what it has is what counts in the end.
    runtime = OneContainer(sandbox(own), "0-2", told(1 if step == "told" else 3))
    reconciler = node.manager.reconciler(runtime)
    for _ in range(4):
        await reconciler.look()
    await reconciler.stop()
    assert node.own("a").amount == (1 if step == "told" else 3)
    assert runtime.applied.cpus == str(node.own("a").cpus)
    await node.run(asking("b", 1), told(1))


async def test_a_resize_that_went_by_is_found_at_the_runtime(tmp_path: Path) -> None:
    """While the agent was away, or where it is not asked."""
    node, own = a_node(tmp_path), asking("a", 2)
    await node.run(own, told(2))
    runtime = OneContainer(sandbox(own), "0-1", told(1))
    reconciler = node.manager.reconciler(runtime)
    await reconciler.look()
    assert node.own("a").amount == 2, "it may be under way: the next look will tell"
    await reconciler.look()
    await reconciler.look()
    await reconciler.stop()
    assert node.own("a").amount == 1
    assert runtime.applied.cpus == "0"


async def test_a_wish_that_the_runtime_never_told_is_not_followed(tmp_path: Path) -> None:
    """A resize was asked for when the numbers were first seen, and over before the next look."""
    node, own = a_node(tmp_path), asking("a", 1)
    await node.admit(own)
    node.source.pods["a"] = asking("a", 2)
    runtime = OneContainer(sandbox(own), "0", told(1))
    reconciler = node.manager.reconciler(runtime)
    for _ in range(3):
        await reconciler.look()
    node.source.pods["a"] = own
    for _ in range(3):
        await reconciler.look()
    await reconciler.stop()
    assert node.own("a").amount == 1
    assert runtime.applied.cpus == "0"


async def test_a_resize_before_anything_was_told_is_found_at_the_runtime(tmp_path: Path) -> None:
    """Of a container that was adopted by its specification, and resized before it was looked at."""
    node, own = a_node(tmp_path), asking("a", 2)
    await node.admit(own)
    node.source.pods["a"] = asking("a", 1)
    runtime = OneContainer(sandbox(own), "0-3", told(1))
    reconciler = node.manager.reconciler(runtime)
    for _ in range(3):
        await reconciler.look()
    await reconciler.stop()
    assert node.own("a").amount == 1
    assert runtime.applied.cpus == "0"


AMOUNTS = st.sampled_from([0.5, 1, 1.5, 2, 3, 5])
STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "resize", "fail", "end"]), st.sampled_from("abc"), AMOUNTS),
    max_size=25,
)


@given(STEPS, st.sampled_from(["none", "restricted", "single-numa-node"]))
@example([("start", "a", 0.5), ("start", "b", 5), ("resize", "a", 5)], "none")
@settings(deadline=None)
def test_whatever_happens_nobody_has_what_is_anothers(
    steps: list[tuple[str, str, float]], policy: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(played(Path(directory), steps, policy))


async def played(directory: Path, steps: list[tuple[str, str, float]], policy: str) -> None:
    node = a_node(directory, machine=TWICE_FOUR, policy=policy, settle_seconds=0.0)
    running: dict[str, float] = {}
    for what, uid, cpus in steps:
        await step(node, running, what, uid, cpus)
        held = {each.pod: each for each in node.plugins["cpu"].state.holdings}
        assert {uid: each.amount for uid, each in held.items()} == running
        own = [cpu for each in held.values() for cpu in each.cpus]
        assert len(own) == len(set(own))
        for each, holding in held.items():
            if holding.cpus:
                assert node.held(each) == {"main": str(holding.cpus)}
            assert not node.store.pods[each].containers["main"].resizing


async def step(node: Resized, running: dict[str, float], what: str, uid: str, cpus: float) -> None:
    """What can be done is done; what is refused changes nothing."""
    own = asking(uid, running.get(uid, cpus))
    if what == "start" and uid not in running:
        with suppress(AdmissionRejected):
            await node.run(own, told(cpus))
            running[uid] = cpus
    elif what == "end" and uid in running:
        await node.end(uid)
        del running[uid]
    elif what == "resize" and uid in running:
        with suppress(AdmissionRejected):
            await node.resize(own, told(cpus))
            running[uid] = cpus
        await brought_into_line(node, own)
    elif what == "fail" and uid in running:
        with suppress(AdmissionRejected):
            await node.manager.resize_container(sandbox(own), "main", told(cpus))
            await node.manager.resize_failed(sandbox(own), "main")
        await brought_into_line(node, own)


async def brought_into_line(node: Resized, own: Pod) -> None:
    """As the reconciler does it. One that shares may have been left fewer CPUs by others, of which
    it hears when a resize is refused: it is marked until it runs on these."""
    now = node.manager.current_settings(own.uid, "main")
    await node.manager.container_resized(sandbox(own), "main", f"id-{own.uid}", now)
