"""Findings are true for their host: judged together, with nothing in use and as it is now."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from dovetail.core.constraints import Constraint, constraints, only
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import findings
from dovetail.engine.explain.host import ProviderFinding
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain import brute
from tests.engine.explain.test_explain import any_forest, any_request, done
from tests.engine.forest import Forest, Inventory, Node, grow, name_of, node
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
