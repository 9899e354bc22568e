"""Many candidates at once: those of which one is measured for all have to be alike."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.request import Group, Request
from dovetail.engine.rank import Ranking, Typical, best, losses
from tests.engine.answers import loaded
from tests.engine.forest import SHARING, Forest, Inventory, Node, grow, node
from tests.engine.strategies import examples, one_of

MANY = losses.FEW_TREES // 2 + 8
"""Hosts of which each has two candidates and more: enough for them to be compared."""

Ranked = list[tuple[list[int], int]]
"""Rows and scores, best first."""

limits = pytest.mark.parametrize("limit", [1, 3, None])
policies = pytest.mark.parametrize("policy", ["fragmentation", "scarcity"])


def groups(*resources: dict[str, int]) -> tuple[Group, ...]:
    return tuple(Group(suffix=f"_{at}", resources=each) for at, each in enumerate(resources))


def ranked(
    forest: Forest, request: Request, policy: str, typical: Request, limit: int | None
) -> Ranked:
    ranking = Ranking(((policy, 1),), Typical(((typical, 10),)))
    found = best(loaded(forest), request, ranking, limit)
    return list(zip(found.rows.tolist(), found.scores.tolist(), strict=True))


def device(name: str, free: dict[str, int], *traits: str) -> Node:
    held = {each: Inventory(3, used=3 - left) for each, left in free.items()}
    return Node(name, (), frozenset(traits), frozenset(), held, {})


def host(name: str, *devices: dict[str, int]) -> Node:
    return node(name, *(device(f"{name}-{at}", each) for at, each in enumerate(devices)), VCPU=8)


@policies
@limits
def test_two_units_of_one_provider_are_not_one_of_each_of_two(
    policy: str, limit: int | None
) -> None:
    request = Request(groups=groups({"VF": 1}, {"VF": 1}))
    apart = Request(groups=request.groups, isolated=frozenset(["_0", "_1"]))
    few, many = (
        ranked(
            grow(*(host(f"h{at}", {"VF": 2}, {"VF": 2}) for at in range(hosts))),
            *(request, policy, apart, limit),
        )
        for hosts in (2, MANY)
    )
    assert few[0][0] == [1, 2]
    assert many[0] == few[0]


@policies
@limits
def test_what_else_a_provider_has_that_typical_requests_want_tells_it_apart(
    policy: str, limit: int | None
) -> None:
    request, both = Request(groups=groups({"VF": 1})), Request(groups=groups({"VF": 2, "FPGA": 1}))
    few, many = (
        ranked(
            grow(*(host(f"h{at}", {"VF": 2, "FPGA": 1}, {"VF": 2}) for at in range(hosts))),
            *(request, policy, both, limit),
        )
        for hosts in (2, MANY)
    )
    assert few[0][0] == [2]
    assert many[0] == few[0]


amounts = st.sampled_from(
    [{"VF": 1}, {"VF": 2}, {"FPGA": 1}, {"VF": 1, "FPGA": 1}, {"VF": 2, "FPGA": 1}]
)
wanted = st.builds(
    Request,
    groups=st.lists(amounts, min_size=1, max_size=3).map(lambda each: groups(*each)),
    isolated=one_of(frozenset[str](), frozenset(["_0", "_1"]), frozenset(["_0", "_2"])),
)


@st.composite
def devices(draw: st.DrawFn, name: str) -> Node:
    free = {each: draw(one_of(-1, 1, 2, 2, 3)) for each in ("VF", "FPGA")}
    held = {each: left for each, left in free.items() if left >= 0}
    return device(name, held, *draw(one_of((), (), ("NET1",))))


@st.composite
def hosts_of_devices(draw: st.DrawFn) -> Forest:
    """A host or two with devices that are nearly alike, and perhaps one that serves them."""
    trees = [
        node(
            f"h{at}",
            *(draw(devices(f"h{at}-{each}")) for each in range(draw(one_of(2, 3, 4)))),
            VCPU=8,
            aggregates=["a"],
        )
        for at in range(draw(one_of(1, 2)))
    ]
    if draw(one_of(False, False, True)):
        trees.append(node("pool", VF=2, FPGA=2, traits=[SHARING], aggregates=["a"]))
    return grow(*trees)


@policies
@examples(300)
@given(hosts_of_devices(), wanted, wanted)
def test_each_scores_as_when_it_is_measured_by_itself(
    policy: str, forest: Forest, request: Request, typical: Request
) -> None:
    answers = []
    for few in (0, 10**9):
        with patch.object(losses, "FEW_TREES", few):
            answers.append(ranked(forest, request, policy, typical, None))
    assert answers[0] == answers[1]
