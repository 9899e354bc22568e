"""The NRI plugin in a real containerd, with real containers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected, ContainerPhase, RuntimeRefused
from dovetail.node.cri.client import CriRuntime
from dovetail.node.nri.runtime import NriRuntime
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount
from tests.support.node import pods_on
from tests.support.node.containerd import Containerd
from tests.support.node.cri_client import Client
from tests.support.node.gates import Scripted
from tests.support.node.pods_on import Pinned, container_config, create, run, sandbox_config, start


@asynccontextmanager
async def connected(server: Containerd, gate: Scripted) -> AsyncIterator[NriRuntime]:
    seen = CriRuntime(server.socket)
    runtime = NriRuntime(server.nri_socket, seen, gate)
    await runtime.start()
    async with asyncio.timeout(10):
        await runtime.ready()
    try:
        yield runtime
    finally:
        await runtime.stop()
        await seen.close()


@asynccontextmanager
async def with_plugin(
    server: Containerd, gate: Scripted
) -> AsyncIterator[tuple[Client, NriRuntime]]:
    client = Client(server.socket)
    try:
        async with connected(server, gate) as runtime:
            yield client, runtime
            await pods_on.remove_all(client)
    finally:
        await client.channel.close()


async def test_container_is_adjusted_at_its_creation(
    newer_server: Containerd, tmp_path: Path
) -> None:
    server = newer_server
    (tmp_path / "given").write_text("mounted")
    gate = Scripted(
        c1=ContainerSettings(
            numbers={"CpuShares": 512},
            cpus="1",
            mems="0",
            envs={"NIC": "eth7", "OWN": "from a plugin"},
            annotations={"example.org/netns": "/run/netns/7"},
            mounts=(Mount(container_path="/m", host_path=str(tmp_path), read_only=True),),
            devices=(
                DeviceSpec(container_path="/dev/nothing", host_path="/dev/null", permissions="rw"),
            ),
        )
    )

    async with with_plugin(server, gate) as (client, runtime):
        sandbox = sandbox_config(server, "n1", labels={"l": "v"})
        pod = await run(client, sandbox)
        config = container_config("c1", envs=[{"key": "OWN", "value": "from the pod"}])
        id_ = await create(client, pod, sandbox, config)
        pid = await start(client, id_)
        assert pods_on.pinned(pid) == Pinned("1", "0", "1", "0")
        script = "echo $NIC $OWN; cat /m/given; [ -c /dev/nothing ] && echo ' device'; touch /m/x"
        seen = await client("ExecSync", container_id=id_, cmd=["/bin/sh", "-c", script])
        assert seen.stdout == b"eth7 from the pod\nmounted device\n"
        assert not (tmp_path / "x").exists(), "the mount is read-only"
        assert gate.made == [("uid-n1", "c1", id_)]
        (admitted,) = gate.admitted
        assert (admitted.uid, admitted.id, admitted.labels["l"]) == ("uid-n1", pod, "v")
        (seen_sandbox,) = await runtime.sandboxes()
        assert (seen_sandbox.uid, seen_sandbox.id) == (admitted.uid, admitted.id)
        (observed,) = await runtime.containers()
        assert (observed.id, observed.pod_uid, observed.container) == (id_, "uid-n1", "c1")
        assert observed.state is ContainerPhase.RUNNING
        assert (observed.applied.cpus, observed.applied.mems) == ("1", "0")
    assert {*gate.left} == {"uid-n1"}


async def test_running_container_is_moved(newer_server: Containerd) -> None:
    async with with_plugin(newer_server, Scripted(c1=ContainerSettings(cpus="1"))) as (
        client,
        runtime,
    ):
        sandbox = sandbox_config(newer_server, "n2")
        pod = await run(client, sandbox)
        id_ = await create(client, pod, sandbox, container_config("c1"))
        pid = await start(client, id_)
        await runtime.update(id_, ContainerSettings(numbers={"CpuShares": 512}, cpus="0", mems="0"))
        assert pods_on.pinned(pid).cpus == "0"
        (observed,) = await runtime.containers()
        assert observed.applied.cpus == "0"
        assert observed.applied.numbers["CpuShares"] == 512
        with pytest.raises(RuntimeRefused):
            await runtime.update(id_, ContainerSettings(cpus="4095"))
        assert pods_on.pinned(pid).cpus == "0"


async def test_rejected_pod_leaves_nothing(newer_server: Containerd) -> None:
    gate = Scripted()
    gate.rejects = AdmissionRejected("topology_affinity", "no NUMA node has 4 free CPUs")

    async with with_plugin(newer_server, gate) as (client, runtime):
        with pytest.raises(grpc.aio.AioRpcError, match="no NUMA node has 4 free CPUs"):
            await run(client, sandbox_config(newer_server, "n3"))
        assert not (await client("ListPodSandbox")).items
        assert not await runtime.sandboxes()


async def test_updates_of_the_kubelet_do_not_undo_the_pinning(newer_server: Containerd) -> None:
    async with with_plugin(newer_server, Scripted(c1=ContainerSettings(cpus="1", mems="0"))) as (
        client,
        _runtime,
    ):
        sandbox = sandbox_config(newer_server, "n4")
        pod = await run(client, sandbox)
        pid = await start(client, id_ := await create(client, pod, sandbox, container_config("c1")))
        change = {"cpuset_cpus": "0", "cpu_shares": 700}
        await client("UpdateContainerResources", container_id=id_, linux=change)
        assert pods_on.pinned(pid).cpus == "1"
        status = (await client("ContainerStatus", container_id=id_)).status
        assert status.resources.linux.cpu_shares == 700


async def test_resize_has_what_the_gate_gives_or_is_refused_with_the_reason(
    newer_server: Containerd,
) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with with_plugin(newer_server, gate) as (client, _runtime):
        sandbox = sandbox_config(newer_server, "n6")
        pod = await run(client, sandbox)
        pid = await start(client, id_ := await create(client, pod, sandbox, container_config("c1")))
        gate.given["c1"] = ContainerSettings(cpus="0-1", mems="0")
        change = {"cpu_shares": 2048, "cpu_quota": 200000, "cpu_period": 100000}
        await client("UpdateContainerResources", container_id=id_, linux=change)
        assert pods_on.pinned(pid).cpus == "0-1"
        ((uid, name, asked),) = gate.resizes
        assert (uid, name) == ("uid-n6", "c1")
        assert asked.numbers == {"CpuShares": 2048, "CpuQuota": 200000, "CpuPeriod": 100000}
        gate.rejects = AdmissionRejected("plugin_refused", "3 CPUs are wanted, none is free")
        with pytest.raises(grpc.aio.AioRpcError, match="3 CPUs are wanted"):
            await client("UpdateContainerResources", container_id=id_, linux={"cpu_shares": 3072})
        status = (await client("ContainerStatus", container_id=id_)).status
        assert status.resources.linux.cpu_shares == 2048


async def test_connects_again_and_knows_what_runs(newer_server: Containerd) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with with_plugin(newer_server, gate) as (client, runtime):
        sandbox = sandbox_config(newer_server, "n5")
        pod = await run(client, sandbox)
        pid = await start(client, id_ := await create(client, pod, sandbox, container_config("c1")))
        await asyncio.to_thread(newer_server.stop)
        await asyncio.sleep(0.1)
        with pytest.raises(RuntimeRefused, match="not connected"):
            await runtime.update(id_, ContainerSettings(cpus="0"))
        await asyncio.to_thread(newer_server.start)
        async with asyncio.timeout(20):
            await runtime.ready()
        assert [each.uid for each in await runtime.sandboxes()] == ["uid-n5"]
        (observed,) = await runtime.containers()
        assert (observed.id, observed.state) == (id_, ContainerPhase.RUNNING)
        assert observed.applied.cpus == "1"
        await runtime.update(id_, ContainerSettings(cpus="0"))
        assert pods_on.pinned(pid).cpus == "0"
