"""Explanations are true: each count and each change is what brute force finds."""

from __future__ import annotations

from itertools import combinations, islice
from typing import TypeVar

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from dovetail.core.constraints import Constraint, constraints, with_amount, with_changes
from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import (
    FleetProblem,
    RelaxedRequest,
    Work,
    any_fits,
    findings,
    funnel,
    relaxations,
    relaxations_in,
)
from dovetail.engine.explain.refine import is_void, out_of_isolation, out_of_subtree
from tests.engine.answers import by_uuid, loaded
from tests.engine.explain import brute
from tests.engine.forest import SHARING, Forest, Inventory, grow, name_of, node
from tests.engine.strategies import (
    alike_forests,
    examples,
    forests,
    related_requests,
    requests,
    spread_requests,
)

T = TypeVar("T")
any_forest = st.one_of(forests(), alike_forests())
PATIENCE = 100_000


def explainable(request: Request) -> Request | None:
    """As the API lets one ask: no limit, nesting known, and no group that demands nothing.

    A group without resources has to be tied to others.
    """
    demanded = {one.group for one in constraints(request)}
    tied = {name for one in request.affinities for name in one.together | one.apart}
    for group in request.groups:
        if group.suffix not in demanded or not (group.resources or group.suffix in tied):
            return None
    return msgspec.structs.replace(request, limit=None, one_provider_per_tree=False)


any_request = (
    st.one_of(requests(), related_requests(), spread_requests())
    .map(explainable)
    .filter(lambda request: request is not None)
)


def done(work: Work[T]) -> T:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


@examples(600)
@given(any_forest, any_request)
def test_the_funnel_counts_what_brute_force_counts(forest: Forest, request: Request) -> None:
    steps = done(funnel(loaded(forest), by_uuid(request)))
    assert [step.left for step in steps] == brute.left_after(forest, request)


@examples(600)
@given(any_forest, any_request)
def test_a_host_meets_all_of_it_exactly_where_it_fits(forest: Forest, request: Request) -> None:
    snapshot = loaded(forest)
    for anchor in forest.roots():
        found = done(findings(snapshot, by_uuid(request), snapshot.tree_of_root[anchor.id]))
        assert all(one.met for one in found) == brute.fits(forest, anchor, request)
        assert all(one.ever for one in found if one.met)


@examples(300)
@given(any_forest, any_request)
def test_never_and_not_now_are_told_apart(forest: Forest, request: Request) -> None:
    ever = done(any_fits(loaded(forest).without_usage(), by_uuid(request)))
    assert ever == bool(brute.how_many(brute.without_usage(forest), request))


@examples(600)
@given(any_forest, any_request)
def test_relaxations_help_and_no_smaller_ones_do(forest: Forest, request: Request) -> None:
    check_relaxations(forest, request)


def check_relaxations(forest: Forest, request: Request) -> None:
    assume(not brute.how_many(forest, request))
    smallest = brute.smallest_sets(forest, request, most=2)
    assume(smallest is not None)
    named = dict(zip(constraints(by_uuid(request)), constraints(request), strict=True))
    found = done(relaxations(loaded(forest), by_uuid(request), []))
    assert {frozenset(named[one] for one in offer.changes) for offer in found} == smallest
    for offer in found:
        changes = {named[one]: other for one, other in offer.changes.items()}
        relaxed = with_changes(request, changes)
        assert relaxed
        assert offer.trees == brute.how_many(forest, relaxed) > 0
        for one, other in changes.items():
            for less in smaller(one, other):
                still = with_changes(request, {**changes, one: less})
                assert not still or not brute.how_many(forest, still)


def smaller(one: Constraint, other: Constraint | None) -> list[Constraint]:
    """Changes of a constraint that go less far than the one offered."""
    if one.reason is Reason.AMOUNT:
        offered = other.amount if other else 0
        return [with_amount(one, amount) for amount in range(offered + 1, one.amount)]
    if one.reason in (Reason.SAME_SUBTREE, Reason.ISOLATION):
        without = out_of_subtree if one.affinity else out_of_isolation
        names, left = members(one), members(other) if other else frozenset()
        fewer = [
            without(one, frozenset(out))
            for size in range(1, len(names) - len(left))
            for out in combinations(sorted(names), size)
        ]
        return [each for each in fewer if not is_void(each)]
    return []


def members(one: Constraint) -> frozenset[str]:
    return one.affinity.together | one.affinity.apart if one.affinity else one.names


