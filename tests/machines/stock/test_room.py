"""Room: nodes are asked once for all pods of a kind; labels make one where terms heed them."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.core.rows import Rows
from dovetail.machines.stock.room import Room
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.table import NodeTable
from tests.machines.building import node

HOST = "kubernetes.io/hostname"


def pod(name: str, on: str = "", **spec: Any) -> Pod:
    meta = {"name": name, "uid": name, "namespace": "team", "labels": {"app": name}}
    content = {"nodeName": on, "containers": [{"name": "main"}], **spec}
    return msgspec.convert({"metadata": meta, "spec": content}, Pod)


def apart_from(app: str) -> dict[str, Any]:
    """Anti-affinity to pods with this label, on the same node."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class CountingTable(NodeTable):
    def __init__(self) -> None:
        super().__init__(Rows())
        self.asked = 0
        for name in ("one", "two"):
            self.set_node(node(name))

    def eligible(self, request: PodRequest) -> list[str]:
        self.asked += 1
        return super().eligible(request)


def test_pods_that_differ_in_their_labels_alone_are_asked_for_once() -> None:
    table = CountingTable()
    room = Room(table, {})
    for name in "abc":
        assert room.eligible(pod_request_of(pod(name))) == {"one", "two"}
    assert room.eligible(pod_request_of(pod("d", nodeSelector={HOST: "two"}))) == {"two"}
    assert table.asked == 2


def test_one_whom_others_keep_away_is_told_apart_by_its_labels() -> None:
    table = CountingTable()
    table.add_pod(pod("grumpy", "one", affinity=apart_from("b")))
    room = Room(table, {})
    found = {name: room.eligible(pod_request_of(pod(name))) for name in "abc"}
    assert found == {"a": {"one", "two"}, "b": {"two"}, "c": {"one", "two"}}
    assert room.why_not(pod_request_of(pod("a")), "one") == ""
    assert "anti-affinity" in room.why_not(pod_request_of(pod("b")), "one")


def test_one_with_terms_of_its_own_is_judged_by_itself() -> None:
    table = CountingTable()
    table.add_pod(pod("a", "one"))
    room = Room(table, {})
    assert room.eligible(pod_request_of(pod("x"))) == {"one", "two"}
    assert room.eligible(pod_request_of(pod("y", affinity=apart_from("a")))) == {"two"}


def test_who_is_put_somewhere_keeps_others_away_from_then_on() -> None:
    room = Room(CountingTable(), {})
    first, second = pod("a", affinity=apart_from("b")), pod("b")
    with room.supposing([first, second]):
        assert room.eligible(pod_request_of(second)) == {"one", "two"}
        room.put(first, "one")
        assert room.eligible(pod_request_of(second)) == {"two"}
        room.lift(first, "one")
        assert room.eligible(pod_request_of(second)) == {"one", "two"}
