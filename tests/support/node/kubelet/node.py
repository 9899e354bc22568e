"""A real node: containerd, the agent with its plugins, and the kubelet, in this order."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from dovetail.node.topology import Machine, synthetic, write
from tests.support import debian
from tests.support.kube.cluster import Cluster
from tests.support.node import newer
from tests.support.node.containerd import Containerd
from tests.support.node.kubelet import network
from tests.support.node.kubelet.agent import PERIOD, Agent, Plugin
from tests.support.node.kubelet.kubelet import Kubelet, Place
from tests.support.node.kubelet.merging import merged
from tests.support.node.kubelet.mounts import MountNamespace
from tests.support.node.kubelet.reaper import Reaper
from tests.support.processes import Process

CGROUPS = Path("/sys/fs/cgroup")

ROLES = """
[pools.online]
cpus = "0"

[pools.offline]
cpus = "1"

[roles.web]
cpu = { pool = "online" }
memory = { bind = true }

[roles.etl]
cpu = { pool = "offline" }
memory = { bind = true }

[roles.storage]
cpu = { exclusive = true }
memory = { bind = true }
"""


class Options(msgspec.Struct, frozen=True):
    """What a bed's nodes are made of."""

    backend: str = "proxy"
    source: str = "kubelet"
    plugins: tuple[str, ...] = ("cpu", "memory")
    roles: str = ROLES
    agent: bool = True
    machine: Machine = synthetic(1, 1, 2, 1)
    """What agent and plugins take the machine for; the kernel has to have its CPUs."""
    agent_settings: Mapping[str, Any] = {}
    kubelet_settings: Mapping[str, Any] = {}


def programs() -> Path:
    """Of a containerd that has NRI and CDI, which Debian 12's has not; runc is the installed one.

    What is missing is installed, which is not possible any more in a network of one's own.
    """
    debian.needs("containerd", "runc", "busybox-static", "iproute2")
    return newer.unpacked("trixie", "containerd") / "usr/bin"


