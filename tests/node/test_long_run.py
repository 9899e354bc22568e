"""Pods come and go for long, and what the agent and its plugins hold does not grow.

Daemon and plugins are processes; each batch has pods that run, and one that does not fit.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from dovetail.node.state.checkpoint import NAME
from dovetail.node.topology import Nic, synthetic
from tests.node.agent.cri import Kubelet
from tests.node.agent.rig import AgentProcess, Rig, a_kubelet, a_node
from tests.support.loops import eventually

ROLES = """
[roles.service]
cpu = { exclusive = true, numa = "single" }
memory = { bind = true, numa = "single" }
nic = {}
"""
ALL = {"cpu": 1, "memory": "1Gi", "NIC": 1}
BATCH, LARGE = 50, 15
"""Pods at a time; how many of them ask for everything and get as far as a container. The others
want a CPU and get a sandbox, which takes less time."""
WARM_UP, PODS = 200, 1000
MEGABYTE = 2**20


class Held(NamedTuple):
    """What a process has of the machine's."""

    resident: int
    """Bytes."""
    files: int
    threads: int

    @classmethod
    def by(cls, process: AgentProcess) -> Held:
        place = Path(f"/proc/{process.pid}")
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        return cls(
            resident=int(status["VmRSS"].split()[0]) * 1024,
            files=len(list((place / "fd").iterdir())),
            threads=int(status["Threads"]),
        )


async def test_a_thousand_pods_leave_nothing_behind() -> None:
    nics = (Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=25_000))
    async with a_node(synthetic(nics=nics)) as rig:
        file = rig.directory / "roles.toml"
        file.write_text(ROLES)
        processes = {
            kind: await rig.plugin(kind, file, "--period=1") for kind in ("cpu", "memory", "nic")
        }
        processes["agent"] = await rig.start("--topology-policy=single-numa-node")
        await rig.up("cpu", "memory", "NIC")
        async with a_kubelet(rig) as kubelet:
            await come_and_go(rig, kubelet, (f"warm-up-{number}" for number in range(WARM_UP)))
            kept, held = states(rig), {name: Held.by(each) for name, each in processes.items()}
            await come_and_go(rig, kubelet, (f"pod-{number}" for number in range(PODS)))
        assert states(rig) == kept
        for name, process in processes.items():
            before, after = held[name], Held.by(process)
            assert after.resident - before.resident < 20 * MEGABYTE, (name, before, after)
            assert after.files <= before.files + 2, (name, before, after)
            assert after.threads <= before.threads + 2, (name, before, after)


async def come_and_go(rig: Rig, kubelet: Kubelet, names: Iterable[str]) -> None:
    """All of them, as many at a time as there is room for."""
    for batch in batched(names):
        large, small = batch[:LARGE], batch[LARGE:]
        sandboxes = await asyncio.gather(
            *(kubelet.start(each, each, known(rig, each, ALL)) for each in large),
            *(kubelet.run(each, each, known(rig, each, {"cpu": 1})) for each in small),
        )
        pinned = {rig.runtime.made(each).pinned[0] for each in large}
        assert len(pinned) == len(large), "each has a CPU of its own"
        await refused(rig, kubelet, f"too-large-{batch[0]}")
        for name in batch:
            rig.forget(name)
        await asyncio.gather(*map(kubelet.remove, sandboxes))
        await eventually(lambda: not any(holders(rig)), 60)


def batched(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(names)
    while batch := list(islice(rest, BATCH)):
        yield batch


def known(rig: Rig, name: str, wanted: Mapping[str, object]) -> Mapping[str, str]:
    """Its annotations."""
    return rig.manifest(name, name, wanted, "service")


async def refused(rig: Rig, kubelet: Kubelet, name: str) -> None:
    """One of whose containers the first gets everything, and is to give it back for the second."""
    containers = [
        {"name": each, "resources": {"requests": {key: str(amount) for key, amount in asked}}}
        for each, asked in (("fits", ALL.items()), ("does-not", [("memory", "1Ti")]))
    ]
    annotations = rig.manifest(name, name, {}, "service", containers=containers)
    with pytest.raises(grpc.aio.AioRpcError, match=r"plugin_refused: .* wants 1Ti of memory"):
        await kubelet.run(name, name, annotations)
    rig.forget(name)


def states(rig: Rig) -> Mapping[str, bytes | None]:
    """Every file that the agent and its plugins keep; the state before the last is of any size."""
    return {
        str(each): None if each.suffix == ".last" else each.read_bytes()
        for each in rig.directory.glob("state*/*")
        if each.is_file()
    }


def holders(rig: Rig) -> Iterator[object]:
    """Pods that the agent knows, or that a plugin has still to forget."""
    data = json.loads((rig.directory / "state" / NAME).read_bytes())["data"]
    yield from (data["pods"], data["removals"])
