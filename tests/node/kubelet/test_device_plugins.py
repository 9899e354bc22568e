"""From class to container: a device that the scheduler gave is in the container that asked for it.

Everything is real: API server, scheduler, kubelet, containerd, agent, and two device plugins that
were written without us. Devices flow up to the scheduler by the agent; pods ask for classes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, write_allocation
from dovetail.kube import manifests
from dovetail.node.topology import Nic, synthetic
from tests.node.kubelet.restarts import kill_between, locking, start_again
from tests.support.kube.cluster import OK
from tests.support.node.device_plugin_program import calls
from tests.support.node.kubelet.bed import NodeBed, container_id, node_bed, statuses
from tests.support.node.kubelet.node import ROLES
from tests.support.paths import ROOT
from tests.support.processes import Process

DIRECTORY = Path("/var/lib/kubelet/agent-device-plugins")
"""As the node sees it: what is mounted in the plugins' pods."""
GPU, TOKEN = "vendor.com/gpu", "vendor.com/token"
BIG = "GPU-big:1"
"""The one device with at least 30G of memory."""
TOKENS = tuple(f"token:{number}" for number in range(6))
NIC_NAME = "eth7"
MACHINE = synthetic(1, 1, 2, 1, nics=[Nic(name=NIC_NAME, numa=0, speed=25_000)])
WITH_ADDRESS = f"""{ROLES}
[nics.{NIC_NAME}]
ipv4 = "192.0.2.7"
"""
PROPERTIES = f"""
["{GPU}"."*"]
memory = "16G"

["{GPU}"."{BIG}"]
memory = "40G"
"""
CLASSES = {
    "big": [("Kind", "In", GPU), ("memory", "GtEq", "30G")],
    "token": [("Kind", "In", TOKEN)],
    "nic": [("Kind", "In", "nic"), ("speed", "GtEq", "10GBPS")],
}


class DeviceBed:
    def __init__(self, bed: NodeBed) -> None:
        self.bed, self.here = bed, bed.cluster.directory
        self.claims = self.here / "claims"
        self.gpu = self._plugin(
            GPU,
            [f"{each}@0" for each in ("GPU-small:1", BIG, "GPU-small:2")],
            *("--env", "GPUS={ids}", "--device-node", "/dev/zero:/dev/gpu{index}:rw"),
            *("--mount", f"{self.claims}/{{safe}}:/gpu:rw", "--annotation", "vendor.com/gpu={ids}"),
            *("--cdi", "vendor.com/gpu={safe}", "--pre-start"),
        )
        self.token = self._plugin(
            TOKEN,
            TOKENS,
            *("--env", "TOKEN={ids}", "--mount", f"{self.claims}/{{safe}}:/claim:rw"),
        )
        for each in ("GPU-small_1", "GPU-big_1", "GPU-small_2", *map(safe, TOKENS)):
            (self.claims / each).mkdir(parents=True)
        (self.claims / "GPU-big_1/name").write_text("the big one")

    def _plugin(self, resource: str, devices: Any, *more: str) -> Process:
        name = resource.partition("/")[2]
        return self.bed.node.process(
            f"{name}-plugin",
            *(sys.executable, "-m", "tests.support.node.device_plugin_program"),
            *("--directory", DIRECTORY, "--resource", resource, "--deallocate"),
            *("--log", self.log(resource), "--control", self.here / f"{name}.control"),
            *(word for each in devices for word in ("--device", each)),
            *more,
            # Whoever enters other mounts is at their root.
            environment={"PYTHONPATH": str(ROOT)},
        )

    def log(self, resource: str) -> Path:
        return self.here / f"{resource.partition('/')[2]}.calls"

    def told(self, resource: str, call: str) -> list[Any]:
        return [each["ids"] for each in calls(self.log(resource), call)]

    def control(self, **how: Any) -> None:
        """How the plugin of GPUs behaves from now on."""
        draft = self.here / "gpu.control.new"
        draft.write_text(json.dumps(how))
        draft.rename(self.here / "gpu.control")

    def write_cdi(self) -> None:
        edits = {"env": ["FROM_CDI=big"], "deviceNodes": [{"path": "/dev/full"}]}
        spec = {
            "cdiVersion": "0.6.0",
            "kind": "vendor.com/gpu",
            "devices": [{"name": "GPU-big_1", "containerEdits": edits}],
        }
        (self.bed.containerd.cdi / "gpu.json").write_text(json.dumps(spec))

    def apply_classes(self) -> None:
        for name, wanted in CLASSES.items():
            listed = [
                {"key": key, "operator": how, "values": [value]} for key, how, value in wanted
            ]
            self.bed.cluster.apply(
                {
                    "apiVersion": "dovetail.dev/v1alpha1",
                    "kind": "ResourceClass",
                    "metadata": {"name": name},
                    "spec": {"resourceSelector": [{"matchExpressions": listed}]},
                }
            )

    def allocatable(self, name: str) -> int:
        path = f"/apis/dovetail.dev/v1alpha1/resourceclasses/{name}"
        status, said = self.bed.cluster.request("GET", path)
        return json.loads(said).get("status", {}).get("allocatable", 0) if status == OK else 0

    def await_allocatable(self, name: str, number: int) -> None:
        self.bed.await_that(
            lambda: self.allocatable(name) == number, f"{number} devices of class {name}"
        )

    def create(self, name: str, class_name: str, **more: Any) -> None:
        wanted = {f"resourceclass.dovetail.dev/{class_name}": "1"}
        more = {"cpu": "10m", "memory": "16Mi", "role": "web", **more}
        self.bed.create_pod(name, resources=wanted, scheduler="dovetail", **more)

    def create_by_hand(self, name: str, id_: str) -> None:
        """With an allocation that no scheduler made."""
        holding = DeviceHolding("device", 1, "big", "main")
        node = self.bed.node.name
        text = write_allocation(node, [holding], {"device": PluginOrigin(GPU, id_)})
        self.bed.create_pod(name, role="web", annotations={ALLOCATION: text}, node=node)

    def run(self, name: str, class_name: str, **more: Any) -> dict[str, Any]:
        self.create(name, class_name, **more)
        return self.bed.await_running(name)

    def check_big(self, name: str) -> None:
        """Node, mount, environment, annotation and CDI edits of just that device are inside."""
        script = "echo $GPUS $FROM_CDI; ls /dev; cat /gpu/name; stat -c %F /dev/gpu1"
        command = ("exec", name, "-c", "main", "--", "sh", "-c", script)

        def look() -> str:
            """Nothing of a kubelet that was just started, and does not know its pods yet."""
            found = self.bed.kubectl(*command, check=False)
            return "" if found.lower().startswith("error") else found

        said = self.bed.await_that(look, f"what {name} says", about=name)
        told, *inside, named = said.splitlines()
        assert told == f"{BIG} big"
        assert {each for each in inside if each.startswith("gpu")} == {"gpu1"}
        assert "full" in inside, "by CDI"
        assert named == "the big onecharacter special file"

    def holding(self) -> dict[str, list[str]]:
        """By pod, the IDs that the agent's checkpoint has."""
        found = {
            pod["name"]: sorted(
                id_
                for container in pod["containers"]
                for info in container["allocations"].values()
                for id_ in info["device_ids"]
            )
            for pod in self.bed.agent.told("state")["pods"]
        }
        return {name: ids for name, ids in found.items() if ids}

    def await_up(self) -> None:
        """A pod that comes before its plugin is there again is tried again, but not soon."""

        def look() -> bool:
            found = self.bed.agent.told("plugins")
            states = [each["state"] for kind in found.values() for each in kind]
            return len(states) == 4 and {*states} == {"up"}

        self.bed.await_that(look, "all plugins are up")

    def await_nothing_held(self) -> None:
        def look() -> bool:
            state = self.bed.agent.told("state")
            (gpu, token) = self.bed.agent.told("plugins")["device_plugins"]
            held = gpu["held_by_classes"] + token["held_by_classes"]
            return not state["pods"] and not state["removals"] and not held

        self.bed.await_that(look, "nothing is held")


