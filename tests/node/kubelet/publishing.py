"""A bed whose agent tells of a device plugin's devices: one large, one small.

The agent has a kubelet's own rights and the cluster the guard. The plugin is somebody else's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dovetail.kube import manifests
from tests.support.node.kubelet.bed import NodeBed, node_bed
from tests.support.paths import DOVETAIL, ROOT

RESOURCE = "vendor.com/gpu"
DIRECTORY = Path("/var/lib/kubelet/agent-device-plugins")
SMALL, LARGE = "0000:3b:00.0", "0000:af:00.0"
PROPERTIES = f'["{RESOURCE}"."{LARGE}"]\nmemory = "80G"\n["{RESOURCE}"."{SMALL}"]\nmemory = "20G"\n'
CLASSES = "/apis/dovetail.dev/v1alpha1/resourceclasses"
GUARD = "validatingadmissionpolicybinding/allocation.resourceclasses.dovetail.dev"


class PublishingBed:
    """A bed with a class, a plugin of two devices, and an agent that tells of them."""

    def __init__(self, bed: NodeBed) -> None:
        self.bed = bed
        self.control = bed.cluster.directory / "gpu.json"
        self.kubeconfig = str(bed.cluster.user(f"system:node:{bed.node.name}", ("system:nodes",)))
        self.plugin = bed.node.process(
            "gpu-plugin",
            *(sys.executable, "-m", "tests.support.node.device_plugin_program"),
            *("--directory", DIRECTORY, "--resource", RESOURCE, "--control", self.control),
            *("--device", f"{SMALL}@0", "--device", f"{LARGE}@0"),
            *("--env", "GPUS={ids}", "--device-node", "/dev/zero:/dev/gpu{index}:rw"),
            environment={"PYTHONPATH": str(ROOT)},
        )

    def install(self) -> None:
        cluster, agent = self.bed.cluster, self.bed.agent
        # The account is in a namespace that this cluster need not have.
        rights = manifests.text(["agent"]).replace("namespace: dovetail", "namespace: default")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=rights)
        self.guard()
        selector = [{"key": "memory", "operator": "GtEq", "values": ["30G"]}]
        spec = {"resourceSelector": [{"matchExpressions": selector}]}
        kind = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ResourceClass"}
        cluster.apply({**kind, "metadata": {"name": "large"}, "spec": spec})
        file = cluster.directory / "properties.toml"
        file.write_text(PROPERTIES)
        agent.settings["devices"] = {
            "publish": True,
            "node": self.bed.node.name,
            "kubeconfig": self.kubeconfig,
            "properties_file": str(file),
        }
        agent.restart()

    def guard(self) -> None:
        given = manifests.text(["guard"])
        self.bed.cluster.kubectl("apply", "--server-side", "-f", "-", given=given)

    def devices(self) -> dict[str, Any]:
        """By ID, as the node tells."""
        _, said = self.bed.cluster.request("GET", f"/api/v1/nodes/{self.bed.node.name}")
        text = json.loads(said)["metadata"]["annotations"].get("dovetail.dev/devices", "[]")
        return {each["id"]: each for each in json.loads(text) if each.get("resource") == RESOURCE}

    def available(self) -> int | None:
        _, said = self.bed.cluster.request("GET", f"{CLASSES}/large")
        found: int | None = json.loads(said).get("status", {}).get("available")
        return found

    def await_available(self, number: int) -> None:
        self.bed.await_that(lambda: self.available() == number, f"{number} of class large")

    def explained(self, name: str) -> tuple[int, dict[str, Any]]:
        command = [str(DOVETAIL), "explain", "pod", name, "-o", "json"]
        command += ["--kubeconfig", str(self.bed.cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, found

    def ask(self, name: str) -> None:
        asked = {"resourceclass.dovetail.dev/large": "1"}
        self.bed.create_pod(name, role="web", scheduler="dovetail", resources=asked)


@contextmanager
def publishing_bed(directory: Path, **more: Any) -> Iterator[PublishingBed]:
    own = {"device_plugins": {"enabled": True, "directory": str(DIRECTORY), **more}}
    with node_bed(directory, scheduler=True, plugins=("cpu",), agent_settings=own) as bed:
        made = PublishingBed(bed)
        made.install()
        with made.plugin:
            yield made
