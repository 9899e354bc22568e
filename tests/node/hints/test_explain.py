"""What a person is told."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import (
    Cause,
    Explanation,
    Hint,
    Hints,
    TopologyOptions,
    TopologyPolicy,
    explain,
)
from dovetail.node.hints.explain import Wish

NODES = CpuSet(range(4))
DISTANCES = {a: {b: 10 if a == b else 20 for b in NODES} for a in NODES}


def told(policy: TopologyPolicy, hints: Mapping[str, Hints]) -> Explanation:
    return explain(policy, TopologyOptions(), hints, NODES, DISTANCES)


def good(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=True)


def poor(*nodes: int) -> Hint:
    return Hint(CpuSet(nodes).mask, preferred=False)


@pytest.mark.parametrize(
    ("policy", "hints", "words"),
    [
        (
            TopologyPolicy.SINGLE_NUMA_NODE,
            {"cpu": [good(0), good(1), poor(0, 1)], "memory": [good(2)], "nic": None},
            "cpu prefers node 0 or 1; memory prefers node 2: no single NUMA node serves both",
        ),
        (
            TopologyPolicy.SINGLE_NUMA_NODE,
            {"cpu": [good(0, 1)], "memory": [good(0)]},
            "cpu fits on no single NUMA node with preference: it could be on nodes 0-1",
        ),
        (
            TopologyPolicy.RESTRICTED,
            {"cpu": [good(0)], "memory": [good(1)], "nic": [good(0), good(1)]},
            "cpu fits on node 0; memory fits on node 1: no NUMA node serves both",
        ),
        (
            TopologyPolicy.RESTRICTED,
            {"cpu": [good(0), poor(0, 1)], "memory": [good(1), poor(0, 1)]},
            "cpu prefers node 0; memory prefers node 1: there are no NUMA nodes that both prefer",
        ),
        (
            TopologyPolicy.RESTRICTED,
            {"cpu": [poor(0, 1), poor(0, 2)], "memory": [good(1)]},
            (
                "cpu could be on nodes 0-1 or 0,2, but prefers none of that: a busy machine would "
                "have it spread over more NUMA nodes than it needs"
            ),
        ),
        (
            TopologyPolicy.RESTRICTED,
            {"cpu": (), "memory": [good(1)]},
            "cpu fits on no set of NUMA nodes: too little of it is free",
        ),
        (
            TopologyPolicy.NUMERIC,
            {"cpu": [good(0)], "memory": [good(0)], "nic": [good(3)]},
            "memory fits on node 0; nic fits on node 3: no choice of NUMA nodes aligns both",
        ),
        (
            TopologyPolicy.SINGLE_NUMA_NODE,
            {"a": [good(0), good(1)], "b": [good(1), good(2)], "c": [good(0), good(2)]},
            (
                "a prefers node 0 or 1; b prefers node 1 or 2; c prefers node 0 or 2: "
                "no single NUMA node serves all of them"
            ),
        ),
    ],
)
def test_refusals(policy: TopologyPolicy, hints: Mapping[str, Hints], words: str) -> None:
    assert told(policy, hints).words == words


def test_many_sets_are_counted() -> None:
    many = [poor(0, 1), poor(0, 2), poor(0, 3), poor(1, 2), poor(1, 3), poor(2, 3)]
    assert (
        "nodes 0-1 or 0,2 or 1-2 or 0,3 or 2 more"
        in told(TopologyPolicy.RESTRICTED, {"cpu": many}).words
    )


def test_only_those_that_conflict_are_blamed() -> None:
    hints = {"cpu": [good(0)], "memory": [good(0)], "nic": [good(3)], "disk": None}
    explanation = told(TopologyPolicy.RESTRICTED, hints)
    assert explanation.conflict == ("memory", "nic")
    assert explanation.cause is Cause.NO_COMMON_NODE
    assert explanation.wishes["disk"] == Wish(anywhere=True)
    assert explanation.wishes["nic"] == Wish(preferred=("3",))


@pytest.mark.parametrize(
    ("policy", "hints", "words"),
    [
        (TopologyPolicy.NONE, {"cpu": ()}, "nobody was asked: the policy is none"),
        (TopologyPolicy.RESTRICTED, {"cpu": [good(1)]}, "node 1, as all prefer"),
        (
            TopologyPolicy.BEST_EFFORT,
            {"cpu": [poor(0, 1)]},
            "nodes 0-1, though not all resources prefer that: the policy is best-effort",
        ),
        (TopologyPolicy.SINGLE_NUMA_NODE, {"cpu": None}, "any node, as all prefer"),
        (
            TopologyPolicy.NUMERIC,
            {"cpu": [good(0, 1)], "nic": [good(1)]},
            "within nodes 0-1, each on its own",
        ),
    ],
)
def test_admissions(policy: TopologyPolicy, hints: Mapping[str, Hints], words: str) -> None:
    assert told(policy, hints).words == words
