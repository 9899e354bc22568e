"""A device plugin that classes and an unmodified kubelet share: never two pods with one device.

Pods of kube-scheduler ask for `vendor.com/gpu` itself; those of classes have the allocation that
Dovetail's scheduler writes. The plugin is somebody else's, and registers with the agent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, write_allocation
from tests.support.node import image
from tests.support.node.device_plugin_program import calls
from tests.support.node.kubelet.bed import NodeBed, node_bed
from tests.support.paths import ROOT
from tests.support.processes import Process

RESOURCE = "vendor.com/gpu"
IDS = ("gpu:0", "gpu:1", "gpu:2")
DIRECTORY = Path("/var/lib/kubelet/agent-device-plugins")
"""As the node sees it: what is mounted in the plugin's pod."""


@pytest.fixture(scope="module")
def shared_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeBed]:
    settings = {
        "device_plugins": {"enabled": True, "directory": str(DIRECTORY), "shared": [RESOURCE]},
        "devices": {"trust_annotations": True},
    }
    directory = tmp_path_factory.mktemp("bed")
    # So that numbers of devices are told within a second.
    often = {"nodeStatusUpdateFrequency": "1s"}
    options: dict[str, Any] = {"plugins": (), "agent_settings": settings, "kubelet_settings": often}
    with node_bed(directory, **options) as bed:
        yield bed


@pytest.fixture(scope="module")
def plugin(shared_bed: NodeBed) -> Iterator[Process]:
    log = shared_bed.cluster.directory / "gpu.calls"
    process = shared_bed.node.process(
        "gpu-plugin",
        *(sys.executable, "-m", "tests.support.node.device_plugin_program"),
        *("--directory", DIRECTORY, "--resource", RESOURCE, "--log", log),
        *(word for each in IDS for word in ("--device", f"{each}@0")),
        *("--env", "GPUS={ids}", "--device-node", "/dev/zero:/dev/{safe}:rw", "--pre-start"),
        # Whoever enters other mounts is at their root.
        environment={"PYTHONPATH": str(ROOT)},
    )
    with process:
        yield process


@pytest.fixture
def bed(shared_bed: NodeBed, plugin: Process) -> Iterator[NodeBed]:
    """All devices are free, before and afterwards."""
    assert plugin.is_running
    await_allocatable(shared_bed, len(IDS))
    yield shared_bed
    shared_bed.delete_pods()


def allocatable(bed: NodeBed) -> int:
    _, said = bed.cluster.request("GET", f"/api/v1/nodes/{bed.node.name}")
    return int(json.loads(said)["status"]["allocatable"].get(RESOURCE, 0))


def await_allocatable(bed: NodeBed, number: int) -> None:
    bed.await_that(lambda: allocatable(bed) == number, f"{number} of {RESOURCE} on the node")


def by_class(bed: NodeBed, id_: str) -> dict[str, str]:
    """The annotation of a pod that the scheduler gave this device."""
    holding = DeviceHolding(container="main", class_name="gpus", device=f"dev-{id_}", units=1)
    origins = {f"dev-{id_}": PluginOrigin(RESOURCE, id_)}
    return {ALLOCATION: write_allocation(bed.node.name, [holding], origins)}


def start_by_class(bed: NodeBed, name: str, id_: str) -> None:
    bed.create_pod(name, annotations=by_class(bed, id_), node=bed.node.name)


def start_direct(bed: NodeBed, name: str, number: int = 1, **more: Any) -> None:
    bed.create_pod(name, resources={RESOURCE: str(number)}, **more)


def devices_in(bed: NodeBed, name: str) -> list[str]:
    """Of a pod that runs: by its environment, which must agree with its device nodes."""
    bed.await_running(name)
    told = bed.exec(name, "sh", "-c", "echo $GPUS").strip()
    nodes = bed.exec(name, "sh", "-c", "ls /dev | grep gpu || true").split()
    ids = sorted(told.split(",")) if told else []
    assert nodes == [each.replace(":", "_") for each in ids]
    return ids


def held(bed: NodeBed) -> tuple[int, int]:
    (found,) = bed.agent.told("plugins")["device_plugins"]
    return found["held_by_classes"], found["held_by_kubelet"]


def test_pods_of_both_kinds_have_devices_of_their_own(bed: NodeBed) -> None:
    start_by_class(bed, "classy", "gpu:1")
    assert devices_in(bed, "classy") == ["gpu:1"]
    await_allocatable(bed, 2)
    start_direct(bed, "direct", 2)
    assert devices_in(bed, "direct") == ["gpu:0", "gpu:2"]
    bed.await_that(lambda: held(bed) == (1, 2), "1 held by a class, 2 by the kubelet")
    start_direct(bed, "late")
    bed.await_event("late", "FailedScheduling", f"Insufficient {RESOURCE}")
    bed.delete_pod("classy")
    assert devices_in(bed, "late") == ["gpu:1"]


