"""What a pod has as a whole is not resized while it runs, and that is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.state.pod_state import PodState
from tests.node.admission.shipped import OWN, TWICE_EIGHT, ShippedNode, configured, shipped
from tests.node.admission.test_resizing import ROLE, told
from tests.support.node.fakes import (
    TWO_NODES,
    FakeRuntime,
    Node,
    PodPieces,
    container,
    pod,
    sandbox,
)

POD_SCOPE = AdmissionConfiguration(
    policy=TWO_NODES.policy,
    nodes=TWO_NODES.nodes,
    distances=TWO_NODES.distances,
    scope=Scope.POD,
)


def two(uid: str, first: float, second: float, **more: Any) -> Pod:
    """With these CPUs of its containers."""
    amounts = {"main": first, "second": second}
    return pod(
        uid,
        *(
            container(name, at, cpu=cpus, limits={"cpu": cpus})
            for at, (name, cpus) in enumerate(amounts.items())
        ),
        annotations=ROLE,
        **more,
    )


def whole(uid: str, cpus: int) -> Pod:
    """Its containers have requests of their own, too."""
    amounts = {"cpu": Fraction(cpus)}
    return two(uid, 1, 1, requests=amounts, limits=amounts)


async def started(node: Any, of: Pod) -> None:
    node.source.pods[of.uid] = of
    await node.manager.admit_pod(sandbox(of))
    for each in of.containers:
        said = told(float(each.requests["cpu"]))
        settings = await node.manager.admit_container(sandbox(of), each.name, said)
        await node.manager.container_created(sandbox(of), each.name, f"id-{each.name}", settings)


def records(node: Any, uid: str, reason: str = "resize_of_pod") -> list[Any]:
    return [each for each in node.manager.gate.log.of(uid) if each.reason == reason]


async def test_by_scope_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    cpu, own = PodPieces(), two("a", 1, 1)
    node = Node(tmp_path, [cpu], [own], POD_SCOPE)
    await started(node, own)
    with pytest.raises(AdmissionRejected, match="cpu 2 as a whole, and would have 3") as caught:
        await node.manager.resize_container(sandbox(own), "main", told(2))
    assert (caught.value.reason, caught.value.later) == ("resize_of_pod", False)
    assert node.manager.current_settings("a", "main").cpus == "0-1"
    assert len(records(node, "a")) == 1
    # Back to what it was is no resize.
    assert (await node.manager.resize_container(sandbox(own), "main", told(1))).cpus == "0-1"
    assert len(cpu.asked("AllocateForPod")) == 1


async def test_by_scope_a_container_made_anew_starts_with_what_there_is(tmp_path: Path) -> None:
    """The kubelet has given it the amount: to refuse it would be for ever."""
    own = two("a", 1, 1)
    node = Node(tmp_path, [PodPieces()], [own], POD_SCOPE)
    await started(node, own)
    node.source.pods["a"] = two("a", 2, 1)  # type: ignore[union-attr]
    assert (await node.manager.admit_container(sandbox(own), "main", told(2))).cpus == "0-1"
    assert len(records(node, "a")) == 1
    node.source.pods["a"] = own  # type: ignore[union-attr]
    await node.manager.resize_container(sandbox(own), "main", told(1))
    assert len(records(node, "a")) == 1


async def test_by_scope_plugins_that_know_containers_resize_them(tmp_path: Path) -> None:
    node = ShippedNode(
        tmp_path, shipped(TWICE_EIGHT, OWN), configured("restricted", scope=Scope.POD)
    )
    own = two("a", 1, 1)
    await started(node, own)
    settings = await node.manager.resize_container(sandbox(own), "main", told(2))
    await node.manager.container_resized(sandbox(own), "main", "id-main", settings)
    assert node.held("a") == {"main": "0,2", "second": "1"}


def a_node(directory: Path) -> ShippedNode:
    return ShippedNode(directory, shipped(TWICE_EIGHT, OWN), configured("none"))


async def test_containers_within_the_pod_are_resized(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), whole("a", 4)
    await started(node, own)
    assert (await node.manager.resize_container(sandbox(own), "main", told(2))).cpus == "0-3"


async def test_a_container_with_its_pod_is_refused(tmp_path: Path) -> None:
    node, own = a_node(tmp_path), whole("a", 4)
    await started(node, own)
    node.source.pods["a"] = whole("a", 6)
    with pytest.raises(AdmissionRejected, match="cpu 4 as a whole, and would have 6"):
        await node.manager.resize_container(sandbox(own), "main", told(2))


async def test_a_pod_alone_is_noticed(tmp_path: Path) -> None:
    """The kubelet tells no container, and no runtime could say no."""
    node, own = a_node(tmp_path), whole("a", 4)
    await started(node, own)
    runtime = FakeRuntime(sandbox(own))

    async def looked() -> list[str]:
        with capture_logs() as logs:
            await node.manager.collector.collect(runtime, 1)
        return [each["why"] for each in logs if each["event"] == "pod not resized"]

    assert await looked() == []
    node.source.pods["a"] = whole("a", 6)
    (why,) = await looked()
    assert "was given cpu 4 as a whole, and would have 6" in why
    assert await looked() == [], "it is said once"
    (record,) = records(node, "a")
    assert record.words == why
    assert record.result == "admitted"
    assert {each.resource for each in record.resources} == {"cpu"}
    assert node.held("a") == {"main": "0-3", "second": "0-3"}
    node.source.pods["a"] = own
    assert await looked() == []
    node.source.pods["a"] = whole("a", 6)
    assert len(await looked()) == 1, "again"


async def test_a_sandbox_made_anew_has_the_new_amount(tmp_path: Path) -> None:
    node = a_node(tmp_path)
    await started(node, whole("a", 4))
    await started(node, whole("a", 6))
    assert node.held("a") == {"main": "0-5", "second": "0-5"}
    held = node.store.pod("a")
    assert held
    assert dict(held.whole) == {"cpu": "6"}
    await started(node, whole("a", 4))
    await node.manager.collector.collect(FakeRuntime(sandbox("a")), 1)
    assert len(records(node, "a")) == 1, "it has 6 still"


def test_an_older_checkpoint_has_none() -> None:
    old = msgspec.json.decode(b'{"uid":"a","namespace":"n","name":"p"}', type=PodState)
    assert old.whole == {}
