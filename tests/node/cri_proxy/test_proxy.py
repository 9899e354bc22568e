"""The proxy between a client that plays the kubelet and a real containerd with real containers."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected, RuntimeRefused
from dovetail.node.cri.client import CriRuntime
from dovetail.node.cri_proxy.proxy import Proxy
from dovetail.node.wire.listening import CannotServe
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount
from tests.support.node import pods_on
from tests.support.node.containerd import Containerd
from tests.support.node.cri_client import Client
from tests.support.node.gates import Scripted
from tests.support.node.pods_on import Pinned, container_config, create, run, sandbox_config, start


@asynccontextmanager
async def proxied(server: Containerd, gate: Scripted) -> AsyncIterator[Client]:
    proxy = Proxy(server.directory / "p.sock", server.socket, gate)
    await proxy.start()
    client = Client(server.directory / "p.sock")
    try:
        yield client
        await pods_on.remove_all(client)
    finally:
        await client.channel.close()
        await proxy.stop(0)


async def test_container_is_pinned_and_all_else_is_as_the_client_said(
    server: Containerd, tmp_path: Path
) -> None:
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

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p1", labels={"l": "v"}, annotations={"a": "b"})
        pod = await run(client, sandbox)
        config = container_config(
            "c1",
            {"cpu_shares": 333, "memory_limit_in_bytes": 64 << 20},
            envs=[{"key": "OWN", "value": "from the pod"}],
            labels={"app": "x"},
            annotations={"kept": "yes"},
        )
        container = await create(client, pod, sandbox, config)
        pid = await start(client, container)
        assert pods_on.pinned(pid) == Pinned("1", "0", "1", "0")
        status = (await client("ContainerStatus", container_id=container)).status
        assert status.resources.linux.cpu_shares == 512
        assert status.resources.linux.memory_limit_in_bytes == 64 << 20
        assert dict(status.labels) == {"app": "x"}
        assert dict(status.annotations) == {"kept": "yes", "example.org/netns": "/run/netns/7"}
        script = "echo $NIC $OWN; cat /m/given; [ -c /dev/nothing ] && echo ' device'; touch /m/x"
        seen = await client("ExecSync", container_id=container, cmd=["/bin/sh", "-c", script])
        assert seen.stdout == b"eth7 from the pod\nmounted device\n"
        assert not (tmp_path / "x").exists(), "the mount is read-only"
        assert gate.made == [("uid-p1", "c1", container)]
        (admitted,) = gate.admitted
        assert (admitted.uid, admitted.name, admitted.namespace) == ("uid-p1", "p1", "default")
        assert (admitted.labels, admitted.annotations) == ({"l": "v"}, {"a": "b"})
    assert gate.left == ["uid-p1"]


async def test_rejected_pod_leaves_nothing(server: Containerd) -> None:
    gate = Scripted()
    gate.rejects = AdmissionRejected("topology_affinity", "no NUMA node has 4 free CPUs")

    async with proxied(server, gate) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await run(client, sandbox_config(server, "p2"))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert caught.value.details() == "dovetail: topology_affinity: no NUMA node has 4 free CPUs"
        assert not (await client("ListPodSandbox")).items
    assert gate.left == []


async def test_pod_that_may_be_admitted_later_is_unavailable(server: Containerd) -> None:
    gate = Scripted()
    gate.rejects = AdmissionRejected("plugin_down", "the plugin of cpu is not there", later=True)

    async with proxied(server, gate) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await run(client, sandbox_config(server, "p2"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_rejected_container_is_not_created(server: Containerd) -> None:
    gate = Scripted()

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p3")
        pod = await run(client, sandbox)
        gate.rejects = AdmissionRejected("plugin_refused", "no")
        with pytest.raises(grpc.aio.AioRpcError, match="plugin_refused"):
            await create(client, pod, sandbox, container_config("c1"))
        gate.rejects = None
        assert not (await client("ListContainers")).containers
        assert gate.made == []


async def test_gate_hears_that_the_runtime_failed_to_make_an_admitted_pod(
    server: Containerd,
) -> None:
    gate = Scripted()

    async with proxied(server, gate) as client:
        bad = sandbox_config(server, "p4")
        with pytest.raises(grpc.aio.AioRpcError, match="no runtime for"):
            await client("RunPodSandbox", config=bad, runtime_handler="none-such")
        assert [each.runtime_class for each in gate.admitted] == ["none-such"]
    assert gate.left == ["uid-p4"]


async def test_updates_of_the_kubelet_do_not_undo_the_pinning(server: Containerd) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p5")
        pod = await run(client, sandbox)
        pid = await start(client, c1 := await create(client, pod, sandbox, container_config("c1")))
        await start(client, c2 := await create(client, pod, sandbox, container_config("c2")))
        for id_ in (c1, c2):
            change = {"cpuset_cpus": "0", "cpu_shares": 700}
            await client("UpdateContainerResources", container_id=id_, linux=change)
        assert pods_on.pinned(pid).cpus == "1"
        one, other = [
            (await client("ContainerStatus", container_id=id_)).status.resources.linux
            for id_ in (c1, c2)
        ]
        assert (one.cpuset_cpus, one.cpu_shares) == ("1", 700)
        assert (other.cpuset_cpus, other.cpu_shares) == ("0", 700), "not ours: as it was asked"
        assert gate.resizes[0] == (
            "uid-p5",
            "c1",
            ContainerSettings(numbers={"CpuShares": 700}, cpus="0"),
        )
        assert gate.resized == [("uid-p5", "c1", c1), ("uid-p5", "c2", c2)]


async def test_resize_has_what_the_gate_gives_or_is_refused_with_the_reason(
    server: Containerd,
) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p9")
        pod = await run(client, sandbox)
        pid = await start(client, c1 := await create(client, pod, sandbox, container_config("c1")))
        gate.given["c1"] = ContainerSettings(cpus="0-1", mems="0")
        await client("UpdateContainerResources", container_id=c1, linux={"cpu_shares": 2048})
        assert pods_on.pinned(pid).cpus == "0-1"
        gate.rejects = AdmissionRejected("plugin_refused", "3 CPUs are wanted, none is free")
        with pytest.raises(grpc.aio.AioRpcError, match="3 CPUs are wanted") as caught:
            await client("UpdateContainerResources", container_id=c1, linux={"cpu_shares": 3072})
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        status = (await client("ContainerStatus", container_id=c1)).status
        assert status.resources.linux.cpu_shares == 2048
        assert gate.not_resized == []


async def test_gate_hears_of_a_resize_that_the_runtime_did_not_do(server: Containerd) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p10")
        pod = await run(client, sandbox)
        await start(client, c1 := await create(client, pod, sandbox, container_config("c1")))
        gate.given["c1"] = ContainerSettings(cpus="4095", mems="0")
        with pytest.raises(grpc.aio.AioRpcError, match="cpuset"):
            await client("UpdateContainerResources", container_id=c1, linux={"cpu_shares": 700})
        assert gate.resized == []
    assert gate.not_resized == [("uid-p10", "c1")]


async def test_empty_ids_are_the_runtimes_to_answer_and_touch_no_pod(server: Containerd) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p8")
        pod = await run(client, sandbox)
        await create(client, pod, sandbox, container_config("c1"))
        await client("RemovePodSandbox", pod_sandbox_id="nobody")
        for method, name in (
            ("RemovePodSandbox", "pod_sandbox_id"),
            ("UpdateContainerResources", "container_id"),
        ):
            with suppress(grpc.aio.AioRpcError):
                await client(method, **{name: ""})
        assert [each.id for each in (await client("ListPodSandbox")).items] == [pod]
        assert (gate.asked, gate.left) == (["c1"], [])


@pytest.mark.parametrize("path", ["/runtime.v1.RuntimeService/Fly", "/runtime.v2.Other/Fly"])
async def test_method_that_the_runtime_does_not_know_is_unimplemented_each_time(
    server: Containerd, path: str
) -> None:
    async with proxied(server, Scripted()) as client:
        asking: Any = client.channel.unary_unary(path)

        async def refusal(_: int) -> grpc.StatusCode:
            with pytest.raises(grpc.aio.AioRpcError, match=r"unknown (method|service)") as failed:
                await asking(b"\x0a\x01x", timeout=60)
            return failed.value.code()

        found = [await refusal(turn) for turn in range(100)]
        found += await asyncio.gather(*map(refusal, range(100)))
        assert set(found) == {grpc.StatusCode.UNIMPLEMENTED}


async def test_restart_of_containerd_keeps_the_pinning_and_the_proxy(server: Containerd) -> None:
    gate = Scripted(c1=ContainerSettings(cpus="1", mems="0"))

    async with proxied(server, gate) as client:
        sandbox = sandbox_config(server, "p6")
        pod = await run(client, sandbox)
        pid = await start(client, id_ := await create(client, pod, sandbox, container_config("c1")))
        await asyncio.to_thread(server.restart)
        assert pods_on.pinned(pid) == Pinned("1", "0", "1", "0")
        runtime = CriRuntime(server.directory / "p.sock")
        async with asyncio.timeout(10):
            while True:
                try:
                    await runtime.update(id_, ContainerSettings(cpus="0"))
                    break
                except RuntimeRefused:
                    await asyncio.sleep(0.1)
        await runtime.close()
        # Through the proxy, where ours win.
        assert pods_on.pinned(pid).cpus == "1"


async def test_a_pod_without_uid_is_refused(server: Containerd) -> None:
    async with proxied(server, Scripted()) as client:
        config = sandbox_config(server, "p7") | {"metadata": {"name": "p7"}}
        with pytest.raises(grpc.aio.AioRpcError, match="uid") as caught:
            await run(client, config)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_socket_is_its_owners_only_and_taken_once(server: Containerd) -> None:
    async with proxied(server, Scripted()) as client:
        listen = server.directory / "p.sock"
        assert stat.S_IMODE(listen.stat().st_mode) == 0o600
        with pytest.raises(CannotServe, match="another process"):
            await Proxy(listen, server.socket, Scripted()).start()
        assert (await client("Version")).runtime_name == "containerd"
    assert not (server.directory / "p.sock").exists()


async def test_socket_of_one_that_died_is_replaced(server: Containerd) -> None:
    (server.directory / "p.sock").write_text("")

    async with proxied(server, Scripted()) as client:
        assert (await client("Version")).runtime_name == "containerd"


async def test_folder_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CannotServe, match="no socket can be made"):
        await Proxy(tmp_path / "file/p.sock", tmp_path / "c.sock", Scripted()).start()