def test_many_groups_of_one_class_do_not_multiply_the_work() -> None:
    """What 28 groups may take of a provider are 2**28 different sums: not to be tried each."""
    small = [2 << at for at in range(28)]
    groups = [Group(suffix=f"_{n}", resources={"DISK_GB": n}) for n in small]
    request = Request(groups=(*groups, Group(suffix="_BIG", resources={"DISK_GB": 2**30})))
    left = 2**30 - sum(small)
    by_one = grow(node("host", DISK_GB=2**30))
    assert ("DISK_GB:1073741824", f"DISK_GB:{left}", 1) in said(smallest(by_one, request))
    by_two = grow(node("host", DISK_GB=Inventory(2**30, step_size=2)))
    assert ("DISK_GB:1073741824", f"DISK_GB:{left}", 1) in said(smallest(by_two, request))


def smallest(forest: Forest, request: Request) -> list[RelaxedRequest]:
    return done(relaxations(loaded(forest), request, []))


# -- what a person reads ---------------------------------------------------------------------------


def two_hosts() -> Forest:
    """One host has the card beside the wrong half of its processors, one has too little left."""
    return grow(
        node(
            "host1",
            node("numa0", VCPU=Inventory(8, used=6), traits=["HW_NUMA_ROOT"]),
            node("numa1", node("fpga1", FPGA=1), VCPU=8, traits=["HW_NUMA_ROOT"]),
        ),
        node(
            "host2",
            node("numa2", node("fpga2", FPGA=1), VCPU=Inventory(8, used=5)),
            node("numa3", VCPU=8),
        ),
    )


def near_the_card(cores: int) -> Request:
    return Request(
        groups=(
            Group(suffix="_VM", resources={"VCPU": cores}),
            Group(suffix="_ACC", resources={"FPGA": 1}),
        ),
        affinities=(Affinity(frozenset(["_VM", "_ACC"])),),
    )


def test_an_amount_is_lowered_as_little_as_possible() -> None:
    found = done(relaxations(loaded(two_hosts()), near_the_card(16), []))
    assert said(found) == {("VCPU:16", "VCPU:8", 1)}


def test_hosts_that_differ_only_in_a_smaller_amount_are_not_alike() -> None:
    """Neither has two cards free, and only the second has one: that is what can be had."""
    forest = grow(node("host1", FPGA=Inventory(1, used=1)), node("host2", FPGA=1))
    found = done(relaxations(loaded(forest), Request(groups=(Group(resources={"FPGA": 2}),)), []))
    assert said(found) == {("FPGA:2", "FPGA:1", 1)}


def test_an_amount_is_lowered_beside_what_others_take_of_it() -> None:
    """Of hosts that differ in what is left, the one that has most of it for both decides."""
    forest = grow(*(node(f"host{at}", VCPU=Inventory(16, used=at)) for at in range(8)))
    groups = tuple(Group(suffix=f"_{n}", resources={"VCPU": n}) for n in (7, 11))
    found = done(relaxations(loaded(forest), Request(groups=groups), []))
    assert said(found) == {("VCPU:7", "VCPU:5", 1), ("VCPU:11", "VCPU:9", 1)}


def test_a_group_may_leave_the_subtree() -> None:
    forest = grow(
        node(
            "host1",
            node("numa0", VCPU=8),
            node("numa1", node("fpga1", FPGA=1), VCPU=Inventory(8, used=6)),
        )
    )
    found = done(relaxations(loaded(forest), near_the_card(4), []))
    assert said(found) == {
        ("VCPU:4", "VCPU:2", 1),
        ("FPGA:1", None, 1),
        ("_ACC,_VM", None, 1),
    }


def said(found: list[RelaxedRequest]) -> set[tuple[str, str | None, int]]:
    return {
        (one.text, other.text if other else None, offer.trees)
        for offer in found
        for one, other in offer.changes.items()
    }


def test_a_finding_names_the_provider_that_comes_nearest() -> None:
    snapshot = loaded(two_hosts())
    request = Request(groups=(Group(suffix="_VM", resources={"VCPU": 10}),))
    (finding,) = done(findings(snapshot, request, 0))
    assert not finding.met
    assert not finding.ever
    assert finding.row is not None
    assert name_of(snapshot.uuid(finding.row)) == "numa1"
    assert finding.supply is not None
    assert (finding.supply.free, finding.supply.capacity) == (8, 8)


def test_work_gives_way_now_and_then() -> None:
    work = relaxations(loaded(two_hosts()), near_the_card(16), [])
    assert len(list(islice(work, PATIENCE))) > 1


