"""Pools of drivers whose slices are of several nodes, or of none."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.core.rows import Rows
from dovetail.kube.classes.catalogue import DeviceCatalogue
from dovetail.kube.classes.sources import devices_of
from dovetail.podfit.objects import Node, ResourceSlice

Slices = dict[str, ResourceSlice]


def slice_of(name: str, *devices: str, generation: int = 1, count: int = 2, **where: Any) -> Slices:
    pool = {"name": "fabric", "generation": generation, "resourceSliceCount": count}
    written = [{"name": each} for each in devices]
    spec = {"driver": "fabric.example.com", "pool": pool, "devices": written, **where}
    return {name: msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)}


class Seen:
    """A catalogue of two nodes that is told of slices, one by one."""

    def __init__(self) -> None:
        self._catalogue = DeviceCatalogue(Rows(), devices_of)
        self._slices: Slices = {}
        for name in ("n1", "n2"):
            self._catalogue.set_node(msgspec.convert({"metadata": {"name": name}}, Node))

    def set(self, slices: Slices) -> None:
        for name, each in slices.items():
            self._catalogue.set_slice(self._slices.get(name), each)
            self._slices[name] = each

    def drop(self, name: str) -> None:
        self._catalogue.set_slice(self._slices.pop(name), None)

    @property
    def devices(self) -> dict[str, list[str]]:
        found = self._catalogue.devices
        return {
            node: [each.name.rpartition(".")[2] for each in devices]
            for node, devices in found.items()
            if devices
        }


def test_a_pool_is_complete_when_all_its_slices_are_there_on_whichever_nodes() -> None:
    seen = Seen()
    seen.set(slice_of("a", "d1", nodeName="n1"))
    assert seen.devices == {}
    seen.set(slice_of("b", "d2", nodeName="n2"))
    assert seen.devices == {"n1": ["d1"], "n2": ["d2"]}
    seen.drop("b")
    assert seen.devices == {}
    seen.set(slice_of("b", "d3", allNodes=True))
    assert seen.devices == {"n1": ["d1"]}


def test_a_newer_generation_makes_older_slices_void_on_whichever_nodes() -> None:
    seen = Seen()
    seen.set(slice_of("a", "d1", count=1, nodeName="n1"))
    assert seen.devices == {"n1": ["d1"]}
    seen.set(slice_of("b", "d1", generation=2, count=1, nodeName="n2"))
    assert seen.devices == {"n2": ["d1"]}
    seen.set(slice_of("c", "d1", generation=3, count=1, allNodes=True))
    assert seen.devices == {}
    seen.drop("c")
    assert seen.devices == {"n2": ["d1"]}


def test_a_pool_that_lists_a_device_twice_is_invalid() -> None:
    seen = Seen()
    seen.set(slice_of("a", "d1", "d2", nodeName="n1"))
    seen.set(slice_of("b", "d2", nodeName="n2"))
    assert seen.devices == {}
