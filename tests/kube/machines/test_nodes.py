"""Nodes that fail, are kept, go and come back, and others who write to them: marks and stock
follow, guests stay, and nobody's writes are lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dovetail.machines.names import MACHINE_GROUP, NODE_POOL
from tests.kube.machines.bed import MACHINES, Bed, machine_bed, simple_spec
from tests.support.kube.cluster import node_object

NODES = ("n0", "n1", "n2")
GROUP = "pool"
TYPE = "imperator.tenzen-y.io/small"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("nodes")) as running:
        running.cluster.apply(*(node_object(name, cpu="8", memory="64Gi") for name in NODES))
        yield running


@pytest.fixture
def pool(bed: Bed) -> Iterator[Bed]:
    """Six units on three nodes with room for four each."""
    spec = simple_spec(NODES, 6)
    for node in spec["nodePool"]:
        node["taint"] = True
    bed.create_machine(spec, GROUP)
    bed.await_ready(GROUP)
    bed.await_usage("small", (6, 6, 0, 0), GROUP)
    yield bed
    for name in bed.pods():
        bed.drop_pod(name)
    bed.drop_machine(GROUP)
    bed.await_that(lambda: not bed.pods() and not bed.sleepers(), "nothing left")


def marked(state: str) -> tuple[dict[str, str], dict[str, str], str]:
    marks = {TYPE: GROUP, NODE_POOL: state}
    return marks, marks, GROUP


def stock_on(bed: Bed, node: str) -> int:
    return bed.by_node(bed.sleepers())[node]


def set_mode(bed: Bed, node: str, mode: str) -> None:
    def change(spec: dict[str, Any]) -> None:
        for entry in spec["nodePool"]:
            if entry["name"] == node:
                entry["mode"] = mode

    bed.edit_machine(GROUP, change)


def test_maintenance_on_and_off(pool: Bed) -> None:
    pool.create_guests(["a", "b", "c"], "small", group=GROUP)
    pool.await_usage("small", (6, 3, 3, 0), GROUP)
    node = pool.pods()["a"]["spec"]["nodeName"]
    set_mode(pool, node, "maintenance")
    pool.await_that(lambda: pool.marks(node) == marked("maintenance"), "marks")
    pool.await_that(lambda: stock_on(pool, node) == 0, "stock gone")
    pool.await_usage("small", (6, 3, 3, 0), GROUP)
    assert pool.running() == ["a", "b", "c"]
    set_mode(pool, node, "ready")
    pool.await_that(lambda: pool.marks(node) == marked("ready"), "marks")
    assert pool.running() == ["a", "b", "c"]


def test_a_node_that_is_not_ready_and_is_again(pool: Bed) -> None:
    pool.create_guest("a", "small", group=GROUP)
    pool.await_usage("small", (6, 5, 1, 0), GROUP)
    node = pool.pods()["a"]["spec"]["nodeName"]
    pool.cluster.set_ready(node, "False")
    pool.await_that(lambda: pool.marks(node) == marked("not-ready"), "marks")
    pool.await_that(lambda: stock_on(pool, node) == 0, "stock gone")
    pool.await_usage("small", (6, 5, 1, 0), GROUP)
    assert list(pool.pods()) == ["a"]
    pool.cluster.set_ready(node, "True", "KubeletReady")
    pool.await_that(lambda: pool.marks(node) == marked("ready"), "marks")
    assert pool.running() == ["a"]


def test_a_cordoned_node_is_not_ready(pool: Bed) -> None:
    pool.cluster.cordon("n1")
    pool.await_that(lambda: pool.marks("n1") == marked("not-ready"), "marks")
    pool.cluster.cordon("n1", undo=True)
    pool.await_that(lambda: pool.marks("n1") == marked("ready"), "marks")


def test_too_little_is_left_and_it_says_so(pool: Bed) -> None:
    for node in ("n0", "n1"):
        set_mode(pool, node, "maintenance")
    pool.await_usage("small", (6, 4, 0, 0), GROUP)
    pool.await_that(
        lambda: (pool.condition("StockShort", GROUP) or ("",))[:2] == ("True", "NoRoom"), "short"
    )
    told = pool.condition("StockShort", GROUP)
    assert told is not None
    assert "2 of small" in told[2]
    assert "n2" in told[2]
    assert (pool.condition("Ready", GROUP) or ("",))[0] == "False"
    # It holds still: nothing flaps while nothing changes.
    sleepers = sorted(each["metadata"]["uid"] for each in pool.sleepers().values())
    time.sleep(2)
    assert sorted(each["metadata"]["uid"] for each in pool.sleepers().values()) == sleepers
    for node in ("n0", "n1"):
        set_mode(pool, node, "ready")
    pool.await_usage("small", (6, 6, 0, 0), GROUP)
    pool.await_ready(GROUP)


def test_a_node_that_is_deleted_and_comes_back(pool: Bed) -> None:
    pool.cluster.request("DELETE", "/api/v1/nodes/n0")
    try:
        # Numbers alone say nothing: they are the same before.
        pool.await_that(lambda: stock_on(pool, "n0") == 0, "stock gone")
        pool.await_usage("small", (6, 6, 0, 0), GROUP)
    finally:
        pool.cluster.apply(node_object("n0", cpu="8", memory="64Gi"))
    pool.await_that(lambda: pool.marks("n0") == marked("ready"), "marks")


def test_a_type_that_is_renamed(pool: Bed) -> None:
    def rename(spec: dict[str, Any]) -> None:
        spec["machineTypes"][0]["name"] = "tiny"
        for entry in spec["nodePool"]:
            entry["machineType"] = [{"name": "tiny"}]

    pool.edit_machine(GROUP, rename)
    pool.await_usage("tiny", (6, 6, 0, 0), GROUP)
    key = "imperator.tenzen-y.io/tiny"
    marks = {key: GROUP, NODE_POOL: "ready"}
    for node in NODES:
        pool.await_that(lambda node=node: pool.marks(node) == (marks, marks, GROUP), "marks")  # type: ignore[misc]
    assert pool.replicas("small", GROUP) is None
    assert [row["name"] for row in pool.status(GROUP)["availableMachines"]] == ["tiny"]


def test_a_node_that_leaves_the_pool_and_taint_that_goes_false(pool: Bed) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["nodePool"] = [each for each in spec["nodePool"] if each["name"] != "n0"]
        for entry in spec["nodePool"]:
            entry["taint"] = False

    pool.edit_machine(GROUP, change)
    labels = {TYPE: GROUP, NODE_POOL: "ready"}
    pool.await_that(lambda: pool.marks("n0") == ({}, {}, None), "marks gone")
    pool.await_that(lambda: pool.marks("n1") == (labels, {}, GROUP), "taints gone")
    pool.await_usage("small", (6, 6, 0, 0), GROUP)


def test_a_machine_that_is_deleted_leaves_nothing_but_its_guests(pool: Bed) -> None:
    pool.create_guest("a", "small", group=GROUP)
    pool.await_that(lambda: pool.running() == ["a"], "guest")
    pool.drop_machine(GROUP)
    pool.await_that(lambda: pool.get(f"{MACHINES}/{GROUP}") is None, "Machine gone")
    for node in NODES:
        pool.await_that(lambda node=node: pool.marks(node) == ({}, {}, None), "marks gone")  # type: ignore[misc]
    pool.await_that(lambda: not pool.sleepers(), "stock gone")
    path = "/apis/imperator.tenzen-y.io/v1alpha1/machinenodepools/pool-node-pool"
    pool.await_that(lambda: pool.get(path) is None, "node pool gone")
    assert pool.running() == ["a"]


def owners(pool: Bed) -> list[str]:
    """The StatefulSet of each sleeper that is there, by its UID."""
    return [pod["metadata"]["ownerReferences"][0]["uid"] for pod in pool.sleepers().values()]


def test_what_somebody_deletes_or_scales_by_hand_is_healed(pool: Bed) -> None:
    sets = "/apis/apps/v1/namespaces/dovetail/statefulsets/small-pool"
    pool.cluster.request("PATCH", sets, {"spec": {"replicas": 1}})
    pool.await_that(lambda: pool.replicas("small", GROUP) == 6, "replicas")
    deleted = pool.get(sets)["metadata"]["uid"]
    pool.cluster.request("DELETE", sets)
    pool.cluster.request("DELETE", "/api/v1/namespaces/dovetail/services/small-pool")
    pool.await_that(lambda: len(owners(pool)) == 6 and deleted not in owners(pool), "a new stock")
    pool.await_usage("small", (6, 6, 0, 0), GROUP)
    pool.await_that(
        lambda: pool.get("/api/v1/namespaces/dovetail/services/small-pool") is not None, "Service"
    )
    patch = {"metadata": {"labels": {NODE_POOL: None}, "annotations": {MACHINE_GROUP: None}}}
    pool.cluster.request("PATCH", "/api/v1/nodes/n1", patch)
    pool.await_that(lambda: pool.marks("n1") == marked("ready"), "marks")


def test_forty_writes_of_others_are_not_lost(pool: Bed) -> None:
    """To labels and taints of the same node, while the operator changes them back and forth."""

    def others() -> None:
        for n in range(20):
            write(pool, lambda node, n=n: node["metadata"]["labels"].update({f"other/l{n}": "x"}))
            taint = {"key": f"other/t{n}", "value": "x", "effect": "PreferNoSchedule"}
            write(pool, lambda node, taint=taint: node["spec"]["taints"].append(taint))

    with ThreadPoolExecutor() as threads:
        writing = threads.submit(others)
        while not writing.done():
            set_mode(pool, "n1", "maintenance")
            set_mode(pool, "n1", "ready")
        writing.result()
    pool.await_that(lambda: pool.marks("n1") == marked("ready"), "marks")
    node = pool.get("/api/v1/nodes/n1")
    assert {f"other/l{n}" for n in range(20)} <= node["metadata"]["labels"].keys()
    assert {f"other/t{n}" for n in range(20)} <= {each["key"] for each in node["spec"]["taints"]}


def write(bed: Bed, change: Any) -> None:
    """As a careful client does: with the version it read."""
    while True:
        node = bed.get("/api/v1/nodes/n1")
        node["spec"].setdefault("taints", [])
        change(node)
        status, answer = bed.cluster.request("PUT", "/api/v1/nodes/n1", node)
        if status == 200:
            return
        assert status == 409, answer


def test_idle_means_no_write(pool: Bed) -> None:
    """Versions of all that is watched stay as they are."""
    pool.create_guest("a", "small", group=GROUP)
    pool.await_usage("small", (6, 5, 1, 0), GROUP)
    time.sleep(1)
    before = versions(pool)
    time.sleep(5)
    assert versions(pool) == before


def versions(bed: Bed) -> dict[str, str]:
    paths = (
        MACHINES,
        "/apis/imperator.tenzen-y.io/v1alpha1/machinenodepools",
        "/apis/dovetail.dev/v1alpha1/machineshapes",
        "/api/v1/nodes",
        "/api/v1/namespaces/dovetail/pods",
        "/api/v1/namespaces/lab/pods",
        "/apis/apps/v1/namespaces/dovetail/statefulsets",
        "/api/v1/namespaces/dovetail/services",
        "/api/v1/namespaces/dovetail/configmaps",
        "/apis/events.k8s.io/v1/namespaces/lab/events",
    )
    return {
        f"{path}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for path in paths
        for each in json.loads(bed.cluster.request("GET", path)[1])["items"]
    }