def test_a_request_of_very_many_groups_gives_way_at_each_of_them() -> None:
    """Or one client could hold up all others for minutes."""
    groups = tuple(Group(suffix=f"_{n}", resources={"VCPU": 1}) for n in range(50))
    snapshot, request = loaded(two_hosts()), Request(groups=groups)
    assert len(list(islice(funnel(snapshot, request), PATIENCE))) >= 50
    assert len(list(islice(findings(snapshot, request, 0), PATIENCE))) >= 50


def test_relaxations_that_are_not_shown_are_counted() -> None:
    """Of twenty groups any one may go."""
    groups = tuple(Group(suffix=f"_{at}", resources={"VCPU": 1}) for at in range(20))
    found: list[RelaxedRequest] = []
    snapshot = loaded(grow(node("host", VCPU=19)))
    more = done(relaxations_in(FleetProblem(snapshot, Request(groups=groups)), found))
    assert (len(found), more) == (16, 4)


# -- what random worlds found ----------------------------------------------------------------------


def test_pools_without_a_class_that_groups_contend_for_do_no_harm() -> None:
    """The last row of the fleet is shared, and has nothing of the class."""
    forest = grow(
        node("host", VCPU=4, aggregates=["a"]),
        node("pool", DISK_GB=8, traits=[SHARING], aggregates=["a"]),
    )
    groups = tuple(Group(suffix=f"_{n}", resources={"VCPU": n}) for n in (2, 3))
    assert said(smallest(forest, Request(groups=groups))) == {
        ("VCPU:2", "VCPU:1", 1),
        ("VCPU:3", "VCPU:2", 1),
    }


def test_a_provider_that_brings_a_trait_hides_no_other_way_out() -> None:
    """That processors alone come without the trait is no conflict: the network brings it."""
    forest = grow(
        node("host1", VCPU=4, VF=3, traits=["NET1"]),
        node(
            "host2",
            node("near", node("net", traits=["NET1"]), VCPU=8, VF=Inventory(2, step_size=2)),
            node("far"),
            VF=8,
            traits=["LARGE"],
        ),
    )
    request = Request(
        groups=(
            Group(resources={"VF": 2, "VCPU": 1}, required=(frozenset(["LARGE"]),)),
            Group(suffix="_B", resources={"VF": 1, "VCPU": 2}, required=(frozenset(["NET1"]),)),
            Group(suffix="_C", in_tree="far"),
        ),
        affinities=(Affinity(frozenset(["_B", "_C"])),),
    )
    found = done(relaxations(loaded(forest), by_uuid(request), []))
    sets = brute.smallest_sets(forest, request, most=2)
    named = dict(zip(constraints(by_uuid(request)), constraints(request), strict=True))
    assert {frozenset(named[one] for one in offer.changes) for offer in found} == sets


def test_an_amount_that_only_fits_beside_another_is_asked_for_with_it() -> None:
    """The trait is where the disk is: memory can be had once some disk is asked for."""
    forest = grow(node("host", node("disk", DISK_GB=2, traits=["LARGE"]), MEMORY_MB=1))
    unsuffixed = Group(resources={"MEMORY_MB": 2, "DISK_GB": 6}, required=(frozenset(["LARGE"]),))
    assert said(smallest(forest, Request(groups=(unsuffixed,)))) == {
        ("MEMORY_MB:2", "MEMORY_MB:1", 1),
        ("DISK_GB:6", "DISK_GB:2", 1),
    }


def test_none_of_many_changes_could_be_left_out() -> None:
    """Once all that a group asks for is gone, so is the rest that it demanded: others have room."""
    request = Request(
        groups=(
            Group(
                suffix="_A",
                resources={"VCPU": 1, "MEMORY_MB": 1},
                forbidden=frozenset(["NET1"]),
            ),
            Group(suffix="_B", resources={"MEMORY_MB": 2}, not_member_of=frozenset(["a"])),
            Group(
                suffix="_C",
                resources={"MEMORY_MB": 6, "VCPU": 1},
                member_of=(frozenset(["b"]),),
            ),
        ),
        isolated=frozenset(["_C"]),
    )
    forest = grow(
        node(
            "host",
            node("small", VCPU=Inventory(12, max_unit=2), MEMORY_MB=1),
            VCPU=Inventory(3, step_size=2),
            traits=["NET1"],
            aggregates=["a", "b"],
        ),
        node("pool", MEMORY_MB=8, traits=[SHARING], aggregates=["a"]),
    )
    found = smallest(forest, request)
    assert found
    for offer in found:
        for kept in offer.changes:
            fewer = {one: other for one, other in offer.changes.items() if one != kept}
            relaxed = with_changes(request, fewer)
            assert relaxed is None or not brute.how_many(forest, relaxed)
