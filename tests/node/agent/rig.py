"""The daemon as a process of its own, on a runtime in memory, with pods from a directory."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from dovetail.node.common.cpus import CpuSet
from dovetail.node.sdk.plugin import ResourcePlugin, allocation_for, refuse
from dovetail.node.sdk.serving import PluginServer
from dovetail.node.topology import Machine, synthetic, write
from dovetail.node.wire.resource_plugin import (
    ContainerResources,
    GetResourcesAllocationRequest,
    GetResourcesAllocationResponse,
    RemovePodRequest,
    RemovePodResponse,
    ResourceAllocation,
    ResourceAllocationInfo,
    ResourceAllocationResponse,
    ResourcePluginOptions,
    ResourceRequest,
)
from tests.node.agent.cri import FakeRuntime, Kubelet
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

GATE = "--feature-gates=QoSResourceManager=true"


class AgentProcess(Process):
    """The daemon, a plugin or a command of `dovetail agent`."""

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code, also if it ended by itself."""
        if self.is_running:
            self.send_signal(number)
        return await self.until_ended()

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines if line.startswith("{")]


class Shares(ResourcePlugin):
    """Gives each container the next CPUs, and tells what everybody has."""

    def __init__(self, resource: str = "cpu", cpus: int = 8) -> None:
        super().__init__(resource, ResourcePluginOptions(need_reconcile=True))
        self.cpus = CpuSet(range(cpus))
        self.held: dict[str, dict[str, CpuSet]] = {}
        self.delay = 0.0
        self.asked = 0
        """How often it was to allocate."""

    async def allocate(self, request: ResourceRequest) -> ResourceAllocationResponse:
        self.asked += 1
        await asyncio.sleep(self.delay)
        own = self.held.setdefault(request.pod_uid, {})
        if request.container_name not in own:
            taken = {cpu for pod in self.held.values() for each in pod.values() for cpu in each}
            free = sorted(self.cpus - taken)
            wanted = int(request.resource_requests[self.resource])
            if len(free) < wanted:
                raise refuse(f"{wanted} CPUs are wanted, {len(free)} are free")
            own[request.container_name] = CpuSet(free[:wanted])
        return allocation_for(request, self.info(own[request.container_name]))

    async def remove_pod(self, request: RemovePodRequest) -> RemovePodResponse:
        self.held.pop(request.pod_uid, None)
        return RemovePodResponse()

    async def get_resources_allocation(
        self, request: GetResourcesAllocationRequest
    ) -> GetResourcesAllocationResponse:
        return GetResourcesAllocationResponse(
            pod_resources={
                uid: ContainerResources(
                    container_resources={
                        name: ResourceAllocation(resource_allocation=self.info(own))
                        for name, own in containers.items()
                    }
                )
                for uid, containers in self.held.items()
            }
        )

    def info(self, own: CpuSet) -> dict[str, ResourceAllocationInfo]:
        return {
            self.resource: ResourceAllocationInfo(
                oci_property_name="CpusetCpus",
                is_scalar_resource=True,
                allocated_quantity=float(len(own)),
                allocation_result=str(own),
            )
        }


