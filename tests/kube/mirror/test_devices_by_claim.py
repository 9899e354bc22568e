"""Devices of drivers that a class gave: the pod and its claim both tell of them."""

from __future__ import annotations

import msgspec

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.slices import device_name
from dovetail.kube.mirror.observation import ClusterObservation
from dovetail.ledger.intents.observed import NODE_DECODER, DeviceUse, node_document
from dovetail.podfit.objects import Pod
from tests.kube.mirror.test_any_order import claim, node, slice_of

G0, G1 = (device_name("d", "n1", name) for name in ("g0", "g1"))


def test_a_device_that_pod_and_claim_tell_of_is_used_once() -> None:
    seen = ClusterObservation("c")
    seen.on_node(None, node("n1", 4, 0, 0, 0))
    seen.on_slice(None, slice_of("n1", 2))
    written = {
        "metadata": {
            "name": "p",
            "namespace": "x",
            "uid": "p-1",
            "annotations": annotations_of("n1", [DeviceHolding(G0, 1)]),
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
    }
    seen.on_pod(None, msgspec.convert(written, Pod))
    seen.on_claim(None, claim("ours", "n1", 0, "p-1"))
    seen.on_claim(None, claim("theirs", "n1", 1, "p-1"))
    (found,) = seen.taken(["n1"]).nodes
    assert sorted(found.uses, key=lambda use: use.device) == [
        DeviceUse(G0, "p-1"),
        DeviceUse(G1, "p-1"),
    ]


def test_what_the_ledger_keeps_of_devices_by_claim_can_be_read_again() -> None:
    seen = ClusterObservation("c")
    seen.on_node(None, node("n1", 4, 0, 0, 0))
    seen.on_slice(None, slice_of("n1", 2))
    (found,) = seen.taken(["n1"]).nodes
    assert NODE_DECODER.decode(node_document(found)).devices == found.devices
