"""From class to container by a DRA driver: the scheduler writes claims, a kubelet as it is reads.

Everything is real: API server, controllers, scheduler, kubelets, containerd, agent, and a driver on
each node that was written without us. Two nodes have devices that differ.
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

from tests.node.kubelet.restarts import kill_between, locking, start_again
from tests.support.kube.cluster import OK
from tests.support.node.dra_driver_program import PREPARE, UNPREPARE, calls
from tests.support.node.kubelet.bed import NodeBed, container_id, node_bed, statuses
from tests.support.node.kubelet.node import RealNode
from tests.support.node.kubelet.pods import container_object
from tests.support.paths import ROOT
from tests.support.processes import Process

DRIVER = "gpu.example.com"
CLASS = "resourceclass.dovetail.dev"
DEVICES = (
    ("big0:memory=40Gi,kind=gpu", "small0:memory=16Gi,kind=gpu", "small1:memory=16Gi,kind=gpu"),
    ("small2:memory=16Gi,kind=gpu", "small3:memory=16Gi,kind=gpu"),
)
"""By node; of all, one has at least 30G of memory."""
CLASSES = {
    "big": [("kind", "In", "gpu"), ("memory", "GtEq", "30G")],
    "any": [("kind", "In", "gpu")],
}
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


class DraBed:
    def __init__(self, bed: NodeBed) -> None:
        self.bed, self.here = bed, bed.cluster.directory
        self.folders = self.here / "devices"
        self.drivers = [self._driver(*each) for each in zip(bed.nodes, DEVICES, strict=True)]

    def _driver(self, node: RealNode, devices: tuple[str, ...]) -> Process:
        for each in devices:
            (self.folders / each.partition(":")[0]).mkdir(parents=True)
        return node.process(
            f"dra-driver-{node.name}",
            *(sys.executable, "-m", "tests.support.node.dra_driver_program"),
            *("--driver", DRIVER, "--node", node.name, "--cdi", node.containerd.cdi),
            *("--kubeconfig", self.bed.cluster.kubeconfig),
            *(word for each in devices for word in ("--device", each)),
            *("--mount", f"{self.folders}/{{device}}:/claims/{{device}}"),
            *("--log", self.log(node), "--control", self.here / f"{node.name}.control"),
            # Whoever enters other mounts is at their root.
            environment={"PYTHONPATH": str(ROOT)},
        )

    def log(self, node: RealNode) -> Path:
        return self.here / f"{node.name}.calls"

    def told(self, call: str, node: RealNode | None = None) -> list[dict[str, Any]]:
        return calls(self.log(node or self.bed.node), call)

    def control(self, **how: Any) -> None:
        """How the first node's driver behaves from now on."""
        draft = self.here / "control.new"
        draft.write_text(json.dumps(how))
        draft.rename(self.here / f"{self.bed.node.name}.control")

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

    def numbers(self, name: str) -> tuple[int, int]:
        """Devices of a class, and how many of them are held."""
        path = f"/apis/dovetail.dev/v1alpha1/resourceclasses/{name}"
        status, said = self.bed.cluster.request("GET", path)
        told = json.loads(said).get("status", {}) if status == OK else {}
        return told.get("allocatable", 0), told.get("requested", 0)

    def await_numbers(self, name: str, *wanted: int) -> None:
        self.bed.await_that(
            lambda: self.numbers(name) == wanted, f"{wanted[0]} of class {name}, {wanted[1]} held"
        )

    def claims(self) -> list[dict[str, Any]]:
        status, said = self.bed.cluster.request("GET", CLAIMS)
        assert status == OK, said
        found: list[dict[str, Any]] = json.loads(said)["items"]
        return found

    def create(self, name: str, class_name: str, **more: Any) -> None:
        wanted = {f"{CLASS}/{class_name}": "1"}
        more = {"cpu": "10m", "memory": "16Mi", "role": "web", **more}
        self.bed.create_pod(name, resources=wanted, scheduler="dovetail", **more)

    def run(self, name: str, class_name: str, **more: Any) -> dict[str, Any]:
        self.create(name, class_name, **more)
        return self.bed.await_running(name)

    def inside(self, name: str, container: str = "main") -> set[str]:
        """Devices that a container has: by its environment, /dev and mounts, which agree."""
        process = Path(f"/proc/{self.bed.process_of(name, container)}")
        # It is told to run just before it is what it will be.
        self.bed.await_that(
            lambda: b"runc" not in (process / "cmdline").read_bytes(), f"start of {name}"
        )
        environment = (process / "environ").read_text().split("\0")
        named = {word.split("=")[0][4:].lower() for word in environment if word.startswith("DRA_")}
        nodes = {each.name[4:] for each in (process / "root/dev").glob("dra-*")}
        folders = {each.name for each in (process / "root/claims").glob("*")}
        assert named == nodes == folders
        return named

    def await_nothing_held(self) -> None:
        self.await_numbers("any", 5, 0)
        self.bed.await_that(lambda: not self.claims(), "no ResourceClaims")
        for node in self.bed.nodes:
            self.bed.await_that(
                lambda node=node: not list(node.containerd.cdi.glob(f"{DRIVER}-*")),  # type: ignore[misc]
                "nothing is prepared",
            )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DraBed]:
    often = {"syncFrequency": "5s"}
    with node_bed(
        tmp_path_factory.mktemp("bed"), nodes=2, scheduler=True, kubelet_settings=often
    ) as bed:
        found = DraBed(bed)
        found.apply_classes()
        with found.drivers[0], found.drivers[1]:
            found.await_numbers("big", 1, 0)
            found.await_numbers("any", 5, 0)
            yield found


