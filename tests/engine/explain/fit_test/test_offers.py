"""What trees offer: whoever has no less fits where another does, and mirrored trees are equal."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import FleetProblem
from dovetail.engine.explain.fit_test.offers import Form, Verdicts
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain import brute
from tests.engine.explain.test_explain import any_forest, any_request, done
from tests.engine.forest import Forest, Inventory, Node, grow, node
from tests.engine.strategies import examples


@examples(300)
@given(any_forest, any_request)
def test_what_others_told_is_what_a_search_finds(forest: Forest, request: Request) -> None:
    """In whatever order trees are asked, as they are and with nothing in use."""
    snapshot = loaded(forest)
    idle = brute.without_usage(forest)
    for order in (forest.roots(), forest.roots()[::-1]):
        fleet = FleetProblem(snapshot, by_uuid(request))
        partial = fleet.demands.without(0)
        for anchor in order:
            problem = fleet.problem(snapshot.tree_of_root[anchor.id])
            assert done(problem.fits(partial)) == brute.fits(forest, anchor, request)
            empty = idle.providers[anchor.id]
            assert done(problem.idle().fits(partial)) == brute.fits(idle, empty, request)


def test_verdicts_hold_for_those_that_have_more_or_less() -> None:
    verdicts = Verdicts()
    verdicts.add((b"", 0b0110), fits=True)
    verdicts.add((b"", 0b1001), fits=False)
    assert verdicts.of((b"", 0b0111)) is True
    assert verdicts.of((b"", 0b0001)) is False
    assert verdicts.of((b"", 0b0011)) is None
    assert verdicts.of((b"()", 0b0110)) is None, "a tree of another shape"


def test_parts_of_a_host_may_change_places() -> None:
    """One search answers for all orders of three parts with a card each."""
    request = Request(
        groups=(
            Group(suffix="_VM", resources={"VCPU": 4}),
            Group(suffix="_ACC", resources={"FPGA": 1}),
        ),
        affinities=(Affinity(frozenset(["_VM", "_ACC"])),),
    )

    def part(name: str, used: int) -> Node:
        return node(name, node(f"{name}f", FPGA=1), VCPU=Inventory(8, used=used))

    hosts = [
        node(f"h{at}", *(part(f"h{at}n{used}", used) for used in order))
        for at, order in enumerate(permutations((2, 5, 7)))
    ]
    fleet = FleetProblem(loaded(grow(*hosts)), request)
    partial = fleet.demands.without(0)
    problems = [fleet.problem(tree) for tree in range(6)]
    offers = {each.offer(partial) for each in problems}
    assert len(offers) == 1


def test_places_are_in_one_order_whatever_their_numbers() -> None:
    """Two subtrees below a root, once with the larger first and once with the smaller."""
    left, right = Form((None, 0, 0, 1)), Form((None, 0, 0, 2))
    assert left.shape == right.shape
    assert left.in_order([1, 2, 3, 4]) == right.in_order([1, 3, 2, 4])
