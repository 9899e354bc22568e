"""Slots that have nothing to do with each other in a tree are looked at apart."""

from __future__ import annotations

from itertools import product

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import FleetProblem
from dovetail.engine.explain.fit_test.tree_problem import NO_PINS, TreeProblem
from dovetail.engine.explain.relax import smallest_sets
from tests.engine.answers import loaded
from tests.engine.explain.test_explain import done
from tests.engine.forest import Inventory, Node, grow, node
from tests.engine.test_giving_way import MOST_CALLS, most_calls


def group(suffix: str, **resources: int) -> Group:
    return Group(suffix=suffix, resources=resources)


PROCESSORS = (group("_A", VCPU=2), group("_B", VCPU=3))
CARDS = (group("_C", VF=1), group("_D", VF=2))
TIED = (Affinity(frozenset(["_A", "_C"])),)


def host(name: str, used: int = 0, cards: int = 4) -> Node:
    return node(
        name, *(node(f"{name}c{at}", VF=2) for at in range(cards)), VCPU=Inventory(8, used=used)
    )


def parts(host: Node, request: Request) -> list[list[str]]:
    """The groups of each part."""
    fleet = FleetProblem(loaded(grow(host)), request)
    partial = fleet.demands.without(0)
    laid_out = fleet.problem(0)._layout(partial, NO_PINS)
    assert laid_out
    return [[slot.suffix for slot in part.slots] for _, part in partial.parts(laid_out[1])]


def test_contention_is_between_those_that_one_place_may_serve() -> None:
    both = PROCESSORS + CARDS
    assert parts(host("h"), Request(groups=both)) == [["_A", "_B"], ["_C", "_D"]]
    assert parts(host("h"), Request(groups=both, affinities=TIED)) == [["_A", "_B", "_C", "_D"]]
    on_halves = node("h", node("n0", VCPU=2), node("n1", VCPU=8, traits=["LARGE"]))
    large = Group(suffix="_B", resources={"VCPU": 3}, required=(frozenset(["LARGE"]),))
    assert parts(on_halves, Request(groups=(PROCESSORS[0], large))) == [["_A", "_B"]]
    small = Group(suffix="_A", resources={"VCPU": 2}, forbidden=frozenset(["LARGE"]))
    assert parts(on_halves, Request(groups=(small, large))) == []


def test_so_is_isolation() -> None:
    single = (group("_A", VCPU=2), group("_C", VF=1), group("_D", VF=2))
    everybody = frozenset(one.suffix for one in single)
    assert parts(host("h"), Request(groups=single, isolated=everybody)) == [["_C", "_D"]]
    request = Request(groups=single, isolated=frozenset(["_A"]))
    assert parts(host("h"), request) == [["_C", "_D"]], "as they contend for a class"


def test_one_search_of_each_part_answers_for_all_hosts() -> None:
    """Four hosts that differ in both parts; but each part is there in two states only."""
    hosts = [host(f"h{used}{cards}", used, cards) for used, cards in product((0, 4), (1, 2))]
    fleet = FleetProblem(loaded(grow(*hosts)), Request(groups=PROCESSORS + CARDS))
    partial = fleet.demands.without(0)
    found = [done(CountingChoices.of(fleet.problem(tree)).fits(partial)) for tree in range(4)]
    assert found == [False, True, False, False]
    assert CountingChoices.count == 4


class CountingChoices(TreeProblem):
    """A tree that counts the searches of all of them."""

    count = 0

    @classmethod
    def of(cls, problem: TreeProblem) -> CountingChoices:
        twin = object.__new__(cls)
        vars(twin).update(vars(problem))
        return twin

    def _choice(self, part, options):  # type: ignore[no-untyped-def]
        CountingChoices.count += 1
        return super()._choice(part, options)


def test_changes_are_looked_for_in_small_steps_among_many_different_hosts() -> None:
    hosts = [
        node(
            f"h{at}",
            *(node(f"h{at}c{card}", VF=1 + (at >> card & 1)) for card in range(9)),
            VCPU=Inventory(512, used=at),
        )
        for at in range(500)
    ]
    nowhere = Group(suffix="_A", resources={"VCPU": 1}, required=(frozenset(["LARGE"]),))
    fleet = FleetProblem(loaded(grow(*hosts)), Request(groups=(nowhere, *CARDS)))
    done(fleet.look())
    assert len(fleet.kinds) > 400
    assert most_calls(smallest_sets(fleet)) < MOST_CALLS
