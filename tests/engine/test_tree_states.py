"""Trees that come into a state that another was in: not looked at, offered what that one was."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.kept_options import RequestOptions, options_in_steps
from dovetail.engine.work import finished
from tests.engine.answers import ask, loaded
from tests.engine.forest import CLASSES, SHARING, Forest, Node, grow, node
from tests.engine.strategies import examples

VM = Group(suffix="_VM", resources={"VCPU": 2})
FPGA = Group(suffix="_ACC", resources={"FPGA": 1})
REQUESTS = (
    Request(groups=(Group(resources={"VCPU": 2, "DISK_GB": 5}),)),
    Request(groups=(VM, FPGA), affinities=(Affinity(together=frozenset(("_VM", "_ACC"))),)),
    Request(
        groups=(VM, Group(suffix="_B", resources={"VCPU": 3})), isolated=frozenset(("_VM", "_B"))
    ),
    Request(groups=(Group(resources={"VCPU": 1, "FPGA": 1}, required=(frozenset(("LARGE",)),)),)),
    Request(groups=(VM, Group(resources={"VCPU": 1}))),
    Request(groups=(Group(suffix="_VM", resources={"VCPU": 2}, in_tree="h1"),)),
)


def host(name: str) -> Node:
    return node(
        name,
        node(f"{name}n0", node(f"{name}f0", FPGA=2), VCPU=4),
        node(f"{name}n1", node(f"{name}f1", FPGA=1, traits=["LARGE"]), VCPU=6),
        DISK_GB=20,
    )


def alike(count: int) -> Forest:
    shared = node("pool", DISK_GB=30, traits=[SHARING], aggregates=["agg"])
    return grow(*(host(f"h{number}") for number in range(count)), shared)


def use(snapshot: Snapshot, forest: Forest, name: str, resource: str, used: int) -> None:
    provider = forest.named(name)
    assert provider is not None
    snapshot.update_usage([(provider.id, CLASSES.index(resource), used)])


@examples(150)
@given(st.sampled_from(REQUESTS), st.data())
def test_what_trees_offer_in_states_seen_before_is_what_a_new_search_finds(
    request: Request, data: st.DataObject
) -> None:
    """The copy of a snapshot keeps nothing: its answers are from scratch."""
    forest = alike(3)
    snapshot = loaded(forest)
    places = [
        (provider.name, resource, inventory.total)
        for provider in forest
        for resource, inventory in provider.inventories.items()
    ]
    for _ in range(data.draw(st.integers(1, 12))):
        for name, resource, total in data.draw(st.lists(st.sampled_from(places), max_size=3)):
            use(snapshot, forest, name, resource, data.draw(st.sampled_from((0, total - 1, total))))
        assert ask(snapshot, request) == ask(snapshot.copy(), request)


@pytest.mark.parametrize("request_", REQUESTS[:5])
def test_the_second_of_two_alike_is_not_looked_at(request_: Request) -> None:
    forest = grow(host("h0"), host("h1"))
    snapshot = loaded(forest)
    ask(snapshot, request_)
    use(snapshot, forest, "h0n0", "VCPU", 3)
    ask(snapshot, request_)
    use(snapshot, forest, "h1n0", "VCPU", 3)
    with patch.object(RequestOptions, "_look_at", side_effect=AssertionError):
        assert ask(snapshot, request_) == ask(loaded_with(forest, 3), request_)


def loaded_with(forest: Forest, used: int) -> Snapshot:
    snapshot = loaded(forest)
    for name in ("h0n0", "h1n0"):
        use(snapshot, forest, name, "VCPU", used)
    return snapshot


def test_states_are_kept_within_so_many_bytes() -> None:
    forest = grow(node("h0", VCPU=5000))
    snapshot, request = loaded(forest), Request(groups=(Group(resources={"VCPU": 4}),))
    with patch("dovetail.engine.tree_states.MOST_STATE_BYTES", 20_000):
        options = finished(options_in_steps(snapshot, request))
        before, sizes = options.size, []
        for used in range(100):
            use(snapshot, forest, "h0", "VCPU", used)
            finished(options.refresh(snapshot))
            sizes.append(options.size)
    assert before + 10_000 < max(sizes) <= before + 20_000
