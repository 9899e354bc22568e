"""The client of CRI on a real containerd."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest
from structlog.testing import capture_logs

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import ContainerPhase, RuntimeRefused
from dovetail.node.cri.client import CriRuntime, pid_of
from dovetail.node.wire import cri
from dovetail.wire.rpc import Refused, Served, offer
from tests.support.node import pods_on
from tests.support.node.containerd import Containerd
from tests.support.node.cri_client import Client
from tests.support.node.pods_on import container_config, create, run, sandbox_config, start


@pytest.fixture
def directory() -> Iterator[Path]:
    """With a short name: a socket's path has to be."""
    made = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    yield made
    shutil.rmtree(made)


@asynccontextmanager
async def with_runtime(server: Containerd) -> AsyncIterator[tuple[Client, CriRuntime]]:
    client, runtime = Client(server.socket), CriRuntime(server.socket)
    try:
        yield client, runtime
        await pods_on.remove_all(client)
    finally:
        await runtime.close()
        await client.channel.close()


async def test_sandboxes_and_containers_are_seen(server: Containerd) -> None:
    async with with_runtime(server) as (client, runtime):
        sandbox = sandbox_config(server, "s1", labels={"l": "v"}, annotations={"a": "b"})
        pod = await run(client, sandbox)
        config = container_config("c1", {"cpuset_cpus": "0,1", "cpu_shares": 300})
        made = [
            await create(client, pod, sandbox, config | {"metadata": {"name": name}})
            for name in ("waits", "runs", "ended")
        ]
        await start(client, made[1])
        await start(client, made[2])
        await client("StopContainer", container_id=made[2], timeout=0)
        (seen,) = await runtime.sandboxes()
        assert (seen.uid, seen.namespace, seen.name, seen.id) == ("uid-s1", "default", "s1", pod)
        assert (seen.labels, seen.annotations) == ({"l": "v"}, {"a": "b"})
        by_name = {each.container: each for each in await runtime.containers()}
        assert {name: each.state for name, each in by_name.items()} == {
            "waits": ContainerPhase.CREATED,
            "runs": ContainerPhase.RUNNING,
            "ended": ContainerPhase.EXITED,
        }
        assert {each.pod_uid for each in by_name.values()} == {"uid-s1"}
        assert by_name["runs"].id == made[1]
        assert by_name["runs"].applied.cpus == "0-1"
        assert by_name["runs"].applied.numbers["CpuShares"] == 300
        assert by_name["ended"].applied == ContainerSettings()


async def test_update_applies_what_is_given_and_leaves_the_rest(server: Containerd) -> None:
    async with with_runtime(server) as (client, runtime):
        sandbox = sandbox_config(server, "s2")
        pod = await run(client, sandbox)
        config = container_config("c1", {"cpuset_cpus": "0", "cpu_shares": 300})
        pid = await start(client, id_ := await create(client, pod, sandbox, config))
        await runtime.update(id_, ContainerSettings(cpus="1"))
        await runtime.update(id_, ContainerSettings(envs={"A": "only at the start"}))
        assert pods_on.pinned(pid).cpus == "1"
        (seen,) = await runtime.containers()
        assert (seen.applied.cpus, seen.applied.numbers["CpuShares"]) == ("1", 300)


async def test_refused_update_says_why_and_changes_nothing(server: Containerd) -> None:
    async with with_runtime(server) as (client, runtime):
        sandbox = sandbox_config(server, "s3")
        pod = await run(client, sandbox)
        config = container_config("c1", {"cpuset_cpus": "0"})
        pid = await start(client, id_ := await create(client, pod, sandbox, config))
        with pytest.raises(RuntimeRefused, match=r"UpdateContainerResources at .*cpuset"):
            await runtime.update(id_, ContainerSettings(cpus="4095"))
        assert pods_on.pinned(pid).cpus == "0"
        with pytest.raises(RuntimeRefused, match="not_found"):
            await runtime.update("nobody", ContainerSettings(cpus="0"))


async def test_kernel_has_the_last_word_on_what_is_in_force(server: Containerd) -> None:
    async with with_runtime(server) as (client, runtime):
        sandbox = sandbox_config(server, "s4")
        pod = await run(client, sandbox)
        config = container_config("c1", {"cpuset_cpus": "0"})
        pid = await start(client, await create(client, pod, sandbox, config))
        await runtime.containers()
        file = os.open(pods_on.cpuset(pid) / "cpuset.cpus", os.O_WRONLY)
        os.write(file, b"1")
        os.close(file)
        (seen,) = await runtime.containers()
        assert seen.applied.cpus == "1"
        await runtime.update(seen.id, ContainerSettings(cpus="0"))
        assert pods_on.pinned(pid).cpus == "0"


async def test_runtime_that_is_not_there_is_refused_with_words(tmp_path: Path) -> None:
    runtime = CriRuntime(tmp_path / "c.sock")
    with pytest.raises(RuntimeRefused, match=r"ListPodSandbox at .*unavailable"):
        await runtime.sandboxes()
    await runtime.close()


async def test_container_that_the_runtime_cannot_tell_about_does_not_hide_the_others(
    directory: Path,
) -> None:
    listed = tuple(
        cri.Container(id=id_, pod_sandbox_id="s", state=cri.ContainerState.RUNNING)
        for id_ in ("broken", "gone", "whole")
    )

    async def containers(_: cri.ListContainersRequest) -> cri.ListContainersResponse:
        return cri.ListContainersResponse(containers=listed)

    async def sandboxes(_: cri.ListPodSandboxRequest) -> cri.ListPodSandboxResponse:
        return cri.ListPodSandboxResponse(items=(cri.PodSandbox(id="s"),))

    async def status(question: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        if question.container_id == "broken":
            raise Refused(grpc.StatusCode.UNKNOWN, "its metadata can't be read")
        if question.container_id == "gone":
            raise Refused(grpc.StatusCode.NOT_FOUND, "no such container")
        return cri.ContainerStatusResponse()

    server, runtime = grpc.aio.server(), CriRuntime(directory / "c.sock")
    handlers = [
        Served(cri.LIST_CONTAINERS, containers),
        Served(cri.LIST_POD_SANDBOX, sandboxes),
        Served(cri.CONTAINER_STATUS, status),
    ]
    offer(server, handlers)
    server.add_insecure_port(f"unix:{directory}/c.sock")
    await server.start()
    with capture_logs() as logs:
        assert [each.id for each in await runtime.containers()] == ["whole"]
    (told,) = logs
    assert (told["event"], told["container"]) == ("container not seen", "broken")
    assert "its metadata can't be read" in told["why"]
    await runtime.close()
    await server.stop(None)


@pytest.mark.parametrize("info", [{}, {"info": "{"}, {"info": "[]"}, {"info": '{"pid": "x"}'}])
def test_process_that_the_runtime_does_not_tell(info: dict[str, str]) -> None:
    assert pid_of(cri.ContainerStatusResponse(info=info)) == 0
