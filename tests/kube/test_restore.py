"""A cluster that is stopped and started keeps what it has; restored from a backup it has less, and
informers come to see it as it is."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable

from dovetail.kube.api.client import connect
from dovetail.kube.runtime.informer import Informer
from dovetail.podfit.objects import Node
from tests.support.kube.cluster import Cluster, node_object


def restart(cluster: Cluster, meanwhile: Callable[[], object]) -> None:
    cluster.apiserver.kill()
    cluster.etcd.kill()
    meanwhile()
    cluster.etcd.start()
    cluster.apiserver.start()
    cluster.await_ready()


async def until_seen(informer: Informer[Node], *names: str) -> None:
    async with asyncio.timeout(60):
        while set(informer.store) != set(names):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_an_informer_sees_what_a_restored_backup_undid(own_cluster: Cluster) -> None:
    data, backup = own_cluster.directory / "etcd", own_cluster.directory / "backup"

    def restore() -> None:
        shutil.rmtree(data)
        shutil.copytree(backup, data)

    own_cluster.add_nodes(1)
    own_cluster.etcd.kill()
    shutil.copytree(data, backup)
    own_cluster.etcd.start()
    own_cluster.await_ready()

    async with connect(str(own_cluster.kubeconfig)) as api, asyncio.TaskGroup() as group:
        informer = Informer(api, Node)
        running = group.create_task(informer.run())
        for number in range(1, 20):
            await api.create(Node, node_object(f"node-{number}"))
        await until_seen(informer, *(f"node-{number}" for number in range(20)))
        await asyncio.to_thread(restart, own_cluster, restore)
        await until_seen(informer, "node-0")
        await api.create(Node, node_object("later"))
        await until_seen(informer, "node-0", "later")
        running.cancel()