def safe(id_: str) -> str:
    return id_.replace(":", "_")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceBed]:
    directory = tmp_path_factory.mktemp("bed")
    properties = directory / "properties.toml"
    properties.write_text(PROPERTIES)
    settings = {
        "device_plugins": {"enabled": True, "directory": str(DIRECTORY)},
        "devices": {
            "publish": True,
            "kubeconfig": str(directory / "admin.kubeconfig"),
            "properties_file": str(properties),
        },
    }
    with node_bed(
        directory,
        scheduler=True,
        plugins=("cpu", "nic"),
        machine=MACHINE,
        roles=WITH_ADDRESS,
        agent_settings=settings,
    ) as bed:
        for each in yaml.safe_load_all(manifests.text(["guard"])):
            bed.cluster.apply(each)
        found = DeviceBed(bed)
        found.write_cdi()
        found.apply_classes()
        with found.gpu, found.token:
            found.await_allocatable("big", 1)
            found.await_allocatable("token", len(TOKENS))
            yield found


@pytest.fixture
def devices(made: DeviceBed) -> Iterator[DeviceBed]:
    """With no pod and nothing held, before and afterwards."""
    for part in (made.gpu, made.token):
        if not part.is_running:
            part.start()
    made.bed.node.revive()
    yield made
    made.control()
    made.bed.delete_pods()
    made.await_nothing_held()


def parts(devices: DeviceBed) -> dict[str, Process]:
    bed = devices.bed
    assert bed.scheduler
    return {
        "plugin": devices.gpu,
        "agent": bed.agent,
        "kubelet": bed.kubelet,
        "containerd": bed.containerd,
        "scheduler": bed.scheduler,
    }


