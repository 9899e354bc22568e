"""Devices that an unmodified kubelet gives to pods, too: classes are told which it has.

Pods of kube-scheduler ask for `vendor.com/gpu` itself, those of Dovetail's scheduler for a class.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node.kubelet.publishing import (
    LARGE,
    RESOURCE,
    SMALL,
    PublishingBed,
    publishing_bed,
)
from tests.support.node.kubelet.bed import NodeBed


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublishingBed]:
    with publishing_bed(tmp_path_factory.mktemp("bed"), shared=[RESOURCE]) as made:
        made.await_available(1)
        yield made


def gpus(bed: NodeBed, name: str) -> str:
    return bed.exec(name, "sh", "-c", "echo $GPUS").strip()


def holders(world: PublishingBed) -> dict[str, str]:
    """By ID, who besides classes has it, as the node tells."""
    told = world.devices().items()
    return {id_: each["properties"].get("held-by", "") for id_, each in told}


def test_what_the_kubelet_gave_is_no_device_of_a_class_until_its_pod_ended(
    world: PublishingBed,
) -> None:
    bed = world.bed
    bed.create_pod("both", role="web", resources={RESOURCE: "2"})
    bed.await_running("both")
    everything = {SMALL: "kubelet", LARGE: "kubelet"}
    bed.await_that(lambda: holders(world) == everything, "devices with the kubelet")
    world.await_available(0)
    world.ask("classy")
    bed.await_event("classy", "FailedScheduling")
    bed.delete_pod("both")
    bed.await_running("classy")
    assert gpus(bed, "classy") == LARGE
    # And what the class has is none of the kubelet's, who has one left.
    bed.create_pod("direct", role="web", resources={RESOURCE: "1"})
    bed.await_running("direct")
    assert gpus(bed, "direct") == SMALL
    bed.await_that(lambda: holders(world) == {SMALL: "kubelet", LARGE: ""}, "one each")
