"""Random clusters and pods, decided by the real kube-scheduler and by the table: no difference.

`CASES=1000` tries more than the few that a test run has time for.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from dovetail.core.rows import Rows
from dovetail.kube.api.client import KubeClient, connect
from dovetail.podfit.objects import Namespace, Node, Pod
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.table import NodeTable
from tests.podfit.worlds import NAMESPACES, Json, World, world
from tests.support.kube.cluster import Cluster

CASES = int(os.environ.get("CASES", "40"))
PER_WORLD = 5
MARKER = "marker"
"""A node made last, which a pod is sent to: when it has arrived, kube-scheduler knows all nodes."""


@pytest.mark.timeout(120 + CASES)
async def test_kube_scheduler_decides_the_same(own_cluster: Cluster) -> None:
    for name, labels in NAMESPACES.items():
        own_cluster.make_namespace(name)
        told = [f"{key}={value}" for key, value in labels.items()]
        own_cluster.kubectl("label", "namespace", name, "fit=yes", *told)
    own_cluster.start_scheduler()
    await all_cases(str(own_cluster.kubeconfig))


async def all_cases(kubeconfig: str) -> None:
    bound = 0
    async with connect(kubeconfig) as api:
        for seed in range(0, CASES, PER_WORLD):
            made = world(Random(seed), placed=10, waiting=PER_WORLD)
            await build(api, made)
            table, rows = await table_of_all(api)
            for pod in made.waiting:
                bound += await decided_alike(api, table, rows, pod)
            await clear(api)
    assert CASES // 5 < bound < CASES - CASES // 5, "cases that are all alike show little"


async def build(api: KubeClient, made: World) -> None:
    for node in made.nodes:
        await api.create(Node, node)
    amounts = {"cpu": "1", "memory": "1Gi", "pods": "9"}
    keep_off = {"key": MARKER, "effect": "NoSchedule"}
    marker = {
        "metadata": {"name": MARKER},
        "spec": {"taints": [keep_off]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
    await api.create(Node, marker)
    for pod in made.placed:
        await api.create(Pod, pod)
    field = {"key": "metadata.name", "operator": "In", "values": [MARKER]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    how = "requiredDuringSchedulingIgnoredDuringExecution"
    scout = {
        "metadata": {"name": "scout", "namespace": "bare"},
        "spec": {
            "containers": [{"name": "c", "image": "any"}],
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {how: required}},
            "terminationGracePeriodSeconds": 0,
        },
    }
    await api.create(Pod, scout)
    await decision(api, "scout", "bare", final=False)


async def table_of_all(api: KubeClient) -> tuple[NodeTable, Rows]:
    rows = Rows()
    table = NodeTable(rows)
    for namespace in (await api.list(Namespace)).items:
        table.set_namespace(namespace)
    for node in (await api.list(Node)).items:
        table.set_node(node)
    for pod in (await api.list(Pod)).items:
        table.add_pod(pod)
    return table, rows


async def decided_alike(api: KubeClient, table: NodeTable, rows: Rows, asked: Json) -> bool:
    await api.create(Pod, asked)
    pod = await decision(api, asked["metadata"]["name"], asked["metadata"]["namespace"])
    verdict = table.filter(pod_request_of(pod))
    fitting = {rows.names[row] for row in verdict.mask.nonzero()[0]}
    told = [one.message for one in pod.status.conditions]
    differ = f"{verdict} Fitting: {fitting}. kube-scheduler: {pod.spec.node_name or told}. {asked}"
    if pod.spec.node_name:
        assert pod.spec.node_name in fitting, differ
        table.add_pod(pod)
        return True
    assert not fitting, differ
    await api.delete(Pod, pod.metadata.name, pod.metadata.namespace, grace=0)
    return False


async def decision(api: KubeClient, name: str, namespace: str, *, final: bool = True) -> Pod:
    """The pod as soon as it has a node or, if that is `final`, is said to fit none."""
    for _ in range(3000):
        pod = await api.get(Pod, name, namespace)
        told = [one.reason for one in pod.status.conditions if one.type == "PodScheduled"]
        if pod.spec.node_name or (final and "Unschedulable" in told):
            return pod
        assert told in ([], ["Unschedulable"]), str(pod.status.conditions)
        await asyncio.sleep(0.01)
    raise TimeoutError(f"kube-scheduler has not decided on {namespace}/{name}")


async def clear(api: KubeClient) -> None:
    for pod in (await api.list(Pod)).items:
        await api.delete(Pod, pod.metadata.name, pod.metadata.namespace, grace=0)
    for node in (await api.list(Node)).items:
        await api.delete(Node, node.metadata.name)