def test_the_device_is_inside_over_restarts_of_every_part(devices: DeviceBed) -> None:
    """Each twice, once in peace and once not; and after its end the next pod has it."""
    bed, number = devices.bed, 0
    devices.run("pod-0", "big")
    devices.check_big("pod-0")
    bed.await_event("pod-0", "Scheduled", "big")
    listed = list(parts(devices).values())
    for peacefully, suddenly in zip(listed, [*listed[1:], listed[0]], strict=True):
        start_again(peacefully, Process.stop)
        start_again(suddenly, Process.kill)
        devices.await_up()
        devices.check_big(f"pod-{number}")
        # The next one is there before the end of this one, and waits for its device.
        number += 1
        devices.create(f"pod-{number}", "big")
        bed.delete_pod(f"pod-{number - 1}")
        bed.await_running(f"pod-{number}")
        devices.check_big(f"pod-{number}")
        assert devices.holding() == {f"pod-{number}": [BIG]}
    assert devices.told(GPU, "Allocate")[-number - 1 :] == [[[BIG]]] * (number + 1)
    bed.delete_pod(f"pod-{number}")
    devices.await_nothing_held()
    assert devices.told(GPU, "Deallocate")[-number - 1 :] == [[BIG]] * (number + 1)


def test_a_container_that_starts_again_has_it_without_being_given_it_again(
    devices: DeviceBed,
) -> None:
    bed = devices.bed
    first = container_id(devices.run("again", "big"))
    given = len(devices.told(GPU, "Allocate"))
    started = len(devices.told(GPU, "PreStartContainer"))
    os.kill(bed.process_of("again"), signal.SIGKILL)
    bed.await_pod(
        "again",
        lambda pod: any(
            "running" in each["state"] and first not in each["containerID"]
            for each in statuses(pod)
        ),
        "another container runs",
    )
    devices.check_big("again")
    assert len(devices.told(GPU, "Allocate")) == given
    assert devices.told(GPU, "PreStartContainer")[started:] == [[BIG]]


def test_twenty_pods_at_once_never_share_a_device(devices: DeviceBed) -> None:
    """Six devices, and each part is killed in between."""
    bed, given = devices.bed, len(devices.told(TOKEN, "Allocate"))
    for number in range(20):
        devices.create(f"many-{number}", "token", **locking("/claim"))
    kill_between(bed, [devices.token, *list(parts(devices).values())[1:]], pods=20)
    assert not list(devices.claims.glob("*/twice"))
    allocated = [id_ for ((id_,),) in devices.told(TOKEN, "Allocate")[given:]]
    assert {*allocated} == {*TOKENS}
    bed.delete_pods()
    devices.await_nothing_held()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"garbage": ["Allocate"]}, "plugin_garbage"),
        ({"refuse": {"Allocate": "it is too warm"}}, "it is too warm"),
        ({"hang": ["Allocate"]}, "plugin_timeout"),
    ],
    ids=["garbage", "refusal", "hang"],
)
def test_a_plugin_that_fails_is_told_of_and_troubles_nobody_else(
    devices: DeviceBed, how: dict[str, Any], words: str
) -> None:
    bed = devices.bed
    devices.control(**how)
    devices.create("unlucky", "big")
    bed.await_event("unlucky", "FailedCreatePodSandBox", "dovetail: ")
    devices.run("lucky", "token")
    bed.await_event("unlucky", "FailedCreatePodSandBox", words)
    devices.control()
    # It starts when its plugin is well; the others went by then.
    bed.delete_pod("lucky")
    if "refuse" in how:
        bed.await_running("unlucky")
        devices.check_big("unlucky")
        assert devices.holding() == {"unlucky": [BIG]}


def test_devices_that_are_not_there_or_another_pods_or_went_are_told(devices: DeviceBed) -> None:
    bed = devices.bed
    devices.run("here", "big")
    devices.create_by_hand("wrong", "GPU-none")
    devices.create_by_hand("thief", BIG)
    bed.await_event("wrong", "FailedCreatePodSandBox", "device_unknown: device GPU-none of")
    bed.await_event("thief", "FailedCreatePodSandBox", "is held by pod default/here")
    devices.check_big("here")
    assert devices.holding() == {"here": [BIG]}
    # It vanishes between the choice and a start.
    devices.control(gone=[BIG])
    os.kill(bed.process_of("here"), signal.SIGKILL)
    bed.await_event("here", "Failed", f"device_unknown: device {BIG} of {GPU}")
    devices.control()
    bed.await_running("here")
    devices.check_big("here")


def test_a_nic_given_by_class_is_told_to_its_container(devices: DeviceBed) -> None:
    devices.await_allocatable("nic", 1)
    devices.run("net", "nic")
    told = devices.bed.exec("net", "env")
    assert f"AFFINITY_NIC_NAME={NIC_NAME}" in told
    assert "AFFINITY_NIC_ADDR_IPV4=192.0.2.7" in told
    devices.create("second", "nic")
    devices.bed.await_event("second", "FailedScheduling")
    devices.bed.delete_pod("net")
    devices.bed.await_running("second")
    assert f"AFFINITY_NIC_NAME={NIC_NAME}" in devices.bed.exec("second", "env")
