"""The node agent's devices end up on the node, where resource classes find them."""

from __future__ import annotations

import asyncio

import msgspec

from dovetail.kube.classes.sources import devices_of
from dovetail.node.topology import Nic
from dovetail.podfit.objects import Node
from tests.node.agent.rig import a_node
from tests.node.plugins.rig import spec_machine
from tests.support.kube.cluster import Cluster

NICS = (Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=100_000))


async def test_an_agent_publishes_its_machine(cluster: Cluster) -> None:
    cluster.add_nodes(1, prefix="agent")

    def speeds() -> dict[str, str]:
        _, told = cluster.request("GET", "/api/v1/nodes/agent-0")
        found = devices_of(msgspec.json.decode(told, type=Node))
        return {each.name: each.properties["speed"] for each in found if each.kind == "nic"}

    try:
        async with a_node(spec_machine(NICS)) as rig:
            await rig.start(
                "--devices-publish",
                "--devices-node=agent-0",
                f"--devices-kubeconfig={cluster.kubeconfig}",
            )
            await asyncio.to_thread(cluster.await_that, lambda: bool(speeds()), "devices")
        assert speeds() == {"eth0": "25000Mbps", "eth1": "100000Mbps"}
    finally:
        cluster.kubectl("delete", "node", "agent-0")
