"""A device plugin's devices are devices of the node, and the way of a pod to one can be told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.kubelet.publishing import (
    GUARD,
    LARGE,
    RESOURCE,
    SMALL,
    PublishingBed,
    publishing_bed,
)
from tests.node.kubelet.tour import PAGE, page_now
from tests.support.kube.tour import without_varying


@pytest.fixture(scope="module")
def publishing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublishingBed]:
    with publishing_bed(tmp_path_factory.mktemp("bed")) as made:
        yield made


@pytest.fixture
def world(publishing: PublishingBed) -> Iterator[PublishingBed]:
    publishing.await_available(1)
    yield publishing
    publishing.control.unlink(missing_ok=True)
    publishing.bed.delete_pods()


def test_devices_and_their_health_are_told_and_classes_follow(world: PublishingBed) -> None:
    found = world.devices()
    assert {id_: each["properties"] for id_, each in found.items()} == {
        SMALL: {"memory": "20G", "numa": "0"},
        LARGE: {"memory": "80G", "numa": "0"},
    }
    world.control.write_text(json.dumps({"unhealthy": [LARGE]}))
    world.await_available(0)
    assert world.devices()[LARGE]["healthy"] is False
    world.control.write_text("{}")
    world.await_available(1)


def test_the_way_of_a_pod_to_its_device_is_told(world: PublishingBed) -> None:
    bed = world.bed
    world.ask("user")
    bed.await_running("user")
    assert bed.exec("user", "sh", "-c", "echo $GPUS").strip() == LARGE
    given = bed.await_event("user", "Allocated")
    assert f"{RESOURCE} {LARGE}" in given["message"]
    assert "CPUs " in given["message"]
    code, chain = world.explained("user")
    assert (code, chain["stopped"]) == (0, None)
    (device,) = chain["devices"]
    assert (device["class"], device["id"]) == ("large", LARGE)
    assert device["way"] == f"by device plugin {RESOURCE}"
    assert chain["given"] == given["message"]
    said = bed.kubectl("describe", "pod", "user")
    assert f"large -> {device['device']} by device plugin {RESOURCE}" in said
    # The next one waits, and is told why.
    world.ask("next")
    bed.await_event("next", "FailedScheduling")
    code, chain = world.explained("next")
    assert (code, chain["stopped"]["where"]) == (1, "scheduling")
    assert "held by pod default/user" in chain["stopped"]["why"]
    bed.delete_pod("user")
    bed.await_running("next")


def test_without_the_guard_a_pod_is_refused_and_with_it_started(world: PublishingBed) -> None:
    bed = world.bed
    bed.kubectl("delete", GUARD)
    try:
        # What it knew of the guard is asked for again.
        bed.agent.restart()
        bed.node.await_plugins()
        world.ask("user")
        bed.await_event("user", "FailedCreatePodSandBox", "annotation_not_trusted")
        code, chain = world.explained("user")
        assert (code, chain["stopped"]["where"]) == (1, "node")
        assert "dovetail manifests guard" in chain["stopped"]["why"]
    finally:
        world.guard()
    bed.await_running("user")
    assert bed.exec("user", "sh", "-c", "echo $GPUS").strip() == LARGE


def test_the_page_ends_with_a_device_in_a_container(world: PublishingBed, tmp_path: Path) -> None:
    """As often as it takes: what the agent says of the pod may come after the pod runs."""
    page = without_varying(PAGE.read_text(encoding="utf-8"))
    world.bed.await_that(lambda: without_varying(page_now(world, tmp_path)) == page, "the page")
