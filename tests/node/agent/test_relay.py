"""`dovetail agent relay` and an agent that comes and goes behind it, as processes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dovetail.node.wire import cri
from dovetail.wire.rpc import call
from tests.node.agent.rig import Rig, Shares, a_kubelet, a_node, a_plugin

CLI_USAGE = 2
ALL = cri.ListContainersRequest()


def sockets(rig: Rig) -> list[str]:
    return [f"--runtime-relay={rig.directory / 'd.sock'}", "--runtime-relay-wait=60s"]


async def test_relay_asks_the_agent_and_goes_on_without_it() -> None:
    async with a_node() as rig, a_plugin(rig, Shares()):
        relay = rig.run(
            "relay",
            f"--runtime-socket={rig.runtime.socket}",
            f"--runtime-listen={rig.endpoint}",
            *sockets(rig),
        )
        rig.others.append(relay)
        await relay.until_ready(rig.endpoint.exists)
        await rig.start(*sockets(rig))
        await rig.up("cpu")
        annotations = rig.manifest("u1", "one", {"cpu": 2})
        async with a_kubelet(rig) as kubelet:
            await kubelet.start("u1", "one", dict(annotations))
            assert rig.runtime.made("one").resources.cpuset_cpus == "0-1"
            assert rig.agent
            await rig.agent.end(signal.SIGKILL)
            rig.control.unlink()
            rig.manifest("u2", "two", {"cpu": 2})
            assert (await call(kubelet.channel, cri.LIST_CONTAINERS, ALL, 60)).containers
            await rig.start(*sockets(rig))
            await rig.up("cpu")
            await kubelet.start("u2", "two")
            assert rig.runtime.made("two").resources.cpuset_cpus == "2-3"
        assert await relay.end() == 0
        assert not rig.endpoint.exists()


async def test_relay_wants_to_know_where_the_agent_is(tmp_path: Path) -> None:
    async with a_node() as rig:
        relay = rig.run("relay", f"--runtime-listen={tmp_path / 'x.sock'}")
        assert await relay.until_ended() == CLI_USAGE
        assert "runtime.relay" in relay.output


@pytest.mark.parametrize("same", ["--runtime-listen", "--control-socket"])
async def test_sockets_are_different_ones(same: str) -> None:
    async with a_node() as rig:
        path = rig.directory / "same.sock"
        agent = rig.run(*rig.flags, f"{same}={path}", f"--runtime-relay={path}")
        assert await agent.until_ended() == CLI_USAGE
        assert "different sockets" in agent.output
