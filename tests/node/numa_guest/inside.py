"""Runs in the guest: a container made through the proxy has its CPUs and its pages on one node.

Then it is moved to the other node: its CPUs change and its pages follow, which cgroup v2 does.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

PROVEN = "numa guest: proven"
CALL_SECONDS = 300
"""For a call: the guest is slow."""

FILL = ("/bin/sh", "-c", "dd if=/dev/zero of=/dev/null bs=32M count=100000000")
NODES = Path("/sys/devices/system/node")


async def prove() -> bool:
    # Not above: the machine that builds the guest needs none of these.
    from dovetail.node.common.container_settings import ContainerSettings
    from dovetail.node.cri.client import CriRuntime
    from dovetail.node.cri_proxy.proxy import Proxy
    from tests.support.node import containerd, cri_client, pods_on
    from tests.support.node.gates import Scripted

    cpus = {node: (NODES / f"node{node}/cpulist").read_text().strip() for node in (0, 1)}
    print(f"nodes {cpus}", flush=True)
    with containerd.running(ready_seconds=CALL_SECONDS) as server:
        gate = Scripted(c1=ContainerSettings(cpus=cpus[1], mems="1"))
        proxy = Proxy(server.directory / "p.sock", server.socket, gate)
        await proxy.start()
        client = cri_client.Client(server.directory / "p.sock", seconds=CALL_SECONDS)
        sandbox = pods_on.sandbox_config(server, "numa")
        pod = await pods_on.run(client, sandbox)
        config = pods_on.container_config("c1", command=list(FILL))
        id_ = await pods_on.create(client, pod, sandbox, config)
        pid = await pods_on.start(client, id_)
        made = await settled("made on node 1", pid, cpus[1], 1)
        runtime = CriRuntime(server.socket, deadline_seconds=CALL_SECONDS)
        await runtime.update(id_, ContainerSettings(cpus=cpus[0], mems="0"))
        moved = await settled("moved to node 0", pid, cpus[0], 0)
        (seen,) = await runtime.containers()
        read_back = (seen.applied.cpus, seen.applied.mems) == (cpus[0], "0")
        print(f"read back: {seen.applied}", flush=True)
        await runtime.close()
        await pods_on.remove_all(client)
        await client.channel.close()
        await proxy.stop(0)
    return made and moved and read_back


async def settled(what: str, pid: int, cpus: str, node: int) -> bool:
    """Whether pinning and pages are as they should be, or become so in a while."""
    from tests.support.node import pods_on

    for _ in range(12):
        await asyncio.sleep(5)
        held, pages = pods_on.pinned(pid), anonymous_pages(pods_on.cpuset(pid))
        there = pages.get(node, 0)
        wanted = pods_on.Pinned(cpus, str(node), cpus, str(node))
        if held == wanted and there > 4096 and there > 0.95 * sum(pages.values()):
            print(f"{what}: {held}, anonymous pages by node {pages}", flush=True)
            return True
    print(f"{what}: NOT SO: {held}, anonymous pages by node {pages}", flush=True)
    return False


def anonymous_pages(group: Path) -> dict[int, int]:
    """By node, of all processes in the group."""
    found: dict[int, int] = {}
    for pid in (group / "cgroup.procs").read_text().split():
        for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
            if " anon=" in line:
                for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                    found[int(node)] = found.get(int(node), 0) + int(pages)
    return found


if __name__ == "__main__":
    proven = asyncio.run(prove())
    print(PROVEN if proven else "numa guest: failed", flush=True)
    sys.exit(not proven)