class RealNode:
    """Started part by part by `running`; each part can be stopped, killed and started again."""

    def __init__(
        self, cluster: Cluster, number: int, options: Options, directory: Path, logs: Path
    ) -> None:
        self.name, self.options, self.directory = f"node-{number}", options, directory
        self._logs = logs
        self.address = network.address(number)
        self.mounts = MountNamespace(directory / "m")
        self.mounts.start()
        try:
            self.containerd = self._containerd()
            self.sysfs = directory / "sys"
            write(options.machine, directory)
            for each in ("pods", "plugins"):
                (directory / each).mkdir()
            self.plugins = {kind: self._plugin(kind) for kind in options.plugins}
            self.write_roles(options.roles)
            self.agent = Agent(
                directory,
                self._agent_settings(cluster, 10250 + 10 * number),
                prefix=self.mounts.prefix,
                log=self._log("agent"),
            )
            self.kubelet = self._kubelet(cluster, number)
        except BaseException:
            self.mounts.kill()
            raise

    @classmethod
    @contextmanager
    def running(
        cls, cluster: Cluster, number: int, options: Options, logs: Path, reaper: Reaper
    ) -> Iterator[RealNode]:
        """However the block ends, no process, cgroup or mount is left behind."""
        # Not where pytest keeps its folders: a socket's path has to be short.
        directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
        try:
            node = cls(cluster, number, options, directory, logs)
            try:
                reaper.note(directory, node.containerd.cgroup)
                node.start()
                yield node
            finally:
                node.end()
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def start(self) -> None:
        self._make_cgroups()
        self.containerd.start()
        self.containerd.load_image()
        if self.options.agent:
            for plugin in self.plugins.values():
                plugin.start()
            self.agent.start()
            self.await_plugins()
        self.kubelet.start()

    def revive(self) -> None:
        """Whatever does not run, so that one test that fails does not take others with it."""
        if not self.containerd.is_running:
            self.containerd.start()
        if self.options.agent:
            for each in (*self.plugins.values(), self.agent):
                if not each.is_running:
                    each.start()
            self.await_plugins()
        if not self.kubelet.is_running:
            self.kubelet.start()

    def end(self) -> None:
        """Its mounts go with the last process that has them."""
        with ExitStack() as stack:
            stack.callback(self.mounts.kill)
            stack.callback(self.containerd.end)
            for each in (*self.plugins.values(), self.agent, self.kubelet):
                stack.callback(each.kill)

    def await_plugins(self) -> None:
        """Until the agent has found them."""
        self.agent.await_plugins(*(each.resource for each in self.plugins.values()))

    @property
    def device_plugin_directory(self) -> Path:
        """The kubelet's own, seen from outside; to those in the node it is at its usual place."""
        return self.mounts.root / "device-plugins"

    @property
    def manifests(self) -> Path:
        """Where the agent looks for pods if its source is `directory`."""
        return self.directory / "pods"

    @property
    def static_pods(self) -> Path:
        return self.kubelet.place.static_pods

    def process(self, name: str, *command: object, **more: Any) -> Process:
        """A program that shares the node's mounts, as a device plugin; not started yet."""
        return Process([*self.mounts.prefix, *command], self._log(name), name=name, **more)

    def run(self, *command: object) -> str:
        """What a command says that shares the node's mounts."""
        words = [str(word) for word in (*self.mounts.prefix, *command)]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout

    def write_roles(self, text: str) -> None:
        """Until the plugins that run go by it."""
        running = [each for each in self.plugins.values() if each.is_running]
        before = [each.reads for each in running]
        draft = self.directory / "roles.draft"
        draft.write_text(text)
        draft.rename(self.directory / "roles.toml")
        for plugin, reads in zip(running, before, strict=True):
            plugin.await_ready(lambda plugin=plugin, reads=reads: plugin.reads > reads)  # type: ignore[misc]

    def process_of(self, container_id: str) -> int:
        """The pid of a container that runs."""
        tasks = self.containerd.directory / "state/io.containerd.runtime.v2.task/k8s.io"
        return int((tasks / container_id / "init.pid").read_text())

    def _containerd(self) -> Containerd:
        directory = self.directory / "c"
        directory.mkdir()
        return Containerd(
            directory,
            programs(),
            nri=True,
            for_kubelet=True,
            prefix=self.mounts.prefix,
            log=self._log("containerd"),
        )

    def _plugin(self, kind: str) -> Plugin:
        return Plugin(
            kind,
            self.directory,
            prefix=self.mounts.prefix,
            log=self._log(f"plugin-{kind}"),
            sysfs=self.sysfs,
        )

    def _kubelet(self, cluster: Cluster, number: int) -> Kubelet:
        place = Place(
            name=self.name,
            address=self.address,
            port=10250 + 10 * number,
            health_port=10248 + 10 * number,
            cgroup=self.containerd.cgroup,
            directory=self.directory / "k",
        )
        behind = self.options.agent and self.options.backend == "proxy"
        endpoint = self.agent.endpoint if behind else self.containerd.socket
        settings = self.options.kubelet_settings
        prefix, log = self.mounts.prefix, self._log("kubelet")
        return Kubelet(place, cluster, endpoint, settings, prefix=prefix, log=log)

    def _agent_settings(self, cluster: Cluster, port: int) -> dict[str, Any]:
        here, options = self.directory, self.options
        settings = {
            "feature_gates": {"QoSResourceManager": True},
            "reconcile_period": PERIOD,
            "sysfs": str(self.sysfs),
            "state_dir": str(here / "state"),
            "kubelet_root": str(self.mounts.root),
            "control_socket": str(here / "control.sock"),
            "pod_resources_socket": str(here / "pod-resources.sock"),
            "metrics_address": "",
            "plugins": {"directories": [str(here / "plugins")]},
            "runtime": {
                "backend": options.backend,
                "socket": str(self.containerd.socket),
                "listen": str(here / "cri.sock"),
                "nri_socket": str(self.containerd.nri_socket),
            },
            "pods": {
                "source": options.source,
                "url": f"https://127.0.0.1:{port}",
                "token_file": str(cluster.directory / "agent.token"),
                "ca_file": str(cluster.authority.certificate),
                "manifests": str(here / "k" / "static-pods"),
                "directory": str(self.manifests),
            },
            "devices": {"node": self.name},
        }
        return merged(settings, options.agent_settings)

    def _log(self, name: str) -> Path:
        return self._logs / f"{self.name}-{name}.log"

    def _make_cgroups(self) -> None:
        """The parent of all pods' cgroups; on v1 a new cpuset allows nothing."""
        name = self.containerd.cgroup.lstrip("/")
        if (CGROUPS / "cgroup.controllers").exists():
            (CGROUPS / name).mkdir()
            return
        for top in CGROUPS.iterdir():
            # Names of hierarchies that are mounted together are links to one.
            if top.is_dir() and not top.is_symlink():
                (top / name).mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):
            (CGROUPS / "cpuset" / name / file).write_text((CGROUPS / "cpuset" / file).read_text())
