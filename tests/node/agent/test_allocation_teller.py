"""Pods with devices of classes are told what they were given, once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dovetail.devices.allocation_document import ALLOCATION
from dovetail.node.agent.allocation_teller import AllocationTeller
from dovetail.node.report.allocation_words import allocation_words
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.state.store import StateStore
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo

CPUS = ResourceAllocationInfo(oci_property_name="CpusetCpus", allocation_result="2-3")
MEMS = ResourceAllocationInfo(oci_property_name="CpusetMems", allocation_result="1")
GPU = ResourceAllocationInfo(device_ids=("0000:3b:00.0",), allocated_quantity=1.0)
NIC = ResourceAllocationInfo(envs={"NIC": "eth1"})


def pod(uid: str, *, cpus: str = "2-3", annotated: bool = True, admitted: bool = True) -> PodState:
    allocations = {
        "NIC": NIC,
        "class:vendor.com/gpu": GPU,
        "memory": MEMS,
        "cpu": msgspec.structs.replace(CPUS, allocation_result=cpus),
    }
    return PodState(
        uid=uid,
        namespace="default",
        name=f"pod-{uid}",
        admitted=admitted,
        annotations={ALLOCATION: "{}"} if annotated else {},
        containers={"main": ContainerHolding(allocations=allocations, missing=("fpga",))},
    )


class Told:
    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def __call__(self, *, namespace: str, name: str, uid: str, words: str) -> None:
        assert (namespace, name) == ("default", f"pod-{uid}")
        self.said.append((uid, words))


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore.open(tmp_path)


def test_words_name_cpus_memory_and_devices() -> None:
    assert allocation_words(pod("a")) == (
        "main: CPUs 2-3, memory of NUMA node 1, NIC (NIC=eth1), vendor.com/gpu 0000:3b:00.0, "
        "no fpga, whose plugin was down"
    )
    assert allocation_words(PodState(uid="a", namespace="n", name="p")) == ""


async def test_who_is_admitted_is_told_and_again_when_it_is_given_otherwise(
    store: StateStore,
) -> None:
    store.put(pod("before"))
    told = Told()
    teller = AllocationTeller(store, told)
    await teller.look()
    store.put(pod("a", admitted=False))
    store.put(pod("plain", annotated=False))
    await teller.look()
    assert told.said == []
    store.put(pod("a"))
    await teller.look()
    await teller.look()
    assert told.said == [("a", allocation_words(pod("a")))]
    store.put(pod("a", cpus="4-5"))
    await teller.look()
    assert told.said[1:] == [("a", allocation_words(pod("a", cpus="4-5")))]