class Rig:
    """A node: directories, a runtime, and the daemon with its flags."""

    def __init__(self, directory: Path, machine: Machine) -> None:
        self.directory = directory
        write(machine, directory)
        self.runtime = FakeRuntime(directory / "r.sock")
        self.plugins, self.pods = directory / "plugins", directory / "pods"
        self.pods.mkdir()
        self.plugins.mkdir()
        self.control, self.endpoint = directory / "c.sock", directory / "cri.sock"
        self.pod_resources = directory / "p.sock"
        self.agent: AgentProcess | None = None
        self.others: list[AgentProcess] = []
        self._numbers = count()

    def process(self, *command: object) -> AgentProcess:
        """Started; what it says is in a log of the node's."""
        log = self.directory / f"process-{next(self._numbers)}.log"
        process = AgentProcess(command, log)
        process.start()
        return process

    def run(self, *arguments: str) -> AgentProcess:
        """A `dovetail agent` with these arguments, started."""
        return self.process(DOVETAIL, "agent", *arguments)

    @property
    def flags(self) -> list[str]:
        return [
            GATE,
            f"--sysfs={self.directory / 'sys'}",
            f"--state-dir={self.directory / 'state'}",
            f"--kubelet-root={self.directory / 'kubelet'}",
            f"--control-socket={self.control}",
            f"--pod-resources-socket={self.pod_resources}",
            "--metrics-address=",
            f"--plugins-directories={self.plugins}",
            f"--runtime-socket={self.runtime.socket}",
            f"--runtime-listen={self.endpoint}",
            "--pods-source=directory",
            f"--pods-directory={self.pods}",
            "--reconcile-period=200ms",
        ]

    async def start(self, *more: str) -> AgentProcess:
        """The daemon, when it answers."""
        self.agent = self.run(*self.flags, *more)
        await self.agent.until_ready(self.control.exists)
        return self.agent

    async def plugin(self, kind: str, roles: Path, *more: str) -> AgentProcess:
        """One that comes along, as a process."""
        running = self.run(
            "plugin",
            kind,
            f"--roles={roles}",
            f"--socket-dir={self.plugins}",
            f"--state-dir={self.directory / f'state-{kind}'}",
            f"--sysfs={self.directory / 'sys'}",
            "--period=0.05",
            *more,
        )
        self.others.append(running)
        return running

    async def ask(self, *arguments: str) -> Any:
        """What a command prints with -o json."""
        code, output = await self.say(*arguments, "-o", "json")
        assert code == 0, output
        return json.loads(output)

    async def say(self, *arguments: str) -> tuple[int, str]:
        asked = self.run(*arguments, f"--control-socket={self.control}")
        return await asked.until_ended(), asked.output

    async def up(self, *resources: str) -> None:
        """Until these plugins are."""
        async with asyncio.timeout(60):
            while True:
                told = await self.ask("plugins")
                up = {each["resource"] for each in told["plugins"] if each["state"] == "up"}
                if up >= {*resources}:
                    return
                await asyncio.sleep(0.05)

    def manifest(
        self,
        uid: str,
        name: str,
        requests: Mapping[str, Any],
        role: str = "",
        **spec: Any,
    ) -> Mapping[str, str]:
        """Make a pod known; its annotations."""
        annotations = {"kubernetes.io/pod-role": role} if role else {}
        amounts = {key: str(value) for key, value in requests.items()}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "uid": uid,
                "name": name,
                "namespace": "default",
                "annotations": annotations,
            },
            "spec": {
                "containers": [{"name": "container0", "resources": {"requests": amounts}}],
                **spec,
            },
        }
        draft = self.pods / f".{uid}.json"
        draft.write_text(json.dumps(document))
        draft.rename(self.pods / f"{uid}.json")
        return annotations

    def forget(self, uid: str) -> None:
        (self.pods / f"{uid}.json").unlink()


@asynccontextmanager
async def a_node(machine: Machine | None = None) -> AsyncIterator[Rig]:
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    rig = Rig(directory, machine or synthetic(1, 1, 4, 2))
    await rig.runtime.start()
    try:
        yield rig
    finally:
        for each in [*filter(None, [rig.agent]), *rig.others]:
            try:
                await each.end()
            finally:
                each.kill()
        await rig.runtime.stop()
        shutil.rmtree(directory)


@asynccontextmanager
async def a_plugin(rig: Rig, plugin: ResourcePlugin) -> AsyncIterator[PluginServer]:
    server = PluginServer(plugin, rig.plugins / f"{plugin.resource}.sock", grace=0)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def a_kubelet(rig: Rig) -> AsyncIterator[Kubelet]:
    kubelet = Kubelet(rig.endpoint)
    try:
        yield kubelet
    finally:
        await kubelet.close()
