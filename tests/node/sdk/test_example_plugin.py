"""The example of docs/writing-a-plugin.md, as a process of its own, found and used."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.registry import Registry
from dovetail.node.wire.resource_plugin import (
    ALLOCATE,
    GET_TOPOLOGY_HINTS,
    REMOVE_POD,
    RemovePodRequest,
    ResourceAllocationResponse,
    ResourceRequest,
    TopologyHint,
)
from tests.support.loops import eventually
from tests.support.paths import ROOT
from tests.support.processes import Process

SOURCE = Path(__file__).with_name("example_plugin.py")
PAGE = ROOT / "docs/writing-a-plugin.md"


def test_the_page_shows_the_example_as_it_is() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    assert f"```python\n{source}```" in PAGE.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 60


def asking(pod: str, *nodes: int) -> ResourceRequest:
    hint = TopologyHint(nodes=nodes, preferred=True) if nodes else None
    return ResourceRequest(pod_uid=pod, container_name="main", hint=hint)


def cpu(answer: ResourceAllocationResponse) -> str:
    assert answer.allocation_result
    given = answer.allocation_result.resource_allocation["example.com/core"]
    assert given.oci_property_name == "CpusetCpus"
    return given.allocation_result


async def test_the_example_gives_out_its_cpus(directory: Path) -> None:
    socket = directory / "core.sock"
    process = Process([sys.executable, SOURCE, socket], directory / "log")
    process.start()
    registry = Registry([directory], period=0.05)
    await registry.start()
    try:
        await eventually(lambda: (found := registry.of("example.com/core")) and found.up, 30)
        plugin = registry.of("example.com/core")
        assert plugin
        assert cpu(await plugin.call(ALLOCATE, asking("a", 1))) == "6"
        assert cpu(await plugin.call(ALLOCATE, asking("a", 1))) == "6"
        assert cpu(await plugin.call(ALLOCATE, asking("b", 1))) == "7"

        hints = (await plugin.call(GET_TOPOLOGY_HINTS, asking("c"))).resource_hints
        assert hints["example.com/core"]
        assert [each.nodes for each in hints["example.com/core"].hints] == [(0,)]
        with pytest.raises(PluginError, match="no CPU is left on the NUMA nodes") as refused:
            await plugin.call(ALLOCATE, asking("c", 1))
        assert refused.value.failure is PluginFailure.REFUSED

        await plugin.call(REMOVE_POD, RemovePodRequest(pod_uid="a"))
        assert cpu(await plugin.call(ALLOCATE, asking("c", 1))) == "6"

        process.send_signal(signal.SIGTERM)
        assert await process.until_ended() == 0
        await eventually(lambda: not plugin.up)
        assert registry.statuses()[0].state == "gone"
    finally:
        await registry.stop()
        process.kill()
