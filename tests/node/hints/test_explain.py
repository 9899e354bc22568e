"""What a person is told."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.explanation import Counted, Explanation, Reason, Verdict
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import Hint, Hints, TopologyOptions, TopologyPolicy, explain, merge

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
    assert told(policy, hints).summary == words


def test_many_sets_are_counted() -> None:
    many = [poor(0, 1), poor(0, 2), poor(0, 3), poor(1, 2), poor(1, 3), poor(2, 3)]
    assert (
        "nodes 0-1 or 0,2 or 1-2 or 0,3 or 2 more"
        in told(TopologyPolicy.RESTRICTED, {"cpu": many}).summary
    )


def test_only_those_that_conflict_are_blamed() -> None:
    hints = {"cpu": [good(0)], "memory": [good(0)], "nic": [good(3)], "disk": None}
    explanation = told(TopologyPolicy.RESTRICTED, hints)
    findings = {each.constraint: each for each in explanation.nearest[0].findings}
    assert [name for name, each in findings.items() if not each.met] == ["memory", "nic"]
    assert findings["memory"].reason is findings["nic"].reason is Reason.NO_COMMON_NODE
    assert (findings["disk"].words, findings["disk"].provider) == (
        "disk fits on any node",
        "any node",
    )
    assert (findings["nic"].words, findings["nic"].provider) == ("nic fits on node 3", "node 3")


def test_the_funnel_counts_the_sets_of_nodes_that_are_left() -> None:
    hints: Mapping[str, Hints] = {"cpu": [good(0), good(1), poor(0, 1)], "memory": [good(1)]}
    explanation = told(TopologyPolicy.SINGLE_NUMA_NODE, hints)
    assert (explanation.verdict, explanation.of) == (Verdict.FITS, Counted.NUMA_NODE_SETS)
    assert (explanation.total, explanation.fitting) == (15, 1)
    assert [(each.reason, each.constraint, each.left) for each in explanation.funnel] == [
        (Reason.NUMA_HINT, "cpu", 3),
        (Reason.NUMA_HINT, "memory", 1),
        (Reason.NUMA_POLICY, "single-numa-node", 1),
    ]
    refused = told(TopologyPolicy.RESTRICTED, {"cpu": [good(0)], "memory": [good(1)], "nic": ()})
    assert (refused.verdict, refused.fitting) == (Verdict.NOT_NOW, 0)
    assert [each.left for each in refused.funnel] == [1, 0, 0, 0]


hints = st.builds(Hint, st.none() | st.integers(1, 15), preferred=st.booleans())
of_resources = st.dictionaries(
    st.sampled_from(("cpu", "memory", "nic")), st.none() | st.lists(hints, max_size=4), min_size=1
)


@given(of_resources, st.sampled_from(TopologyPolicy))
def test_something_is_left_exactly_where_it_is_admitted(
    hints: Mapping[str, Hints], policy: TopologyPolicy
) -> None:
    explanation = told(policy, hints)
    merged = merge(policy, TopologyOptions(), hints, NODES, DISTANCES)
    assert (explanation.verdict is Verdict.FITS) == merged.admitted
    assert (explanation.fitting > 0) == merged.admitted
    assert all(each.left <= explanation.total for each in explanation.funnel)
    (place,) = explanation.nearest
    assert all(each.met for each in place.findings) == merged.admitted


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
    assert told(policy, hints).summary == words
