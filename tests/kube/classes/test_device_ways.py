"""What users are told of how devices come into containers."""

from __future__ import annotations

from dovetail.core.device import DraOrigin, Origin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.device_ways import chain_text


def test_class_device_and_way_are_named() -> None:
    held = (
        DeviceHolding("g0", 1, "gpu", "a"),
        DeviceHolding("g1", 1, "gpu", "b"),
        DeviceHolding("eth0", 1, "nic", "a"),
        DeviceHolding("pages", 8, "large", "a"),
        DeviceHolding("d0", 1, "dra", "a"),
        DeviceHolding("f0", 1, "fpga", "a"),
    )
    origins: dict[str, Origin] = {
        "g0": PluginOrigin("vendor.com/gpu", "GPU-0"),
        "g1": PluginOrigin("vendor.com/gpu", "GPU-1"),
        "eth0": PluginOrigin("nic", "eth0"),
        "pages": PluginOrigin("hugepages-2Mi", "numa0"),
        "d0": DraOrigin("gpu.example.com", "n1", "d0"),
    }
    assert chain_text(held, origins, "p-claim") == (
        "gpu -> g0, g1 by device plugin vendor.com/gpu; "
        "nic -> eth0 by the node agent's plugin for nic; "
        "large -> pages (8) by the node agent's plugin for hugepages-2Mi; "
        "dra -> d0 by ResourceClaim p-claim of driver gpu.example.com; "
        "fpga -> f0, which nobody brings into containers"
    )
