"""The table and the oracle agree on every node, for any cluster and pod; at any time."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.rows import Rows
from dovetail.podfit.pod_request import pod_request_of
from dovetail.podfit.table import NodeTable
from tests.podfit.oracle import Oracle
from tests.podfit.worlds import NAMESPACES, Json, a_node, a_pod, node, pod, table_of, world

seeds = st.integers(min_value=0, max_value=2**32)


def fitting(table: NodeTable, rows: Rows, asked: Json) -> set[str]:
    mask = table.filter(pod_request_of(a_pod(asked))).mask
    return {rows.names[row] for row in mask.nonzero()[0]}


def agree(table: NodeTable, rows: Rows, oracle: Oracle, asked: Json) -> None:
    found, right = fitting(table, rows, asked), oracle.fitting(asked)
    differing = {name: oracle.misses(asked, name) for name in found ^ right}
    assert found == right, (differing, asked)
    verdict = table.filter(pod_request_of(a_pod(asked)))
    for name in oracle.nodes:
        row = rows.find(name)
        assert row is not None
        assert bool(verdict.why(row)) == (name not in right)
    assert sum(verdict.reasons().values()) >= len(oracle.nodes) - len(right)


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_any_pod_on_any_cluster(seed: int) -> None:
    rng = Random(seed)
    nodes, placed, waiting = world(rng, nodes=6, placed=12)
    for one in placed:
        if rng.random() < 0.1:
            one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    table, rows = table_of(nodes, placed)
    oracle = Oracle(nodes, placed, NAMESPACES)
    for asked in waiting:
        agree(table, rows, oracle, asked)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_any_history_of_nodes_and_pods(seed: int) -> None:
    """Nodes and pods come, change and go in any order, pods before their node too."""
    rng = Random(seed)
    table, rows = table_of([], [])
    nodes: dict[str, Json] = {}
    placed: dict[str, Json] = {}
    for step in range(40):
        name = f"node-{rng.randint(0, 4)}"
        match rng.choice(("node", "node", "no node", "pod", "pod", "pod", "no pod", "over")):
            case "node":
                nodes[name] = node(rng, name)
                table.set_node(a_node(nodes[name]))
            case "no node":
                nodes.pop(name, None)
                table.drop_node(name)
                rows.drop(name)
            case "pod":
                uid = f"pod-{rng.randint(0, 9)}"
                placed[uid] = pod(rng, uid, name)
                if rng.random() < 0.2:
                    placed[uid]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                table.add_pod(a_pod(placed[uid]))
            case "over":
                uid = f"pod-{rng.randint(0, 9)}"
                if uid in placed:
                    over = {**placed.pop(uid), "status": {"phase": rng.choice(OVER)}}
                    table.add_pod(a_pod(over))
            case "no pod":
                uid = f"pod-{rng.randint(0, 9)}"
                placed.pop(uid, None)
                table.remove_pod(uid)
        if step % 8 == 7:
            oracle = Oracle(list(nodes.values()), list(placed.values()), NAMESPACES)
            agree(table, rows, oracle, pod(rng, "asked"))


OVER = ("Succeeded", "Failed")
