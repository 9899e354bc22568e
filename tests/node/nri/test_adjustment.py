"""What containers are told by NRI, where a container has something of that name already."""

from __future__ import annotations

from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.nri.adjustment import adjustment
from dovetail.node.wire import nri
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo


def told(info: ResourceAllocationInfo) -> dict[str, str]:
    image = nri.Container(env=("PATH=/bin", "VISIBLE_DEVICES=all"))
    adjusted = adjustment(image, settings_of({"class:vendor.com/gpu": info}), {})
    return {each.key: each.value for each in adjusted.env}


def test_an_image_does_not_say_which_devices_a_container_has() -> None:
    own = {"VISIBLE_DEVICES": "GPU-0", "MODE": "fast"}
    assert told(ResourceAllocationInfo(envs=own, device_ids=("GPU-0",))) == own


def test_other_variables_of_a_container_stay() -> None:
    own = {"VISIBLE_DEVICES": "GPU-0", "MODE": "fast"}
    assert told(ResourceAllocationInfo(envs=own)) == {"MODE": "fast"}
