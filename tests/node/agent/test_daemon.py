"""The daemon as a process: from the kubelet's call to the container, through restarts and ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import urllib.request
from pathlib import Path

import grpc
import grpc.aio
import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.wire import cri, pod_resources
from dovetail.wire.rpc import call, connect
from tests.node.agent.cri import Kubelet
from tests.node.agent.rig import Shares, a_kubelet, a_node, a_plugin
from tests.support.loops import eventually
from tests.support.node import raw_calls


async def test_a_pod_gets_its_cpus_and_gives_them_back() -> None:
    plugin = Shares()
    async with a_node() as rig, a_plugin(rig, plugin):
        await rig.start()
        await rig.up("cpu")
        async with a_kubelet(rig) as kubelet:
            rig.manifest("u1", "one", {"cpu": 2})
            rig.manifest("u2", "two", {"cpu": 3})
            first = await kubelet.start("u1", "one")
            await kubelet.start("u2", "two")
            assert rig.runtime.made("one").pinned == ("0-1", "")
            assert rig.runtime.made("two").pinned == ("2-4", "")
            # Its sandbox alone going does not end a pod; that nobody knows it any longer does.
            rig.forget("u1")
            await kubelet.remove(first)
            await eventually(lambda: "u1" not in plugin.held)
            assert sorted(plugin.held) == ["u2"]


async def test_a_pod_that_does_not_fit_is_not_started_and_says_why() -> None:
    plugin = Shares(cpus=2)
    async with a_node() as rig, a_plugin(rig, plugin):
        await rig.start()
        await rig.up("cpu")
        async with a_kubelet(rig) as kubelet:
            rig.manifest("u1", "one", {"cpu": 4})
            with pytest.raises(grpc.aio.AioRpcError, match="4 CPUs are wanted, 2 are free") as no:
                await kubelet.run("u1", "one")
            assert no.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert rig.runtime.sandboxes == {}
        (told,) = (await rig.ask("explain", "default/one"))["admissions"]
        assert (told["result"], told["reason"]) == ("rejected", "plugin_refused")
        assert "4 CPUs are wanted, 2 are free" in told["words"]
        explanation = told["explanation"]
        assert (explanation["verdict"], explanation["summary"]) == ("not_now", told["words"])
        assert explanation["nearest"][0]["findings"][0]["reason"] == "plugin_refused"
        code, said = await rig.say("explain", "one")
        assert (code, "plugin_refused" in said) == (0, True)


async def test_a_change_of_the_plugins_mind_reaches_the_container() -> None:
    plugin = Shares()
    async with a_node() as rig, a_plugin(rig, plugin):
        await rig.start()
        await rig.up("cpu")
        async with a_kubelet(rig) as kubelet:
            rig.manifest("u1", "one", {"cpu": 2})
            await kubelet.start("u1", "one")
        plugin.held["u1"]["container0"] = CpuSet({4, 5, 6})
        await eventually(lambda: rig.runtime.made("one").pinned == ("4-6", ""))
        await asyncio.sleep(1)
        assert rig.runtime.made("one").updates == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restart_keeps_assignments(number: signal.Signals) -> None:
    plugin = Shares()
    async with a_node() as rig, a_plugin(rig, plugin):
        agent = await rig.start()
        await rig.up("cpu")
        rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            sandbox = await kubelet.start("u1", "one")
        before = await rig.ask("state")
        await agent.end(number)
        rig.control.unlink(missing_ok=True)
        await rig.start()
        after = await rig.ask("state")
        assert without_ids(after) == without_ids(before)
        await rig.up("cpu")
        async with a_kubelet(rig) as kubelet:
            await kubelet.create(sandbox, "u1", "one")
        assert rig.runtime.made("one").pinned == ("0-1", "")


def without_ids(state: dict) -> list:  # type: ignore[type-arg]
    """What is known; which container runs is learned by looking."""
    return [
        {**pod, "containers": [{**each, "id": ""} for each in pod["containers"]]}
        for pod in state["pods"]
    ]


async def test_the_end_is_clean_and_lets_admissions_finish() -> None:
    plugin = Shares()
    plugin.delay = 1.0
    async with a_node() as rig, a_plugin(rig, plugin):
        agent = await rig.start()
        await rig.up("cpu")
        rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            starting = asyncio.create_task(kubelet.run("u1", "one"))
            await eventually(lambda: plugin.asked)
            ending = asyncio.create_task(agent.end())
            assert await starting in rig.runtime.sandboxes
            assert await ending == 0
        left = [
            each.name for each in (rig.control, rig.endpoint, rig.pod_resources) if each.exists()
        ]
        assert left == []
        assert agent.events[-1]["event"] == "agent ended"
        assert [each for each in agent.events if each["level"] in ("error", "critical")] == []


async def test_a_second_agent_does_not_start_on_the_same_state() -> None:
    async with a_node() as rig:
        agent = await rig.start()
        other = rig.run(*rig.flags, f"--control-socket={rig.directory / 'd.sock'}")
        assert await other.until_ended() == 6
        assert f"another agent uses it (process {agent.pid})" in other.output


@pytest.mark.parametrize(
    "flag",
    [
        "--state-dir={file}/x",
        "--control-socket={file}/x",
        "--pod-resources-socket={file}/x",
        "--runtime-listen={file}/x",
        "--plugins-directories={file}/x",
        "--plugins-legacy-directory={file}/x",
        "--metrics-address={taken}",
    ],
)
async def test_what_it_cannot_have_on_this_machine_is_told_in_a_line(flag: str) -> None:
    async with a_node() as rig:
        file = rig.directory / "file"
        file.touch()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            given = flag.format(file=file, taken=f"127.0.0.1:{port}")
            agent = rig.run(*rig.flags, given)
            assert await agent.until_ended() == 6
        told = agent.lines[-1]
        assert told.startswith("Error: ")
        assert given.partition("=")[2].removesuffix("/x") in told
        left = [each for each in rig.directory.iterdir() if each.suffix == ".sock"]
        assert left == [rig.runtime.socket]


async def test_a_corrupt_checkpoint_is_set_aside_and_told() -> None:
    async with a_node() as rig:
        (rig.directory / "state").mkdir()
        (rig.directory / "state" / "qos_resource_manager_state").write_text("{")
        await rig.start()
        (trouble,) = (await rig.ask("state"))["troubles"]
        assert "qos_resource_manager_state.corrupt-1" in trouble


async def test_a_plugin_of_before_is_down_not_unknown() -> None:
    plugin = Shares()
    async with a_node() as rig:
        async with a_plugin(rig, plugin):
            agent = await rig.start()
            await rig.up("cpu")
            checkpoint = rig.directory / "state" / "qos_resource_manager_state"
            await eventually(lambda: checkpoint.exists() and '"cpu"' in checkpoint.read_text())
        await agent.end()
        await rig.start()
        (told,) = (await rig.ask("plugins"))["plugins"]
        assert (told["resource"], told["state"]) == ("cpu", "gone")
        rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            with pytest.raises(grpc.aio.AioRpcError, match="plugin_down"):
                await kubelet.run("u1", "one")


async def test_outages_are_met_as_the_role_says() -> None:
    async with a_node() as rig:
        async with a_plugin(rig, Shares()):
            file = rig.directory / "agent.toml"
            file.write_text('[roles.batch]\noutage = "fail-open"\n')
            await rig.start(f"--config={file}")
            await rig.up("cpu")
        await eventually(lambda: not (rig.plugins / "cpu.sock").exists())
        async with a_kubelet(rig) as kubelet:
            role = rig.manifest("u1", "one", {"cpu": 2}, "batch")
            await kubelet.start("u1", "one", role)
            assert rig.runtime.made("one").pinned == ("", "")
            role = rig.manifest("u2", "two", {"cpu": 2}, "web")
            with pytest.raises(grpc.aio.AioRpcError, match="plugin_down"):
                await kubelet.run("u2", "two", role)
        (held,) = (await rig.ask("state"))["pods"]
        assert held["containers"][0]["missing"] == ["cpu"]


async def test_the_pod_resources_api_is_served() -> None:
    async with a_node() as rig, a_plugin(rig, Shares()):
        await rig.start()
        await rig.up("cpu")
        rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            await kubelet.start("u1", "one")
        assert rig.pod_resources.stat().st_mode & 0o777 == 0o600
        async with connect(str(rig.pod_resources)) as channel:
            question = pod_resources.ListPodResourcesRequest()
            (told,) = (await call(channel, pod_resources.LIST, question, 10)).pod_resources
            assert (told.name, told.containers[0].cpu_ids) == ("one", (0, 1))


async def test_metrics_are_served_on_loopback() -> None:
    async with a_node() as rig, a_plugin(rig, Shares()):
        agent = await rig.start("--metrics-address=127.0.0.1:0")
        await rig.up("cpu")
        (address,) = (each["address"] for each in agent.events if each["event"] == "metrics")
        text = await asyncio.to_thread(
            lambda: urllib.request.urlopen(f"http://{address}/metrics").read().decode()
        )
        assert 'dovetail_agent_plugin_up{resource="cpu"} 1.0' in text


async def test_without_a_proxy_pods_are_pinned_after_they_started() -> None:
    async with a_node() as rig, a_plugin(rig, Shares()):
        await rig.start("--runtime-backend=cri")
        await rig.up("cpu")
        assert not rig.endpoint.exists()
        rig.manifest("u1", "one", {"cpu": 2})
        kubelet = Kubelet(rig.runtime.socket)
        await kubelet.start("u1", "one")
        await kubelet.close()
        await eventually(lambda: rig.runtime.made("one").pinned == ("0-1", ""))


async def test_by_nri_it_waits_for_the_runtime_to_come() -> None:
    async with a_node() as rig:
        socket_ = rig.directory / "nri.sock"
        agent = await rig.start("--runtime-backend=nri", f"--runtime-nri-socket={socket_}")
        assert not rig.endpoint.exists()
        await asyncio.sleep(0.5)
        assert (await rig.ask("state"))["pods"] == []
        assert await agent.end() == 0


async def test_where_nobody_knows_the_pods_containers_get_what_the_runtime_is_told() -> None:
    plugin = Shares()
    async with a_node() as rig, a_plugin(rig, plugin):
        await rig.start("--pods-source=none")
        await rig.up("cpu")
        async with a_kubelet(rig) as kubelet:
            sandbox = await kubelet.run("u1", "one")
            asked = cri.LinuxContainerResources(cpu_shares=2048)
            await kubelet.create(sandbox, "u1", "one", resources=asked)
            made = rig.runtime.made("one")
            assert (made.pinned, made.resources.cpu_shares) == (("0-1", ""), 2048)
            await asyncio.sleep(1)
            assert list(plugin.held) == ["u1"]
            await kubelet.remove(sandbox)
            await eventually(lambda: plugin.held == {})


async def test_it_starts_before_the_runtime_and_works_when_that_comes() -> None:
    plugin = Shares()
    async with a_node() as rig, a_plugin(rig, plugin):
        await rig.runtime.stop()
        await rig.start()
        await rig.up("cpu")
        await rig.runtime.start()
        rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            await kubelet.start("u1", "one")
        assert rig.runtime.made("one").pinned == ("0-1", "")


NOISE = (b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 500, b"GET /")


@pytest.mark.parametrize(
    ("served", "method"),
    [
        ("control", "/dovetail.agent.v1.Agent/Explain"),
        ("control", "/dovetail.agent.v1.Agent/State"),
        ("control", "/dovetail.agent.v1.Agent/Nothing"),
        ("pod_resources", "/v1.PodResourcesLister/List"),
        ("pod_resources", "/v1.PodResourcesLister/Nothing"),
        ("endpoint", "/runtime.v1.RuntimeService/RunPodSandbox"),
        ("endpoint", "/runtime.v1.RuntimeService/CreateContainer"),
    ],
)
async def test_garbage_on_a_socket_is_refused_and_does_no_harm(served: str, method: str) -> None:
    async with a_node() as rig:
        agent = await rig.start()
        path: Path = getattr(rig, served)
        for noise in NOISE:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(noise)
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 10)
            writer.close()
        async with connect(str(path)) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await raw_calls.unary(channel, method)(b"\xff\xff\xff", timeout=10)
        expected = grpc.StatusCode.INVALID_ARGUMENT
        if method.endswith("Nothing"):
            expected = grpc.StatusCode.UNIMPLEMENTED
        assert refused.value.code() is expected
        assert (await rig.ask("state"))["pods"] == []
        assert agent.is_running