@pytest.fixture
def dra(made: DraBed) -> Iterator[DraBed]:
    """With no pod and nothing held, before and afterwards."""
    for driver in made.drivers:
        if not driver.is_running:
            driver.start()
    for node in made.bed.nodes:
        node.revive()
    yield made
    made.control()
    made.bed.delete_pods()
    made.await_nothing_held()


def parts(dra: DraBed) -> dict[str, Process]:
    bed = dra.bed
    assert bed.scheduler
    return {
        "driver": dra.drivers[0],
        "agent": bed.agent,
        "kubelet": bed.kubelet,
        "containerd": bed.containerd,
        "scheduler": bed.scheduler,
    }


def test_the_device_is_in_the_containers_that_ask_and_in_no_other(dra: DraBed) -> None:
    bed = dra.bed
    asks = {f"{CLASS}/big": "1"}
    small: dict[str, Any] = {"cpu": "10m", "memory": "16Mi"}
    early = ["/bin/busybox", "sh", "-c", "busybox env > /claims/big0/early; busybox ls /dev"]
    pod = {
        "initContainers": [container_object("early", resources=asks, command=early, **small)],
    }
    bed.create_pod(
        "two",
        role="web",
        scheduler="dovetail",
        containers=[
            container_object("other", **small),
            container_object("main", resources=asks, **small),
            container_object("any", resources={f"{CLASS}/any": "2"}, **small),
        ],
        spec=pod,
    )
    found = bed.await_running("two")
    assert found["spec"]["nodeName"] == bed.node.name
    assert dra.inside("two") == {"big0"}
    assert dra.inside("two", "other") == set()
    assert dra.inside("two", "any") == {"small0", "small1"}
    assert "DRA_BIG0=" in (dra.folders / "big0/early").read_text()
    assert bed.exec("two", "ls", "/claims").split() == ["big0"]
    told = found["status"]["extendedResourceClaimStatus"]
    bed.await_event("two", "Scheduled", f"by ResourceClaim {told['resourceClaimName']}")
    (prepared,) = [each for each in dra.told(PREPARE) if each["claim"] == told["resourceClaimName"]]
    assert sorted(prepared["devices"]) == ["big0", "small0", "small1"]


