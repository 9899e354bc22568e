"""Devices of classes by NRI: what containerd brings in, and what it would leave out without a word.

The containerd of the bed is older than the first that brings in CDI devices of NRI plugins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION, write_allocation
from tests.support.node.kubelet.bed import NodeBed, node_bed
from tests.support.paths import ROOT
from tests.support.processes import Process

DIRECTORY = Path("/var/lib/kubelet/agent-device-plugins")
PLAIN, CDI = "vendor.com/plain", "vendor.com/cdi"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeBed]:
    settings: dict[str, Any] = {
        "device_plugins": {"enabled": True, "directory": str(DIRECTORY)},
        "devices": {"trust_annotations": True},
    }
    directory = tmp_path_factory.mktemp("bed")
    with (
        node_bed(directory, backend="nri", plugins=(), agent_settings=settings) as found,
        plugin(found, PLAIN, "--device-node", "/dev/zero:/dev/plain:rw", "--mount", "/opt:/opt:ro"),
        plugin(found, CDI, "--cdi", "vendor.com/cdi={safe}"),
    ):
        found.await_that(lambda: len(up(found)) == 2, "both plugins are up")
        yield found


def plugin(bed: NodeBed, resource: str, *more: str) -> Process:
    return bed.node.process(
        resource.replace("/", "-"),
        *(sys.executable, "-m", "tests.support.node.device_plugin_program"),
        *("--directory", DIRECTORY, "--resource", resource, "--device", "dev:0"),
        *("--env", "DEVICE={ids}", *more),
        environment={"PYTHONPATH": str(ROOT)},
    )


def up(bed: NodeBed) -> list[str]:
    found = bed.agent.told("plugins")["device_plugins"]
    return [each["resource"] for each in found if each["state"] == "up"]


def create(bed: NodeBed, name: str, resource: str) -> None:
    holding = DeviceHolding("device", 1, "class", "main")
    text = write_allocation(bed.node.name, [holding], {"device": PluginOrigin(resource, "dev:0")})
    bed.create_pod(name, annotations={ALLOCATION: text}, node=bed.node.name)


def test_nodes_mounts_and_environment_are_inside(bed: NodeBed) -> None:
    create(bed, "plain", PLAIN)
    bed.await_running("plain")
    said = bed.exec("plain", "sh", "-c", "echo $DEVICE; stat -c %F /dev/plain; ls -d /opt")
    assert said.splitlines() == ["dev:0", "character special file", "/opt"]


def test_cdi_devices_that_would_be_left_out_keep_the_pod_out(bed: NodeBed) -> None:
    create(bed, "left-out", CDI)
    bed.await_event("left-out", "FailedCreatePodSandBox", "cannot_inject: containerd 1.7.")
    bed.delete_pod("left-out")
    bed.await_that(
        lambda: all(
            not each["held_by_classes"]
            for each in bed.agent.told("plugins")["device_plugins"]
            if each["resource"] == CDI
        ),
        "nothing is held",
    )
