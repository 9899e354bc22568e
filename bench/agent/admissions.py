"""RunPodSandbox as a kubelet sees it: through the daemon with three plugins, and without it.

Daemon and plugins are processes of their own, on a synthetic machine with 80 CPUs; the runtime
behind is in memory and answers at once, so what is left is what the agent adds.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.node.agent.cri import FakeRuntime, Kubelet
from tests.node.agent.rig import Rig, a_kubelet, a_node
from tests.support.loops import eventually

from dovetail.node.sdk.files import write_atomically
from dovetail.node.state.checkpoint import NAME
from dovetail.node.topology import Nic, synthetic

from .times import Times

ROLES = """
[reserved]
cpus = "0-1,40-41"

[roles.service]
cpu = { exclusive = true, numa = "single" }
memory = { bind = true, numa = "single" }
nic = {}
"""
KINDS = ("cpu", "memory", "nic")
RESOURCES = ("cpu", "memory", "NIC")
WANTED = {"cpu": 2, "memory": "1Gi", "NIC": 1}
AT_A_TIME = 30
"""Pods on the node: 60 of its 76 CPUs."""


@dataclass(slots=True)
class Admissions:
    direct: Times = field(default_factory=Times)
    proxied: Times = field(default_factory=Times)
    bursts: Times = field(default_factory=Times)
    """Of AT_A_TIME pods that all come at once, until the last is let in."""
    writes: Times = field(default_factory=Times)
    """Of one file, durably, while nothing else is asked of the disk by us."""
    parts: Sequence[dict[str, float]] = ()
    """Of each admission, in milliseconds, what its parts took."""

    def part(self, name: str) -> Times:
        return Times([each.get(name, 0.0) for each in self.parts])

    @property
    def rest(self) -> Times:
        """Of admissions, what no part took."""
        return Times([2 * each["admission"] - sum(each.values()) for each in self.parts])


def measure(rounds: int, profile: str = "") -> Admissions:
    return asyncio.run(_measure(rounds, profile))


async def _measure(rounds: int, profile: str) -> Admissions:
    found = Admissions()
    nics = (Nic(name="eth0", numa=0, speed=25_000), Nic(name="eth1", numa=1, speed=25_000))
    async with a_node(synthetic(nics=nics)) as rig:
        report = await start(rig, profile)
        runtime = FakeRuntime(rig.directory / "d.sock")
        await runtime.start()
        direct = Kubelet(runtime.socket)
        async with a_kubelet(rig) as kubelet:
            await one_by_one(rig, kubelet, direct, Admissions(), "warm-up")
            for number in range(rounds):
                await one_by_one(rig, kubelet, direct, found, f"{number}")
            before_bursts = AT_A_TIME * (rounds + 1)
            for number in range(rounds):
                await all_at_once(rig, kubelet, found, f"burst-{number}")
        await direct.close()
        await runtime.stop()
        for _ in range(100):
            with found.writes.one():
                write_atomically(rig.directory / "draft", bytes(4096))
        assert rig.agent
        await rig.agent.end()
        found.parts = json.loads(report.read_text())[AT_A_TIME:before_bursts]
    return found


async def start(rig: Rig, profile: str) -> Path:
    """Plugins and daemon, all there; where the daemon leaves what it measured."""
    roles, report = rig.directory / "roles.toml", rig.directory / "times.json"
    roles.write_text(ROLES)
    for kind in KINDS:
        await rig.plugin(kind, roles, "--period=1")
    flags = [*rig.flags, "--reconcile-period=3s", "--topology-policy=single-numa-node"]
    watched = (sys.executable, "-m", "bench.agent.watched", str(report), profile)
    rig.agent = rig.process(*watched, *flags)
    await rig.agent.until_ready(rig.control.exists)
    await rig.up(*RESOURCES)
    return report


async def one_by_one(
    rig: Rig, kubelet: Kubelet, direct: Kubelet, found: Admissions, name: str
) -> None:
    sandboxes = {}
    for number in range(AT_A_TIME):
        uid = f"{name}-{number}"
        annotations = rig.manifest(uid, uid, WANTED, "service")
        with found.proxied.one():
            sandboxes[uid] = await kubelet.run(uid, uid, annotations)
        with found.direct.one():
            sandbox = await direct.run(uid, uid, annotations)
        await direct.remove(sandbox)
    await removed(rig, kubelet, sandboxes)


async def all_at_once(rig: Rig, kubelet: Kubelet, found: Admissions, name: str) -> None:
    uids = [f"{name}-{number}" for number in range(AT_A_TIME)]
    all_annotations = [rig.manifest(uid, uid, WANTED, "service") for uid in uids]
    with found.bursts.one():
        sandboxes = await asyncio.gather(
            *(kubelet.run(uid, uid, each) for uid, each in zip(uids, all_annotations, strict=True))
        )
    await removed(rig, kubelet, dict(zip(uids, sandboxes, strict=True)))


async def removed(rig: Rig, kubelet: Kubelet, sandboxes: dict[str, str]) -> None:
    """Until the agent and its plugins know."""
    for uid, sandbox in sandboxes.items():
        rig.forget(uid)
        await kubelet.remove(sandbox)
    await eventually(lambda: is_empty(rig), 60)


def is_empty(rig: Rig) -> bool:
    data = json.loads((rig.directory / "state" / NAME).read_bytes())["data"]
    return not (data["pods"] or data["removals"])