def test_the_device_is_inside_over_restarts_of_every_part(dra: DraBed) -> None:
    """And after its end the next pod has it."""
    bed, number = dra.bed, 0
    dra.run("pod-0", "big")
    assert dra.inside("pod-0") == {"big0"}
    for end in (Process.stop, Process.kill):
        for part in parts(dra).values():
            start_again(part, end)
            assert dra.inside(f"pod-{number}") == {"big0"}
            # The next one is there before the end of this one, and waits for its device.
            number += 1
            dra.create(f"pod-{number}", "big")
            bed.delete_pod(f"pod-{number - 1}")
            bed.await_running(f"pod-{number}")
            assert dra.inside(f"pod-{number}") == {"big0"}
            (claim,) = dra.claims()
            assert claim["metadata"]["ownerReferences"][0]["name"] == f"pod-{number}"
    bed.delete_pod(f"pod-{number}")
    dra.await_nothing_held()
    ended = {each["uid"] for each in dra.told(UNPREPARE)}
    assert {each["uid"] for each in dra.told(PREPARE)} <= ended


def test_a_container_that_starts_again_has_its_device(dra: DraBed) -> None:
    bed = dra.bed
    first = container_id(dra.run("again", "big"))
    os.kill(bed.process_of("again"), signal.SIGKILL)
    bed.await_pod(
        "again",
        lambda pod: any(
            "running" in each["state"] and first not in each["containerID"]
            for each in statuses(pod)
        ),
        "another container runs",
    )
    assert dra.inside("again") == {"big0"}


def test_twenty_pods_at_once_never_share_a_device(dra: DraBed) -> None:
    """Five devices on two nodes, and each part is killed in between."""
    bed = dra.bed
    for number in range(20):
        dra.create(f"many-{number}", "any", **locking("/claims/*"))
    kill_between(bed, parts(dra).values(), pods=20)
    assert not list(dra.folders.glob("*/twice"))
    bed.delete_pods()
    dra.await_nothing_held()


def test_without_its_driver_a_pod_waits_and_is_told(dra: DraBed) -> None:
    bed = dra.bed
    dra.drivers[0].kill()
    dra.create("early", "big")
    bed.await_event("early", "FailedPrepareDynamicResources")
    dra.drivers[0].start()
    bed.await_running("early")
    assert dra.inside("early") == {"big0"}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"garbage": [PREPARE]}, "NodePrepareResources"),
        ({"refuse": {PREPARE: "it is too warm"}}, "it is too warm"),
        ({"hang": [PREPARE]}, "DeadlineExceeded"),
    ],
    ids=["garbage", "refusal", "hang"],
)
def test_a_driver_that_fails_is_told_of_and_troubles_nobody_else(
    dra: DraBed, how: dict[str, Any], words: str
) -> None:
    bed = dra.bed
    dra.control(**how)
    dra.create("unlucky", "big")
    bed.await_pod("unlucky", lambda pod: pod["spec"].get("nodeName"), "has a node")
    dra.run("lucky", "any", spec={"nodeSelector": {"kubernetes.io/hostname": bed.nodes[1].name}})
    bed.await_event("unlucky", "FailedPrepareDynamicResources", words)
    dra.control()
    bed.await_running("unlucky")
    assert dra.inside("unlucky") == {"big0"}


def test_a_driver_that_dies_at_every_call_leaves_nothing(dra: DraBed) -> None:
    bed, driver = dra.bed, dra.drivers[0]
    dra.control(die=PREPARE)
    dra.create("first", "big")
    bed.await_that(lambda: not driver.is_running, "the driver is dead")
    dra.control(die=UNPREPARE)
    driver.start()
    bed.await_running("first")
    assert dra.inside("first") == {"big0"}
    bed.cluster.request("DELETE", "/api/v1/namespaces/default/pods/first")
    bed.await_that(lambda: not driver.is_running, "the driver is dead")
    dra.create("second", "big")
    dra.control()
    driver.start()
    bed.await_running("second")
    assert dra.inside("second") == {"big0"}


def test_a_device_that_is_tainted_is_given_to_nobody(dra: DraBed) -> None:
    bed = dra.bed
    dra.control(taints={"big0": "NoSchedule"})
    dra.await_numbers("big", 0, 0)
    dra.create("waits", "big")
    bed.await_event("waits", "FailedScheduling")
    dra.control()
    bed.await_running("waits")
    assert dra.inside("waits") == {"big0"}
