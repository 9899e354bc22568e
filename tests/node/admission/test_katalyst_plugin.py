"""Plugins with exactly Katalyst's checks are asked in a way that they accept.

They run in processes of their own, and share nothing with our declarations.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dovetail.node.admission.configuration import AdmissionConfiguration, Scope
from dovetail.node.agent.manager import Manager
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sources.implicit_resources import ImplicitResources
from dovetail.node.state.checkpoint import Checkpoint
from dovetail.node.state.store import StateStore
from tests.node.registry.rig import is_up, registry_of
from tests.support.loops import eventually
from tests.support.node.fakes import TWO_NODES, FakeSource, container, pod, sandbox
from tests.support.paths import ROOT
from tests.support.processes import Process

MILLI = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
RECLAIMED_MEMORY = "resource.katalyst.kubewharf.io/reclaimed_memory"
NAMES = {MILLI: "cpu", RECLAIMED_MEMORY: "memory"}
CONFIGURATION = msgspec.structs.replace(TWO_NODES, names=NAMES)
POD_SCOPE = msgspec.structs.replace(CONFIGURATION, scope=Scope.POD)
RECLAIMED: dict[str, Any] = {
    "annotations": {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"},
    "qos_class": "BestEffort",
}


@asynccontextmanager
async def katalyst(
    directory: Path, *pods: Pod, configuration: AdmissionConfiguration = CONFIGURATION
) -> AsyncIterator[Manager]:
    sockets = directory / "plugins"
    sockets.mkdir()
    async with AsyncExitStack() as stack:
        for resource in ("cpu", "memory"):
            command = [
                *(sys.executable, "-m", "tests.node.admission.katalyst_plugin"),
                *(sockets / f"{resource}.sock", resource),
            ]
            plugin = Process(command, directory / f"{resource}.log", cwd=ROOT)
            plugin.start()
            stack.callback(plugin.stop)
        registry = await stack.enter_async_context(registry_of(sockets))
        for resource in ("cpu", "memory"):
            await eventually(lambda each=resource: is_up(registry, each), 60)  # type: ignore[misc]
        source = ImplicitResources(FakeSource(*pods), {}, ("cpu",), configuration.names)
        store = StateStore(Checkpoint(directory))
        manager = Manager(configuration, registry, store, source)
        stack.push_async_callback(manager.stop)
        yield manager


async def started(manager: Manager, own: Pod) -> dict[str, tuple[str, str]]:
    """CPUs and memory nodes by container."""
    await manager.admit_pod(sandbox(own))
    given = {}
    for each in own.containers:
        settings = await manager.admit_container(sandbox(own), each.name, ContainerSettings())
        given[each.name] = (settings.cpus, settings.mems)
    return given


@pytest.mark.parametrize("configuration", [CONFIGURATION, POD_SCOPE], ids=["container", "pod"])
async def test_shared_and_reclaimed_pods(
    directory: Path, configuration: AdmissionConfiguration
) -> None:
    limits = {"cpu": 2, "memory": 2**30}
    shared = pod("shared", container(cpu=2, memory=2**30, limits=limits))
    wants = {MILLI: 3000, RECLAIMED_MEMORY: 2**30}
    reclaimed = pod("reclaimed", container(**wants, limits=wants), **RECLAIMED)
    async with katalyst(directory, shared, reclaimed, configuration=configuration) as manager:
        assert await started(manager, shared) == {"main": ("0-1", "0")}
        assert await started(manager, reclaimed) == {"main": ("0-2", "0")}


async def test_a_container_without_requests_has_cpus_of_some_pool(directory: Path) -> None:
    reclaimed = pod("reclaimed", container(**{MILLI: 1000}), container("aide", 1), **RECLAIMED)
    async with katalyst(directory, reclaimed) as manager:
        assert await started(manager, reclaimed) == {"main": ("0", ""), "aide": ("0", "")}


async def test_a_pod_that_asks_as_a_whole_is_refused_with_the_reason(directory: Path) -> None:
    own = pod("whole", container(), requests={"cpu": Fraction(1)}, limits={"cpu": Fraction(1)})
    async with katalyst(directory, own) as manager:
        with pytest.raises(AdmissionRejected) as caught:
            await started(manager, own)
        assert caught.value.reason == "plugin_refused"
        assert "does not know AllocateForPod" in str(caught.value)
