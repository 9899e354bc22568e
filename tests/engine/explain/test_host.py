"""Findings are true for their host: judged together, with nothing in use and as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import msgspec
import pytest
from hypothesis import given

from dovetail.core.constraints import Constraint, constraints, only
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import findings, host_findings
from dovetail.engine.explain.fit_test.conditions import Conditions
from dovetail.engine.explain.fit_test.demands import Demands
from dovetail.engine.explain.host import ProviderFinding
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain import brute
from tests.engine.explain.test_explain import any_forest, any_request, done
from tests.engine.forest import Forest, Inventory, Node, Provider, grow, name_of, node
from tests.engine.strategies import examples


def judged(forest: Forest, request: Request, root: int) -> list[ProviderFinding]:
    snapshot = loaded(forest)
    return done(findings(snapshot, by_uuid(request), snapshot.tree_of_root[root]))


def kept(request: Request, found: list[ProviderFinding], verdict: str) -> Request:
    """The request with nothing but what is met, or what could ever be."""
    asked = [
        one
        for one, finding in zip(constraints(request), found, strict=True)
        if getattr(finding, verdict)
    ]
    named = {one.group for one in asked if one.reason is Reason.AMOUNT}
    # Without amounts no provider serves the unsuffixed group: nothing can be said of its traits.
    return partial(
        request, [one for one in asked if one.reason is not Reason.TOGETHER or "" in named]
    )


def partial(request: Request, kept: list[Constraint]) -> Request:
    """These constraints alone; of a group that has none left there is a provider all the same."""
    left = only(request, kept)
    present = {group.suffix: group for group in left.groups}
    groups = [
        present.get(group.suffix, Group(suffix=group.suffix))
        for group in request.groups
        if group.suffix or group.suffix in present
    ]
    return msgspec.structs.replace(left, groups=tuple(groups))


@examples(300)
@given(any_forest, any_request)
def test_all_that_is_ok_is_so_at_once(forest: Forest, request: Request) -> None:
    for anchor in forest.roots():
        found = judged(forest, request, anchor.id)
        assert brute.fits(forest, anchor, kept(request, found, "met"))
        idle = brute.without_usage(forest)
        assert brute.fits(idle, idle.providers[anchor.id], kept(request, found, "ever"))


@examples(300)
@given(any_forest, any_request)
def test_never_is_said_exactly_where_even_an_empty_host_would_not_fit(
    forest: Forest, request: Request
) -> None:
    idle = brute.without_usage(forest)
    for anchor in forest.roots():
        found = judged(forest, request, anchor.id)
        could = brute.fits(idle, idle.providers[anchor.id], request)
        assert all(one.ever for one in found) == could
        assert all(one.ever for one in found if one.met)


@examples(300)
@given(any_forest, any_request)
def test_what_is_never_met_cannot_be_beside_the_rest(forest: Forest, request: Request) -> None:
    idle = brute.without_usage(forest)
    demanded = constraints(request)
    for anchor in forest.roots():
        found = judged(forest, request, anchor.id)
        ever = [one for one, finding in zip(demanded, found, strict=True) if finding.ever]
        lost = {one.group for one in demanded if one.reason is Reason.AMOUNT and one not in ever}
        if lost:
            continue  # Without its amounts a group is another one: there is nothing to compare.
        for one in set(demanded) - set(ever) - shared(request):
            assert not brute.fits(idle, idle.providers[anchor.id], partial(request, [*ever, one]))


@examples(300)
@given(any_forest, any_request)
def test_an_amount_that_is_never_met_cannot_be_beside_the_rest_wherever_its_group_is(
    forest: Forest, request: Request
) -> None:
    idle = brute.without_usage(forest)
    for anchor in forest.roots():
        found = judged(forest, request, anchor.id)
        ever = [
            one
            for one, finding in zip(constraints(request), found, strict=True)
            if finding.ever and one.reason is not Reason.TOGETHER
        ]
        for one in constraints(request):
            if one.reason is Reason.AMOUNT and one not in ever:
                more = partial(request, [*ever, one])
                assert not brute.fits(idle, idle.providers[anchor.id], more)


def shared(request: Request) -> set[object]:
    return {one for one in constraints(request) if one.reason is Reason.SHARED_CAPACITY}


@examples(300)
@given(any_forest, any_request)
def test_the_numbers_of_an_amount_say_what_the_finding_says(
    forest: Forest, request: Request
) -> None:
    for anchor in forest.roots():
        for one in judged(forest, request, anchor.id):
            if one.supply is None:
                continue
            wanted = one.constraint.amount
            enough = one.supply.free >= wanted
            assert not one.met or (enough and one.supply.allows(wanted))
            assert (one.reason is Reason.UNITS) == (enough and not one.supply.allows(wanted))
            assert not (one.ever and not one.met) or one.supply.capacity >= wanted


# -- what a person reads ---------------------------------------------------------------------------


def only_host(tree: Node, request: Request) -> list[ProviderFinding]:
    forest = grow(tree)
    return judged(forest, request, forest.roots()[0].id)


def asked(**groups: dict[str, int]) -> tuple[Group, ...]:
    return tuple(Group(suffix=f"_{name}", resources=held) for name, held in groups.items())


def states(found: list[ProviderFinding]) -> dict[str, str]:
    """Each constraint, and whether it is ok, short or never."""
    return {
        f"{one.constraint.text}{one.constraint.group or ''}": (
            "ok" if one.met else "short" if one.ever else "never"
        )
        for one in found
    }


def test_a_device_in_use_is_short_and_not_absent() -> None:
    host = node("host", node("card", FPGA=Inventory(1, used=1)), VCPU=8)
    (found,) = only_host(host, Request(groups=(Group(resources={"FPGA": 1}),)))
    assert (found.met, found.ever) == (False, True)
    assert found.supply is not None
    assert (found.supply.free, found.supply.capacity) == (0, 1)


@pytest.mark.parametrize("suffix", ["", "_VM"])
def test_a_small_free_node_does_not_hide_a_large_occupied_one(suffix: str) -> None:
    host = node("host", node("small", VCPU=4), node("large", VCPU=Inventory(16, used=14)))
    request = Request(groups=(Group(suffix=suffix, resources={"VCPU": 8}),))
    (found,) = only_host(host, request)
    assert (found.met, found.ever) == (False, True)
    assert found.row is not None
    assert name_of(loaded(grow(host)).uuid(found.row)) == "large"


def test_obstacles_are_told_although_room_is_lacking() -> None:
    """Required traits of the unsuffixed group, and groups that are not in one subtree."""
    host = node(
        "host",
        node("numa0", VCPU=Inventory(8, used=8)),
        node("numa1", node("card", FPGA=1)),
    )
    together = Request(
        groups=(Group(resources={"VCPU": 8}, required=(frozenset(["LARGE"]),)),),
    )
    assert states(only_host(host, together)) == {"VCPU:8": "short", "LARGE": "never"}
    near = Request(
        groups=asked(VM={"VCPU": 8}, ACC={"FPGA": 1}),
        affinities=(Affinity(frozenset(["_VM", "_ACC"])),),
    )
    assert states(only_host(host, near)) == {
        "VCPU:8_VM": "short",
        "FPGA:1_ACC": "ok",
        "_ACC,_VM": "never",
    }


def test_a_group_that_no_provider_serves_is_looked_at_where_some_of_it_could_be() -> None:
    """The card goes to the first group; that the second could have its VF is no less true."""
    host = node("host", node("card", FPGA=1), node("nic", VF=8))
    request = Request(groups=asked(A={"FPGA": 1}, B={"FPGA": 1, "VF": 1}))
    assert states(only_host(host, request)) == {
        "FPGA:1_A": "ok",
        "FPGA:1_B": "never",
        "VF:1_B": "ok",
        "FPGA": "ok",
    }


def test_what_a_class_of_the_unsuffixed_group_lacks_takes_nothing_from_the_others() -> None:
    """The disk is on a provider that is forbidden; the VFs are enough for all groups."""
    large, small = node("large", VF=8), node("small", VF=2)
    host = node("host", large, small, DISK_GB=Inventory(8, min_unit=3), traits=["LARGE"])
    request = Request(
        groups=(
            Group(suffix="_A", resources={"VF": 2}, member_of=(frozenset(["elsewhere"]),)),
            Group(suffix="_C", resources={"VF": 4}),
            Group(resources={"VF": 4, "DISK_GB": 1}, forbidden=frozenset(["LARGE"])),
        )
    )
    found = states(only_host(host, request))
    assert (found["VF:2_A"], found["VF:4_C"], found["VF:4"]) == ("ok", "ok", "ok")


def test_two_groups_are_not_both_ok_on_one_last_unit() -> None:
    host = node("host", node("nic", VF=Inventory(8, used=7)), VCPU=Inventory(8, used=8))
    request = Request(groups=asked(A={"VF": 1}, B={"VF": 1}, VM={"VCPU": 1}))
    found = only_host(host, request)
    assert states(found) == {"VF:1_A": "ok", "VF:1_B": "short", "VCPU:1_VM": "short", "VF": "short"}
    (shortage,) = found[-1].shortages
    assert (shortage.class_name, shortage.wanted, shortage.free) == ("VF", 2, 1)


def test_the_class_that_is_short_for_all_groups_together_is_named() -> None:
    host = node("host", VCPU=8, DISK_GB=Inventory(10, used=7))
    groups = asked(A={"VCPU": 4, "DISK_GB": 2}, B={"VCPU": 4, "DISK_GB": 2})
    found = only_host(host, Request(groups=groups))
    assert [one.class_name for one in found[-1].shortages] == ["DISK_GB"]


def test_units_are_blamed_only_where_room_is_not_lacking() -> None:
    full = node("host", VCPU=Inventory(8, used=7, max_unit=4))
    request = Request(groups=asked(VM={"VCPU": 6}))
    assert [one.reason for one in only_host(full, request)] == [Reason.AMOUNT]
    empty = node("host", VCPU=Inventory(8, max_unit=4))
    assert [one.reason for one in only_host(empty, request)] == [Reason.UNITS]


def added(forest: Forest, request: Request) -> list[tuple[str, str, int]]:
    snapshot = loaded(forest)
    found = done(host_findings(Conditions(snapshot, Demands(request)), 0))
    return [(name_of(snapshot.uuid(row)), name, amount) for row, name, amount in found.additions]


def test_nothing_is_added_where_units_forbid_so_much() -> None:
    """Nothing is to be had of it now; but it is there, and says how much one may have."""
    all_reserved = Inventory(1, reserved=1, max_unit=2)
    request = Request(groups=(Group(suffix="_B", resources={"VF": 4}),))
    assert added(grow(node("host", VF=all_reserved)), request) == []


def test_what_is_in_use_beyond_what_is_there_has_to_be_added_too() -> None:
    request = Request(groups=(Group(suffix="_VM", resources={"VCPU": 4}),))
    assert added(grow(node("host", VCPU=Inventory(8, used=9))), request) == [("host", "VCPU", 5)]


@pytest.mark.parametrize(
    ("near", "far", "told"),
    [
        (6, 2, [("far", "VCPU", 2)]),
        (2, 6, [("near", "VCPU", 2)]),
    ],
)
def test_no_more_is_added_than_is_needed_at_the_best_place(
    near: int, far: int, told: list[tuple[str, str, int]]
) -> None:
    host = node("host", node("near", VCPU=near), node("far", VCPU=far))
    groups = asked(A={"VCPU": 4}, B={"VCPU": 6})
    assert added(grow(host), Request(groups=groups, isolated=frozenset(["_A"]))) == told


def test_one_entry_is_added_where_another_choice_needs_two() -> None:
    """The first node meets more now, but lacks two classes; the second lacks only one, by far."""
    first = node("first", VCPU=Inventory(8, used=4), MEMORY_MB=Inventory(8, used=4))
    second = node("second", VCPU=8, MEMORY_MB=Inventory(8, used=8))
    request = Request(groups=asked(VM={"VCPU": 5, "MEMORY_MB": 5}))
    assert added(grow(node("host", first, second)), request) == [("second", "MEMORY_MB", 5)]


def test_a_class_is_added_anew_only_where_no_provider_has_enough_of_it() -> None:
    host = node("host", node("card", FPGA=1), VCPU=8)
    near = Request(
        groups=asked(VM={"VCPU": 8}, ACC={"FPGA": 2}),
        affinities=(Affinity(frozenset(["_VM", "_ACC"])),),
    )
    assert added(grow(host), near) == [("card", "FPGA", 1)]
    assert added(grow(node("host", VCPU=8)), near) == [("host", "FPGA", 2)]


def test_something_is_added_where_units_forbid_it_only_at_the_nearest_place() -> None:
    host = node("host", node("a", VF=Inventory(3, max_unit=2)), node("b", VF=1))
    request = Request(groups=(Group(suffix="_B", resources={"VF": 4}),))
    assert added(grow(host), request) == [("b", "VF", 3)]


MUCH = 1000


@examples(300)
@given(any_forest, any_request)
def test_what_is_added_helps_and_nothing_less_does(forest: Forest, request: Request) -> None:
    snapshot = loaded(forest)
    conditions = Conditions(snapshot, Demands(by_uuid(request)))
    for anchor in forest.roots():
        found = done(host_findings(conditions, snapshot.tree_of_root[anchor.id]))
        new = {(name_of(snapshot.uuid(row)), name): more for row, name, more in found.additions}
        entries = brute.entries(forest, anchor, request)
        there = [entry for entry in entries if entry[1] in brute.named(forest, entry).inventories]

        def helps(more: Mapping[tuple[str, str], int], anchor: Provider = anchor) -> bool:
            world = brute.with_more(forest, more)
            return brute.fits(world, world.providers[anchor.id], request)

        if brute.fits(forest, anchor, request):
            assert not new
            continue
        allowed = there if helps(dict.fromkeys(there, MUCH)) else entries
        assert bool(new) == helps(dict.fromkeys(allowed, MUCH))
        if not new:
            continue
        assert helps(new)
        assert set(new) <= set(allowed)
        for entry, more in new.items():
            assert not helps({**new, entry: more - 1})
            assert not helps({other: MUCH for other in new if other != entry})
        if found.fewest_additions:
            for size in range(1, min(len(new), 3)):
                for some in combinations(allowed, size):
                    assert not helps(dict.fromkeys(some, MUCH))
