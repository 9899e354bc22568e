"""The mirror on real API servers, with nodes that kwok plays: stopped, hanging, and back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dovetail.intents.fleet import ClusterHealth
from dovetail.kube.api.limits import ClientLimits
from dovetail.kube.api.port import KubeApi
from dovetail.kube.runtime.cluster_clients import ClusterClients, connect_to
from dovetail.ledger import Ledger, open_ledger
from dovetail.ledger.intents.clusters import ClusterAccess
from dovetail.podfit.objects import Node
from tests.kube.conftest import needs_kubernetes
from tests.kube.mirror.rig import Rig, told
from tests.support import databases
from tests.support.kube.cluster import Cluster, node_object

EAST, WEST = "p1+east", "p1+west"
READY, AWAY = ClusterHealth.READY, ClusterHealth.AWAY
READS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "mirror"},
    "rules": [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices", "resourceclaims"],
            "verbs": ["list", "watch"],
        },
    ],
}
"""All that the mirror needs; with `nodes/proxy`, kubelets are asked for their CPU policies."""
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mirror"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mirror"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mirror"}],
}
IMPATIENT = ClientLimits(connect_seconds=2.0, answer_seconds=5.0, silence_seconds=20.0)


class RealRig(Rig):
    @asynccontextmanager
    async def connect(self, access: ClusterAccess) -> AsyncIterator[KubeApi]:
        async with connect_to(access, limits=IMPATIENT) as client:
            yield client


def pod(name: str, node: str, cpu: str = "1") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
            ],
            "tolerations": [{"operator": "Exists"}],
        },
    }


def has_account(cluster: Cluster) -> bool:
    """Without one, no pods are made."""
    return cluster.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    needs_kubernetes()
    with ExitStack() as stack:
        both = [
            stack.enter_context(Cluster.running(tmp_path_factory.mktemp(name)))
            for name in ("east", "west")
        ]
        for each in both:
            each.start_controllers()
            each.start_kwok(grace=False)
            each.apply(READS, BINDING)
            each.await_that(partial(has_account, each), "an account")
        yield both[0], both[1]


@pytest.fixture
def ledger(sqlite_with_tables: str, tmp_path: Path) -> Iterator[Ledger]:
    """One kind is enough: what differs between them has its tests in memory."""
    opened = open_ledger(databases.copied(sqlite_with_tables, tmp_path / "ledger.db"))
    yield opened
    opened.close()


async def test_two_clusters_are_followed_with_no_more_rights_than_to_read(
    clusters: tuple[Cluster, Cluster], ledger: Ledger
) -> None:
    rig = RealRig(ledger)
    for cluster, name, cpu in zip(clusters, (EAST, WEST), ("4", "6"), strict=True):
        cluster.add_nodes(2, prefix="n", cpu=cpu)
        await rig.register(name, cluster.user("mirror").read_bytes())
    async with rig.running():
        for name, cpu in ((EAST, "4"), (WEST, "6")):
            found = await rig.seen(name, lambda each: each.state is READY)
            assert [one.node.status.allocatable["cpu"] for one in found.nodes] == [cpu, cpu]
        east, west = clusters
        east.kubectl("create", "-f", "-", given=pod("web", "n-0"))
        found = await rig.seen(EAST, lambda each: told(each)["n-0"] == (["web"], 1000))
        await rig.seen(EAST, lambda each: each.nodes[0].pods[0].status.phase == "Running")
        assert told((await rig.snapshot()).clusters[WEST])["n-0"] == ([], 0)
        east.kubectl("delete", "pod", "web", "--wait=false")
        await rig.seen(EAST, lambda each: told(each)["n-0"] == ([], 0))
        east.cordon("n-0")
        await rig.seen(EAST, lambda each: each.nodes[0].node.spec.unschedulable)
        east.set_ready("n-1", "Unknown")
        await rig.seen(
            EAST, lambda each: each.nodes[1].node.status.conditions[0].status == "Unknown"
        )
        west.kubectl("delete", "node", "n-1")
        await rig.seen(WEST, lambda each: list(told(each)) == ["n-0"])
        west.kubectl("create", "-f", "-", given=node_object("n-1", cpu="2"))
        found = await rig.seen(WEST, lambda each: len(each.nodes) == 2)
        assert found.nodes[1].node.status.allocatable["cpu"] == "2"


async def test_devices_of_slices_are_free_until_a_claim_has_them(
    clusters: tuple[Cluster, Cluster], ledger: Ledger
) -> None:
    cluster = clusters[1]
    cluster.add_nodes(1, prefix="gpu")
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "gpu-0-gpus"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "gpu-0",
                "pool": {"name": "gpu-0", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "a"}, {"name": "b"}],
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "training", "namespace": "default"},
            "spec": {
                "devices": {
                    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
                }
            },
        },
    )
    rig = RealRig(ledger)
    await rig.register(WEST, cluster.user("mirror").read_bytes())
    async with rig.running():
        found = await rig.seen(WEST, lambda each: any(one.devices for one in each.nodes))
        (one,) = (each for each in found.nodes if each.node.metadata.name == "gpu-0")
        assert [each.name for each in one.devices] == [
            "gpu.example.com.gpu-0.a",
            "gpu.example.com.gpu-0.b",
        ]
        assert one.devices_by_claim
        assert not one.held_devices
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "gpu-0", "device": "b"}
        status = {"status": {"allocation": {"devices": {"results": [result]}}}}
        answer, said = cluster.request(
            "PATCH",
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/training/status",
            status,
        )
        assert answer == 200, said
        await rig.seen(
            WEST,
            lambda each: any("gpu.example.com.gpu-0.b" in one.held_devices for one in each.nodes),
        )


async def test_a_server_that_hangs_and_one_that_is_gone_are_told_and_caught_up_with(
    clusters: tuple[Cluster, Cluster], ledger: Ledger
) -> None:
    east, west = clusters
    rig = RealRig(ledger)
    for cluster, name in zip(clusters, (EAST, WEST), strict=True):
        await rig.register(name, cluster.user("mirror").read_bytes())
    async with rig.running():
        for name in (EAST, WEST):
            await rig.seen(name, lambda each: each.state is READY)
        east.apiserver.send_signal(signal.SIGSTOP)
        try:
            away = await rig.seen(EAST, lambda each: each.state is AWAY)
            assert "no answer" in away.why
            assert away.nodes
            assert (await rig.snapshot()).clusters[WEST].state is READY
        finally:
            east.apiserver.send_signal(signal.SIGCONT)
        await rig.seen(EAST, lambda each: each.state is READY)

        west.apiserver.kill()
        await rig.seen(WEST, lambda each: each.state is AWAY)
        west.apiserver.start()
        await asyncio.to_thread(west.await_ready)
        west.add_nodes(1, prefix="late")
        found = await rig.seen(WEST, lambda each: each.state is READY and "late-0" in told(each))
        assert found.why == ""


async def test_a_client_follows_the_kubeconfig_that_is_registered(
    clusters: tuple[Cluster, Cluster], ledger: Ledger
) -> None:
    rig = RealRig(ledger)
    clients = ClusterClients(ledger)
    try:
        assert await clients.client_of(EAST) is None
        await rig.register(EAST, clusters[0].kubeconfig.read_bytes())
        first = await clients.client_of(EAST)
        assert first is not None
        assert await clients.client_of(EAST) is first
        before = {each.key for each in (await first.list(Node)).items}
        await rig.register(EAST, clusters[1].kubeconfig.read_bytes())
        second = await clients.client_of(EAST)
        assert second is not None
        assert second is not first
        assert {each.key for each in (await second.list(Node)).items} != before
        await rig.drop(EAST)
        assert await clients.client_of(EAST) is None
    finally:
        clients.close()
