"""What containers are told by NRI, where a container has something of that name already."""

from __future__ import annotations

import pytest

from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.nri.adjustment import adjustment
from dovetail.node.nri.events import _check_places, _devices
from dovetail.node.wire import nri
from dovetail.node.wire.resource_plugin import DeviceSpec, ResourceAllocationInfo
from dovetail.wire.rpc import Refused


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


def test_a_place_where_another_device_is_is_refused() -> None:
    wanted = [DeviceSpec(host_path="/dev/zero", container_path="/dev/gpu", permissions="rw")]
    zero, null = (
        nri.LinuxDevice(path=path, type="c", major=1, minor=minor)
        for path, minor in (("/dev/gpu", 5), ("/dev/gpu", 3))
    )
    for there in ((), (zero,)):
        own = nri.Container(linux=nri.LinuxContainer(devices=there))
        _check_places(own, wanted, _devices(wanted))
    with pytest.raises(Refused, match="conflicting_settings"):
        _check_places(
            nri.Container(linux=nri.LinuxContainer(devices=(null,))), wanted, _devices(wanted)
        )
