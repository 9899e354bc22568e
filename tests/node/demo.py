"""A node to try the agent on, without root: `python -m tests.node.demo` starts it and waits.

Agent and plugins are the real ones, each a process of its own. The machine is the one of the
specification's examples, written down as a sysfs tree, and the runtime only pretends to start
containers: nobody has 80 CPUs at hand.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc.aio

from dovetail.node.topology import Nic
from tests.node.agent.rig import Rig, a_kubelet, a_node
from tests.node.plugins.rig import spec_machine
from tests.support.paths import DOVETAIL

ROLES = """\
[reserved]
cpus = "0-1,40-41"
memory = { 0 = "500Mi", 1 = "500Mi" }

[pools.online]
size = 24
min = 8

[pools.offline]
size = 8

[roles.online-micro_service]
cpu = { pool = "online" }

[roles.ETL]
cpu = { pool = "offline" }

[roles.storage-service]
cpu = { exclusive = true, numa = "single" }
memory = { bind = true, numa = "single" }
anti_affinity = ["reranker"]

[roles.reranker]
cpu = { exclusive = true, numa = "single" }
memory = { bind = true, numa = "single" }
nic = {}

[nics.eth0]
ipv6 = "fdbd:dc05:3:154::20"

[nics.eth1]
ipv6 = "fdbd:dc05:3:155::20"
"""

NEEDS = '[roles.reranker]\nneeds = ["NIC"]\n'

NICS = (Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=25_000))

PODS = (
    ("web", "online-micro_service", {"cpu": 4, "memory": "8Gi"}),
    ("etl", "ETL", {"cpu": 2, "memory": "4Gi"}),
    ("storage", "storage-service", {"cpu": 20, "memory": "40Gi"}),
    ("reranker", "reranker", {"cpu": 10, "memory": "20Gi"}),
    ("second-reranker", "reranker", {"cpu": 16, "memory": "20Gi"}),
)
"""Their names, roles and requests. The last does not fit any more."""


@asynccontextmanager
async def a_demo_node() -> AsyncIterator[Rig]:
    """With all plugins up and all pods tried."""
    async with a_node(spec_machine(NICS)) as rig:
        roles, config = rig.directory / "roles.toml", rig.directory / "agent.toml"
        roles.write_text(ROLES)
        config.write_text(NEEDS)
        for kind in ("cpu", "memory", "nic"):
            await rig.plugin(kind, roles)
        await rig.start("--topology-policy=single-numa-node", f"--config={config}")
        await rig.up("cpu", "memory", "NIC")
        async with a_kubelet(rig) as kubelet:
            for name, role, wanted in PODS:
                annotations = rig.manifest(f"uid-{name}", name, wanted, role)
                with suppress(grpc.aio.AioRpcError):
                    await kubelet.start(f"uid-{name}", name, annotations)
        yield rig


async def main() -> None:
    async with a_demo_node() as rig:
        print(f"A node with {len(PODS)} pods is in {rig.directory}. In another terminal:")
        print(f"  cd {rig.directory}")
        print(f"  export PATH={DOVETAIL.parent}:$PATH")
        print(f"  export DOVETAIL_AGENT_CONTROL_SOCKET={rig.control}")
        print("and then the commands of docs/node-agent.md. Ctrl-C ends it.", flush=True)
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
