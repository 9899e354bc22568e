"""The manager's memory is durable when it says so, and waits for the disk no more than needed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.pod_state import AgentState, ContainerHolding, PodState
from dovetail.node.state.store import AppliedSettings, NotWritten, StateStore
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo


def pod(uid: str) -> PodState:
    return PodState(uid=uid, namespace="n", name=uid, admitted=True)


class Slow(Checkpoint):
    """A disk that takes as long as it is told to."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.go, self.saved = threading.Event(), list[AgentState]()

    def save(self, state: AgentState) -> None:
        assert self.go.wait(10)
        self.saved.append(state)
        super().save(state)


async def test_commits_that_wait_together_share_a_write(tmp_path: Path) -> None:
    disk = Slow(tmp_path)
    store = StateStore(disk)

    async def admit(uid: str) -> None:
        store.put(pod(uid))
        await store.commit()
        assert uid in Checkpoint(tmp_path).load().state.pods

    work = [asyncio.create_task(admit(str(each))) for each in range(10)]
    await asyncio.sleep(0.01)
    disk.go.set()
    await asyncio.gather(*work)
    await store.commit()
    assert len(disk.saved) <= 2


async def test_nothing_changed_nothing_written(tmp_path: Path) -> None:
    disk = Slow(tmp_path)
    disk.go.set()
    store = StateStore(disk)

    store.put(pod("a"))
    await store.commit()
    store.put(pod("a"))
    await store.commit()
    assert len(disk.saved) == 1


async def test_what_is_not_written_is_said(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path / "missing")
    store.put(pod("a"))
    with pytest.raises(NotWritten, match="No such file or directory"):
        await store.commit()


def test_a_pod_that_goes_takes_along_what_was_applied(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path)
    for uid in "ab":
        store.put(pod(uid))
        store.applied[uid, "main"] = AppliedSettings(id="1", settings=ContainerSettings())
    store.drop("a", ["cpu"])
    assert list(store.applied) == [("b", "main")]
    assert store.state.removals == {"a": ("cpu",)}
    store.drop("a", ["gpu"])
    assert store.state.removals == {"a": ("cpu", "gpu")}
    store.forget_removal("a", "cpu")
    store.forget_removal("a", "gpu")
    assert store.state.removals == {}


def test_news_of_containers_that_are_not_there_are_none(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path)
    assert not store.refresh("a", "main", {"cpu": ResourceAllocationInfo()})
    store.put(pod("a"))
    assert not store.refresh("a", "main", {"cpu": ResourceAllocationInfo()})


def test_news_add_to_what_is_known_and_end_what_is_missing(tmp_path: Path) -> None:
    store = StateStore.open(tmp_path)
    known = ContainerHolding(
        allocations={"memory": ResourceAllocationInfo()}, missing=("cpu", "gpu")
    )
    store.put(PodState(uid="a", namespace="n", name="a", containers={"main": known}))
    assert store.refresh("a", "main", {"cpu": ResourceAllocationInfo(allocation_result="1")})
    found = store.pods["a"].containers["main"]
    assert list(found.allocations) == ["cpu", "memory"]
    assert found.missing == ("gpu",)
