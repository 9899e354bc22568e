"""Whatever happens in whatever order, manager and plugins agree on who holds what."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.admission.configuration import AdmissionConfiguration, Outage
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected, PluginFailure
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.fakes import TWO_NODES, Node, Pieces, container, pod

SIZES = {"a": (1, 0), "b": (2, 1), "c": (3, 0), "d": (4, 2), "e": (2, 2)}
"""CPUs of the two containers of each pod."""


def own(uid: str) -> Pod:
    main, more = SIZES[uid]
    role = {"kubernetes.io/pod-role": "open" if uid in "de" else "strict"}
    return pod(
        uid,
        container(cpu=main, gpu=1),
        container("more", 1, cpu=more, type=ContainerType.SIDECAR),
        annotations=role,
    )


PODS = [own(each) for each in SIZES]
CONFIGURATION: AdmissionConfiguration = msgspec.structs.replace(
    TWO_NODES, outages={"open": Outage.FAIL_OPEN}
)
uids = st.sampled_from(sorted(SIZES))
actions = st.one_of(
    st.tuples(st.just("start"), uids),
    st.tuples(st.just("together"), uids),
    st.tuples(st.just("release"), uids),
    st.tuples(st.sampled_from(["cpu", "gpu"]), st.sampled_from(["up", "down", "refusing"])),
    st.tuples(st.just("restart"), st.just("")),
)


class History:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cpu = Pieces()
        self.gpu = Pieces("gpu", {0: [0, 1], 1: [2, 3]}, property_name="")
        self.began()

    def began(self) -> None:
        self.node = Node(self.directory, [self.cpu, self.gpu], PODS, CONFIGURATION)

    async def act(self, what: str, whom: str) -> None:
        if what == "restart":
            self.began()
        elif what in ("cpu", "gpu"):
            plugin = self.cpu if what == "cpu" else self.gpu
            plugin.up = whom != "down"
            plugin.failure = PluginFailure.REFUSED if whom == "refusing" else None
        elif what == "release":
            await self.node.manager.collector.release(whom)
        elif what == "start":
            await self.start(whom)
        else:
            await asyncio.gather(*(self.start(each) for each in sorted({whom, "a", "c"})))
        await self.node.manager.removals.deliver()

    async def start(self, uid: str) -> None:
        try:
            await self.node.start(own(uid))
        except AdmissionRejected:
            return

    def check(self) -> None:
        state = self.node.store.state
        for plugin in (self.cpu, self.gpu):
            for uid, held in plugin.held.items():
                known = state.pods.get(uid)
                waiting = state.removals.get(uid, ())
                assert (known and plugin.resource in known.plugins) or plugin.resource in waiting
                for name, pieces in held.items():
                    holding = known.containers.get(name) if known else None
                    info = holding.allocations.get(plugin.resource) if holding else None
                    assert info is None or info.allocation_result == str(pieces)
        for uid, known in state.pods.items():
            assert known.admitted
            for name, holding in known.containers.items():
                for resource, info in holding.allocations.items():
                    plugin = self.cpu if resource == "cpu" else self.gpu
                    assert str(plugin.held[uid][name]) == info.allocation_result


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=12))
def test_nothing_is_held_by_nobody(history: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = History(Path(directory))

        async def story() -> None:
            for what, whom in history:
                await world.act(what, whom)
                world.check()
            for plugin in ("cpu", "gpu"):
                await world.act(plugin, "up")
            for uid in SIZES:
                await world.act("release", uid)

        asyncio.run(story())
        assert world.cpu.held == world.gpu.held == {}
        assert world.node.store.state.removals == {}
