"""The whole agent on a real containerd: daemon and plugins as processes, containers for real.

A client plays the kubelet. What is checked is what the kernel holds the containers' processes to.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from dovetail.node.topology import synthetic
from tests.node.agent.rig import Rig, a_node
from tests.support.loops import eventually
from tests.support.node import pods_on
from tests.support.node.containerd import Containerd
from tests.support.node.cri_client import Client
from tests.support.node.pods_on import Pinned, container_config, create, run, sandbox_config, start

ROLES = """
[pools.online]
cpus = "{online}"

[pools.offline]
cpus = "{offline}"

[roles.web]
cpu = {{ pool = "online" }}
memory = {{ bind = true }}

[roles.etl]
cpu = {{ pool = "offline" }}
memory = {{ bind = true }}

[roles.storage]
cpu = {{ exclusive = true }}
memory = {{ bind = true }}
"""

ON_FIRST, ON_SECOND = Pinned("0", "0", "0", "0"), Pinned("1", "0", "1", "0")


class Node:
    """A containerd, the agent's way to it, and somebody who starts pods."""

    def __init__(self, rig: Rig, server: Containerd, client: Client, flags: tuple[str, ...]):
        self.rig, self.server, self.client, self._flags = rig, server, client, flags

    def roles(self, online: str, offline: str) -> Path:
        file = self.rig.directory / "roles.toml"
        draft = file.with_suffix(".draft")
        draft.write_text(ROLES.format(online=online, offline=offline))
        draft.rename(file)
        return file

    async def start_agent(self) -> None:
        # One that was killed left it behind, and it would be taken for the new one's.
        self.rig.control.unlink(missing_ok=True)
        await self.rig.start(*self._flags)
        await self.rig.up("cpu", "memory")

    async def stop_agent(self, number: int) -> None:
        assert self.rig.agent
        await self.rig.agent.end(number)

    async def pod(self, name: str, role: str, cpus: int = 1) -> tuple[str, int]:
        """The id of its sandbox, and the process of its container."""
        wanted = {"cpu": cpus, "memory": "64Mi"}
        annotations = self.rig.manifest(f"uid-{name}", name, wanted, role)
        sandbox = sandbox_config(self.server, name, annotations=dict(annotations))
        id_ = await run(self.client, sandbox)
        container = await create(self.client, id_, sandbox, container_config("container0"))
        return id_, await start(self.client, container)

    async def held(self) -> set[str]:
        """Names of pods in the agent's state."""
        return {pod["name"] for pod in (await self.rig.ask("state"))["pods"]}

    def knowing(self, name: str) -> set[str]:
        """Who has the pod in its file; a plugin that never gave anything has none."""
        directory = self.rig.directory
        files = {"agent": directory / "state/qos_resource_manager_state"}
        files |= {kind: directory / f"state-{kind}/{kind}.json" for kind in ("cpu", "memory")}
        return {
            who
            for who, file in files.items()
            if file.exists() and f"uid-{name}" in file.read_text()
        }


def pinned_soon(pid: int, expected: Pinned) -> Awaitable[None]:
    return eventually(lambda: pods_on.pinned(pid) == expected, 30)


@asynccontextmanager
async def a_real_node(
    server: Containerd, binary: Path, *, nri: bool, agent: bool = True
) -> AsyncIterator[Node]:
    """Without the `agent` its plugins run, and the runtime, which takes pods itself."""
    async with a_node(synthetic(1, 1, 2, 1)) as rig:
        flags = [f"--runtime-socket={server.socket}"]
        if nri:
            flags += ["--runtime-backend=nri", f"--runtime-nri-socket={server.nri_socket}"]
        client = Client(rig.endpoint if agent and not nri else server.socket, binary)
        node = Node(rig, server, client, tuple(flags))
        for kind in ("cpu", "memory"):
            await rig.plugin(kind, node.roles("0", "1"))
        if agent:
            await node.start_agent()
        try:
            yield node
            await pods_on.remove_all(client)
        finally:
            await client.channel.close()


@pytest.fixture(params=["proxy", "nri"])
def way(request: pytest.FixtureRequest) -> tuple[Containerd, Path, bool]:
    """A containerd, its program, and whether it asks us itself."""
    if request.param == "nri":
        newer: Containerd = request.getfixturevalue("newer_server")
        return newer, newer.program, True
    server: Containerd = request.getfixturevalue("server")
    return server, server.program, False


async def test_containers_are_pinned_and_follow_their_pools(
    way: tuple[Containerd, Path, bool],
) -> None:
    server, binary, nri = way
    async with a_real_node(server, binary, nri=nri) as node:
        _, web = await node.pod("web", "web")
        _, etl = await node.pod("etl", "etl")
        assert pods_on.pinned(web) == ON_FIRST
        assert pods_on.pinned(etl) == ON_SECOND
        node.roles(online="1", offline="0")
        await pinned_soon(web, ON_SECOND)
        await pinned_soon(etl, ON_FIRST)


async def test_pinning_survives_the_agent_and_the_runtime(
    way: tuple[Containerd, Path, bool],
) -> None:
    server, binary, nri = way
    async with a_real_node(server, binary, nri=nri) as node:
        id_, pid = await node.pod("web", "web")
        before = await node.rig.ask("state")
        for how in (signal.SIGTERM, signal.SIGKILL):
            await node.stop_agent(how)
            assert pods_on.pinned(pid) == ON_FIRST
            await node.start_agent()
            assert (await node.rig.ask("state"))["pods"] == before["pods"]
        server.restart()
        assert pods_on.pinned(pid) == ON_FIRST
        node.roles(online="1", offline="0")
        await pinned_soon(pid, ON_SECOND)
        await pods_on.remove(node.client, id_)
        assert await node.held() == {"web"}, "its manifest is still there"
        assert node.knowing("web") == {"agent", "cpu", "memory"}
        node.rig.forget("uid-web")
        await gone(node, "web")


async def test_pod_that_ran_before_the_agent_came_is_pinned(
    way: tuple[Containerd, Path, bool],
) -> None:
    server, binary, nri = way
    async with a_real_node(server, binary, nri=nri, agent=False) as node:
        id_, pid = await node.pod("early", "web")
        assert pods_on.pinned(pid).allowed_cpus != "0"
        await node.start_agent()
        await pinned_soon(pid, ON_FIRST)
        await pods_on.remove(node.client, id_)
        node.rig.forget("uid-early")
        await gone(node, "early")


async def test_rejected_pod_leaves_nothing_behind(way: tuple[Containerd, Path, bool]) -> None:
    server, binary, nri = way
    async with a_real_node(server, binary, nri=nri) as node:
        with pytest.raises(grpc.aio.AioRpcError, match="plugin_refused") as failed:
            await node.pod("greedy", "storage", cpus=5)
        assert "5 CPUs" in (failed.value.details() or "")
        listed = await node.client("ListPodSandbox")
        assert not [each for each in listed.items if each.metadata.name == "greedy"]
        await gone(node, "greedy")
        parent = server.cgroup.lstrip("/")
        assert {each.name for each in server.cgroups()} <= {parent}, "that stays of any pod"


async def gone(node: Node, name: str) -> None:
    """Until neither agent nor plugin knows it."""
    await eventually(lambda: not node.knowing(name))
    assert await node.held() == set()
