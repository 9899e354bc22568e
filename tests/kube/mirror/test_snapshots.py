"""Posted snapshots: what kubectl lists is a cluster; what is wrong is told with its place."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.intents.documents.errors import BadDocument
from dovetail.kube.mirror.observation import PINS_CPUS
from dovetail.kube.mirror.snapshots import snapshot_of
from dovetail.ledger.intents.observed import DeviceUse
from tests.kube.mirror.rig import node_body, pod_body

Json = dict[str, Any]


def listed(*items: Json, **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(items), **more}


def node(name: str = "n1", **more: Any) -> Json:
    return {"kind": "Node", "apiVersion": "v1", **node_body(name, **more)}


def pod(name: str = "web", on: str = "n1", **more: Any) -> Json:
    return {"kind": "Pod", "apiVersion": "v1", **pod_body(name, on, **more)}


SLICE = {
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "g0"}, {"name": "g1"}],
    },
}
CLAIM = {
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"driver": "d", "pool": "n1", "device": "g1", "request": "r"},
                    {"driver": "d", "pool": "n1", "device": "g0", "adminAccess": True},
                ]
            }
        },
        "reservedFor": [{"resource": "pods", "name": "web", "uid": "u1"}],
    },
}


def test_the_order_of_items_does_not_matter() -> None:
    items = [node(), pod(uid="u1"), SLICE, CLAIM]
    found = [snapshot_of(listed(*each), "p+c") for each in (items, items[::-1])]
    assert found[0] == found[1]
    (one,) = found[0].nodes
    assert [each.name for each in one.devices] == ["d.n1.g0", "d.n1.g1"]
    assert one.uses == (DeviceUse("d.n1.g1", "u1"),), "who only looks at a device has it not"
    assert [each.key for each in one.pods] == ["default/web"]


def test_pods_that_ended_or_have_no_node_take_no_room() -> None:
    ended = {**pod("ended"), "status": {"phase": "Failed"}}
    (one,) = snapshot_of(listed(node(), ended, pod("waiting", "")), "p+c").nodes
    assert one.pods == ()


def test_lists_of_one_kind_and_kinds_of_no_interest_are_read() -> None:
    bare = {key: value for key, value in node().items() if key != "kind"}
    found = snapshot_of({"kind": "NodeList", "items": [bare]}, "p+c")
    assert [each.name for each in found.nodes] == ["n1"]
    found = snapshot_of(listed(node(), {"kind": "Secret", "metadata": None}), "p+c")
    assert len(found.nodes) == 1


def test_nulls_are_what_is_not_there() -> None:
    written = node()
    written["spec"] = {"taints": None, "unschedulable": None}
    written["metadata"]["annotations"] = None
    assert len(snapshot_of(listed(written), "p+c").nodes) == 1


def test_when_it_was_taken_can_be_said() -> None:
    assert snapshot_of(listed(), "p+c").observed_at == 0
    for at in ("2026-01-31T12:00:00Z", 1769860800):
        assert snapshot_of(listed(observedAt=at), "p+c").observed_at == 1769860800


@pytest.mark.parametrize(("label", "told"), [("true", True), ("false", False), (None, None)])
def test_the_label_of_an_agent_tells_whether_cpus_are_pinned(label: Any, told: Any) -> None:
    labels = {} if label is None else {PINS_CPUS: label}
    (one,) = snapshot_of(listed(node(labels=labels)), "p+c").nodes
    assert one.pins_cpus is told


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "spec.snapshot.items"),
        ({"kind": "List", "items": {}}, "spec.snapshot.items"),
        (listed(7), "spec.snapshot.items[0]"),  # type: ignore[arg-type]
        (listed(node(), {"metadata": {"name": "x"}, "kind": ""}), "spec.snapshot.items[1].kind"),
        (listed({"kind": "Node", "metadata": {}}), "spec.snapshot.items[0].metadata.name"),
        (listed(node("a/b")), "spec.snapshot.items[0].metadata.name"),
        (listed(node("n" * 254)), "spec.snapshot.items[0].metadata.name"),
        (listed(node(), node()), "spec.snapshot.items[1]"),
        (listed(node(cpu="many")), "spec.snapshot.items[0].status.allocatable"),
        (
            listed({**node(), "status": {"allocatable": {"cpu": 4}}}),
            "spec.snapshot.items[0].status",
        ),
        (listed({**node(), "spec": {"taints": [{}]}}), "spec.snapshot.items[0].spec.taints[0]"),
        (listed(node(), pod(cpu="1 core")), "spec.snapshot.items[1]"),
        (listed({"kind": "ResourceSlice", "metadata": {"name": "s"}}), "spec.snapshot.items[0]"),
        (listed(observedAt="yesterday"), "spec.snapshot.observedAt"),
        (listed(observedAt=True), "spec.snapshot.observedAt"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(document: Json, field: str) -> None:
    with pytest.raises(BadDocument) as refused:
        snapshot_of(document, "p+c")
    assert refused.value.field.startswith(field)