def test_a_class_gets_no_device_of_a_direct_pod(bed: NodeBed) -> None:
    start_direct(bed, "direct", 3)
    assert devices_in(bed, "direct") == list(IDS)
    start_by_class(bed, "classy", "gpu:2")
    bed.await_event("classy", "FailedCreatePodSandBox", "device gpu:2 of vendor.com/gpu is held by")
    bed.delete_pod("direct")
    assert devices_in(bed, "classy") == ["gpu:2"]


def test_the_kubelet_cannot_give_away_what_a_class_holds(bed: NodeBed) -> None:
    """Not even to a pod that no scheduler has looked at."""
    start_by_class(bed, "classy", "gpu:0")
    assert devices_in(bed, "classy") == ["gpu:0"]
    start_direct(bed, "greedy", 3, node=bed.node.name)
    failed = bed.await_phase("greedy", "Failed")
    assert RESOURCE in failed["status"]["message"]
    assert devices_in(bed, "classy") == ["gpu:0"]


def test_devices_of_init_containers_are_the_kubelets_too(bed: NodeBed) -> None:
    """Its pod resources API does not tell of them."""
    init = {
        "initContainers": [
            {
                "name": "first",
                "image": image.REFERENCE,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", "until test -e /go/on; do sleep 0.2; done"],
                "resources": {"limits": {RESOURCE: "3"}},
                "volumeMounts": [{"name": "go", "mountPath": "/go"}],
            }
        ],
        "volumes": [{"name": "go", "emptyDir": {}}],
    }
    bed.create_pod("slow", spec=init)
    bed.await_pod(
        "slow",
        lambda pod: any(
            "running" in each["state"] for each in pod["status"].get("initContainerStatuses", [])
        ),
        "its init container runs",
    )
    bed.await_that(lambda: held(bed) == (0, 3), "3 held by the kubelet")
    start_by_class(bed, "classy", "gpu:0")
    bed.await_event("classy", "FailedCreatePodSandBox", "device gpu:0 of vendor.com/gpu is held by")


def run_direct(bed: NodeBed, name: str) -> str:
    """As a controller does: a kubelet that lost its devices for a moment fails pods for good."""

    def one_that_runs() -> str | None:
        made = f"{name}-{next(numbers)}"
        start_direct(bed, made)
        phases = ("Running", "Failed")
        pod = bed.await_pod(made, lambda found: found["status"].get("phase") in phases, "decided")
        if pod["status"]["phase"] == "Running":
            return made
        assert RESOURCE in pod["status"]["message"], pod["status"]
        bed.delete_pod(made)
        return None

    numbers = count()
    return bed.await_that(one_that_runs, f"a direct pod {name} that runs")


def restart(part: Process, end: Callable[[Process], object]) -> None:
    end(part)
    part.start()


@pytest.mark.parametrize("end", [Process.stop, Process.kill], ids=["TERM", "KILL"])
@pytest.mark.parametrize("part", ["kubelet", "agent", "plugin", "containerd"])
def test_restarts(
    bed: NodeBed, plugin: Process, part: str, end: Callable[[Process], object]
) -> None:
    start_by_class(bed, "classy", "gpu:1")
    assert devices_in(bed, "classy") == ["gpu:1"]
    await_allocatable(bed, 2)
    start_direct(bed, "direct")
    (mine,) = devices_in(bed, "direct")
    (left,) = {*IDS} - {"gpu:1", mine}
    restart(plugin if part == "plugin" else getattr(bed, part), end)
    second = run_direct(bed, "second")
    assert devices_in(bed, second) == [left]
    assert devices_in(bed, "classy") == ["gpu:1"]
    assert devices_in(bed, "direct") == [mine]
    bed.delete_pod(second)
    bed.await_that(lambda: held(bed) == (1, 1), "both pods' devices are held")
    start_by_class(bed, "another", left)
    assert devices_in(bed, "another") == [left]
    bed.delete_pods()
    bed.await_that(lambda: held(bed) == (0, 0), "nothing is held")


def test_each_start_was_told_to_the_plugin(bed: NodeBed) -> None:
    log = bed.cluster.directory / "gpu.calls"
    before = len(calls(log, "PreStartContainer"))
    start_direct(bed, "direct")
    direct = devices_in(bed, "direct")
    free = min({*IDS} - {*direct})
    start_by_class(bed, "classy", free)
    assert devices_in(bed, "classy") == [free]
    told = [each["ids"] for each in calls(log, "PreStartContainer")[before:]]
    assert told == [direct, [free]]
