"""The table follows nodes and pods whatever the order in which they are told."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.quantity import BadQuantity
from dovetail.core.rows import Rows
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.table import NodeTable
from tests.podfit.building import Fleet, node, pod
from tests.podfit.worlds import a_node, a_pod, table_of, world

FULL = {"cpu": "4"}


def test_a_pod_counts_once_however_often_it_is_told() -> None:
    fleet = Fleet([node("n")])
    for _ in range(3):
        fleet.table.add_pod(pod("one", on="n", requests={"cpu": "2"}))
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == "n"
    assert fleet.fitting(pod("p", requests={"cpu": "2001m"})) == ""


def test_a_pod_counts_where_it_is_to_be_before_it_is_bound() -> None:
    fleet = Fleet([node("n")])
    one = pod("one", requests=FULL)
    fleet.table.add_pod(one, "n")
    assert fleet.table.node_of("one") == "n"
    assert fleet.fitting(pod("p", requests={"cpu": "1"})) == ""
    fleet.table.remove_pod("one")
    assert fleet.table.node_of("one") is None
    assert fleet.fitting(pod("p", requests=FULL)) == "n"


def test_a_resized_pod_holds_what_it_asks_for_now() -> None:
    fleet = Fleet([node("n")], [pod("one", on="n", requests={"cpu": "1"})])
    fleet.table.add_pod(pod("one", on="n", requests={"cpu": "3"}))
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == ""
    fleet.table.add_pod(pod("one", on="n", requests={"cpu": "500m"}))
    assert fleet.fitting(pod("p", requests={"cpu": "3500m"})) == "n"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_holds_nothing(phase: str) -> None:
    fleet = Fleet([node("n")], [pod("one", on="n", requests=FULL)])
    fleet.table.add_pod(pod("one", on="n", requests=FULL, phase=phase))
    assert fleet.fitting(pod("p", requests=FULL)) == "n"


def test_a_pod_without_a_node_holds_nothing() -> None:
    fleet = Fleet([node("n")], [pod("one", requests=FULL)])
    assert fleet.fitting(pod("p", requests=FULL)) == "n"


def test_pods_may_be_told_before_their_node_and_outlive_it() -> None:
    fleet = Fleet([], [pod("one", on="n", requests={"cpu": "3"})])
    fleet.table.set_node(node("n"))
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == ""
    fleet.table.drop_node("n")
    fleet.rows.drop("n")
    fleet.table.set_node(node("other"))
    assert fleet.fitting(pod("p", requests=FULL)) == "other"
    fleet.table.set_node(node("n"))
    assert fleet.fitting(pod("p", requests=FULL)) == "other"


def test_a_row_given_to_another_node_has_nothing_of_the_old_one() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    old = node("old", {"zone": "a"}, taints=[taint], unschedulable=True, example__gpu="4")
    fleet = Fleet([old], [pod("one", on="old", requests={"cpu": "3"})])
    assert fleet.fitting(pod("p", nodeSelector={"zone": "a"})) == ""
    fleet.table.drop_node("old")
    fleet.rows.drop("old")
    fleet.table.set_node(node("new"))
    assert fleet.row("new") == 0
    assert fleet.fitting(pod("p", requests=FULL)) == "new"
    assert fleet.fitting(pod("p", nodeSelector={"zone": "a"})) == ""
    assert fleet.fitting(pod("p", requests={"example/gpu": "1"})) == ""


def test_rows_of_other_tables_are_no_nodes_here() -> None:
    rows = Rows()
    table = NodeTable(rows)
    rows.row("unknown")
    table.set_node(node("n"))
    demand = pod_request_of(pod("p"))
    assert table.filter(demand).mask.tolist() == [False, True]
    assert table.why(0, demand) == "there is no such node"
    rows.row("later")
    assert table.filter(demand).mask.tolist() == [False, True, False]


def test_a_node_that_makes_no_sense_changes_nothing() -> None:
    fleet = Fleet([node("n")])
    with pytest.raises(BadQuantity):
        fleet.table.set_node(node("n", cpu="lots"))
    with pytest.raises(BadQuantity):
        fleet.table.set_node(node("new", cpu="lots"))
    assert fleet.fitting(pod("p", requests=FULL)) == "n"
    assert fleet.rows.find("new") is None


def test_heartbeats_change_nothing() -> None:
    fleet = Fleet([node("n")], [pod("one", on="n", requests={"cpu": "3"})])
    beat = msgspec.json.decode(msgspec.json.encode(node("n")))
    beat["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    fleet.table.set_node(a_node(beat))
    assert fleet.fitting(pod("p", requests={"cpu": "1"})) == "n"
    assert fleet.fitting(pod("p", requests={"cpu": "2"})) == ""


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_a_pod_that_came_and_went_leaves_no_trace(seed: int) -> None:
    nodes, placed, waiting = world(Random(seed))
    table, _ = table_of(nodes, placed)

    def seen() -> list[tuple[list[bool], list[float]]]:
        found = []
        for one in waiting:
            mask = table.filter(pod_request_of(a_pod(one))).mask
            scores = table.score(pod_request_of(a_pod(one)), mask)
            found.append((mask.tolist(), scores.tolist()))
        return found

    before = seen()
    for one in waiting:
        table.add_pod(a_pod(one), nodes[0]["metadata"]["name"])
    seen()
    for one in waiting:
        table.remove_pod(one["metadata"]["name"])
    assert seen() == before
