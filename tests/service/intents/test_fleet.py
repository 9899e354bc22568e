"""The fleet snapshot: as true as the ledger, read again only where something changed."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from dovetail.core.claim import Claim
from dovetail.intents.documents.errors import BadDocument
from dovetail.intents.fleet import ClusterHealth, FleetSnapshot
from dovetail.kube.mirror.snapshots import snapshot_of
from dovetail.ledger import Ledger, Transaction, claims
from dovetail.ledger.intents import clusters, nodes, objects
from dovetail.ledger.intents.clusters import (
    ClusterReport,
    ClusterSource,
    SeenCluster,
    UnreachablePolicy,
)
from dovetail.ledger.intents.node_names import consumer_uuid, device_uuid, root_name, root_uuid
from dovetail.ledger.intents.observed import DeviceUse
from dovetail.service.intents.cluster_hook import ClusterHook
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.ports import KeptObject
from tests.support.intents import hardware
from tests.support.intents.seen import gpus, node, pod, seen

C1, C2 = "p1+c1", "p1+c2"
GPU = "nvidia.com/gpu"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def write(ledger: Ledger, operation: Any) -> Any:
    return await asyncio.wrap_future(ledger.write(operation))


def snapshot(*found: Any) -> SeenCluster:
    return SeenCluster(nodes=tuple(found), observed_at=999_990)


def posted(tx: Transaction, cluster: str, *found: Any) -> None:
    clusters.register(tx, cluster, ClusterSource.SNAPSHOT)
    clusters.enter_snapshot(tx, cluster, snapshot(*found))


def names(fleet: FleetSnapshot, cluster: str) -> list[str]:
    return [each.node.metadata.name for each in fleet.clusters[cluster].nodes]


async def test_a_commit_is_in_the_next_snapshot_and_other_clusters_are_as_before(
    ledger: Ledger,
) -> None:
    keeper = FleetKeeper(ledger, clock=Clock())
    assert (await keeper.fresh()).clusters == {}
    await write(ledger, lambda tx: posted(tx, C2, seen(node("n1"))))
    await write(ledger, lambda tx: posted(tx, C1, seen(node("n2")), seen(node("n1"))))
    first = await keeper.fresh()
    assert list(first.clusters) == [C1, C2]
    assert names(first, C1) == ["n1", "n2"]
    assert first.clusters[C1].observed_at == 999_990

    web = pod("web", "n1", requests={"cpu": 1})
    await write(ledger, lambda tx: nodes.enter(tx, C1, [seen(node("n1"), [web])]))
    second = await keeper.fresh()
    assert second.clusters[C1].version != first.clusters[C1].version
    assert second.clusters[C2] is not None
    assert second.clusters[C2].version == first.clusters[C2].version
    (one, two) = second.clusters[C1].nodes
    assert [each.metadata.name for each in one.pods] == ["web"]
    assert one.held == {"cpu": 1000, "pods": 1}
    assert two is first.clusters[C1].nodes[1], "it was not read again"
    assert first.clusters[C1].nodes[0].held == {}, "who has the old one keeps it as it was"

    await write(ledger, lambda tx: nodes.leave(tx, C1, ["n2"]))
    assert names(await keeper.fresh(), C1) == ["n1"]
    await write(ledger, lambda tx: clusters.forget(tx, C2))
    assert list((await keeper.fresh()).clusters) == [C1]


async def test_a_keeper_that_starts_late_sees_what_one_sees_that_followed(ledger: Ledger) -> None:
    followed = FleetKeeper(ledger, clock=Clock())
    await followed.fresh()
    for turn in range(3):
        pods = [pod(f"web-{turn}", "n1", requests={"cpu": 1})]
        await write(ledger, lambda tx, pods=pods: posted(tx, C1, seen(node("n1"), pods)))
        await followed.fresh()
    late = await FleetKeeper(ledger, clock=Clock()).fresh()
    now = await followed.fresh()
    without = {
        name: msgspec.structs.replace(each, version=0) for name, each in now.clusters.items()
    }
    assert without == {
        name: msgspec.structs.replace(each, version=0) for name, each in late.clusters.items()
    }


async def test_what_the_ledger_holds_is_on_the_node_that_was_charged(ledger: Ledger) -> None:
    keeper = FleetKeeper(ledger, clock=Clock())
    found = seen(
        node("n1", more={GPU: "4"}),
        [pod("web", "n1", requests={GPU: "1"})],
        devices=gpus("n1", "gpu-0", "gpu-1"),
        uses=[DeviceUse("gpu-0", "uid-web")],
    )
    await write(ledger, lambda tx: posted(tx, C1, found))
    claim = Claim(
        consumer=consumer_uuid("d1", "fwall", C1),
        project="p",
        user="u",
        allocations={
            root_uuid(C1, "n1"): {"CUSTOM_MILLICPU": 4000, "CUSTOM_NVIDIA_COM_GPU": 2},
            device_uuid(root_name(C1, "n1"), "gpu-1"): {"CUSTOM_DEVICE": 1},
        },
    )
    await write(ledger, lambda tx: claims.replace(tx, [claim]))
    (one,) = (await keeper.fresh()).clusters[C1].nodes
    assert one.held == {"cpu": 4000, GPU: 3, "pods": 1}
    assert one.held_devices == {"gpu-0", "gpu-1"}
    await write(ledger, lambda tx: claims.release(tx, claim.consumer))
    (one,) = (await keeper.fresh()).clusters[C1].nodes
    assert one.held == {GPU: 1, "pods": 1}
    assert one.held_devices == {"gpu-0"}


async def test_a_cluster_that_does_not_answer_counts_by_its_policy(ledger: Ledger) -> None:
    clock = Clock()
    keeper = FleetKeeper(ledger, silent_seconds=60, clock=clock)

    def register(tx: Transaction) -> None:
        clusters.register(tx, C1, ClusterSource.MIRROR)
        clusters.register(tx, C2, ClusterSource.MIRROR, UnreachablePolicy.LAST_KNOWN)
        clusters.register(tx, "p1+c3", ClusterSource.NONE)

    async def states() -> list[ClusterHealth]:
        return [each.state for each in (await keeper.fresh()).clusters.values()]

    await write(ledger, register)
    unknown = ClusterHealth.UNKNOWN
    assert await states() == [unknown, unknown, unknown]

    def told(state: ClusterHealth, why: str = "") -> Any:
        reports = {name: ClusterReport(state, int(clock.now), why) for name in (C1, C2, "p1+gone")}
        return lambda tx: clusters.tell(tx, reports)

    await write(ledger, told(ClusterHealth.READY))
    assert await states() == [ClusterHealth.READY, ClusterHealth.READY, unknown]
    await write(ledger, told(ClusterHealth.AWAY, "connection refused"))
    assert await states() == [ClusterHealth.AWAY, ClusterHealth.STALE, unknown]
    assert (await keeper.fresh()).clusters[C1].why == "connection refused"
    await write(ledger, told(ClusterHealth.READY))
    clock.now += 61
    assert await states() == [ClusterHealth.AWAY, ClusterHealth.STALE, unknown]
    assert "60 s" in (await keeper.fresh()).clusters[C1].why, "whoever told of it may be gone"
    clock.now -= 3600
    assert await states() == [ClusterHealth.READY, ClusterHealth.READY, unknown], "clocks differ"


async def test_labels_of_clusters_are_those_of_their_documents(ledger: Ledger) -> None:
    def label(tx: Transaction) -> None:
        path = "cluster-providers/p1/clusters/c1"
        objects.add(tx, "cluster-providers/p1", None, "cluster-provider", "{}")
        objects.add(tx, path, "cluster-providers/p1", "cluster", "{}")
        for name in ("edge", "gpu"):
            objects.add(tx, f"{path}/labels/{name}", path, "cluster-label", "{}")

    keeper = FleetKeeper(ledger, clock=Clock())
    await write(ledger, lambda tx: posted(tx, C1, seen(node("n1"))))
    before = (await keeper.fresh()).clusters[C1]
    assert before.labels == frozenset()
    await write(ledger, label)
    found = (await keeper.fresh()).clusters[C1]
    assert found.labels == {"edge", "gpu"}
    assert found.version != before.version


async def test_what_was_observed_later_is_not_told_to_be_older(ledger: Ledger) -> None:
    await write(ledger, lambda tx: clusters.register(tx, C1, ClusterSource.MIRROR))
    for at in (50, 40):
        report = ClusterReport(ClusterHealth.READY, at)
        await write(ledger, lambda tx, report=report: clusters.tell(tx, {C1: report}))
    assert (await FleetKeeper(ledger, clock=Clock()).fresh()).clusters[C1].observed_at == 50


# -- the hook --------------------------------------------------------------------------------------


def kept(name: str, document: Any = None, **files: bytes) -> KeptObject:
    return KeptObject(
        path=f"cluster-providers/p1/clusters/{name}",
        kind="cluster",
        document={"metadata": {"name": name}, **(document or {})},
        files=files,
    )


async def test_posted_snapshots_are_what_the_fleet_has(ledger: Ledger) -> None:
    hook = ClusterHook(snapshot_of)
    for cluster, has in hardware.CLUSTERS.items():
        text = msgspec.json.encode(hardware.kubectl_list(has))
        await write(ledger, lambda tx, c=cluster, t=text: hook.kept(tx, kept(c, snapshot=t)))
    fleet = await FleetKeeper(ledger).fresh()
    assert list(fleet.clusters) == ["p1+c1", "p1+c2", "p1+c3", "p1+c4"]
    for cluster, has in hardware.CLUSTERS.items():
        expected = hardware.inventory(cluster, hardware.kubectl_list(has))
        found = fleet.clusters[expected.name]
        assert found.state is ClusterHealth.READY
        assert [each.node.status.allocatable for each in found.nodes] == [
            each.node.status.allocatable for each in expected.nodes
        ]
        for mine, theirs in zip(found.nodes, expected.nodes, strict=True):
            assert [p.key for p in mine.pods] == [p.key for p in theirs.pods]
            assert mine.held["cpu"] == hardware.SYSTEM_MILLICPU


async def test_a_snapshot_that_is_refused_leaves_no_cluster(ledger: Ledger) -> None:
    hook = ClusterHook(snapshot_of)
    bad = msgspec.json.encode({"kind": "List", "items": [{"kind": "Node", "metadata": {}}]})
    with pytest.raises(BadDocument, match=r"spec.snapshot.items\[0\].metadata.name"):
        await write(ledger, lambda tx: hook.kept(tx, kept("c1", snapshot=bad)))
    assert (await FleetKeeper(ledger).fresh()).clusters == {}


async def test_a_cluster_that_is_deleted_goes_but_for_what_is_held(ledger: Ledger) -> None:
    hook = ClusterHook(snapshot_of)
    text = msgspec.json.encode(hardware.kubectl_list(hardware.CLUSTERS["c1"]))
    await write(ledger, lambda tx: hook.kept(tx, kept("c1", snapshot=text)))
    claim = Claim(
        consumer=consumer_uuid("d1", "fwall", C1),
        project="p",
        user="u",
        allocations={root_uuid(C1, "n1"): {"CUSTOM_MILLICPU": 4000}},
    )
    await write(ledger, lambda tx: claims.replace(tx, [claim]))
    await write(ledger, lambda tx: hook.dropping(tx, "cluster-providers/p1/clusters/c1"))
    assert (await FleetKeeper(ledger).fresh()).clusters == {}
    rows = await write(ledger, lambda tx: tx.rows("SELECT name FROM providers ORDER BY name"))
    assert rows == [("p1+c1/n1",)]


async def test_a_document_without_a_snapshot_leaves_the_one_before(ledger: Ledger) -> None:
    hook = ClusterHook(snapshot_of)
    text = msgspec.json.encode(hardware.kubectl_list(hardware.CLUSTERS["c1"]))
    await write(ledger, lambda tx: hook.kept(tx, kept("c1", snapshot=text)))
    policy = {"spec": {"unreachable": "lastKnown"}}
    await write(ledger, lambda tx: hook.kept(tx, kept("c1", policy)))
    found = (await FleetKeeper(ledger).fresh()).clusters[C1]
    assert found.state is ClusterHealth.READY
    assert len(found.nodes) == 2
    await write(ledger, lambda tx: hook.kept(tx, kept("c1", kubeconfig=b"...")))
    found = (await FleetKeeper(ledger).fresh()).clusters[C1]
    assert found.state is ClusterHealth.UNKNOWN, "now the mirror has to tell"
