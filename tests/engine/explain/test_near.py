"""The largest amount that fits is found as well where only what is near it is asked first."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import msgspec
from hypothesis import given

from dovetail.core.constraints import constraints
from dovetail.core.request import Affinity, Group, Request
from dovetail.engine.explain import FleetProblem, refine
from dovetail.engine.explain.near import NearGroups, near_constraints
from tests.engine.answers import loaded
from tests.engine.explain.test_explain import any_forest, any_request, check_relaxations, done
from tests.engine.forest import Forest, Inventory, grow, node
from tests.engine.strategies import FEW_CLASSES, examples


def in_single_units(forest: Forest) -> Forest:
    return Forest(
        replace(
            provider,
            inventories={
                name: Inventory(held.total, held.reserved, ratio=held.ratio, used=held.used)
                for name, held in provider.inventories.items()
            },
        )
        for provider in forest
    )


def asking_more(request: Request | None) -> Request:
    """Groups of which each wants another class, the first one more than providers have of it."""
    assert request
    groups = []
    for at, (one, name) in enumerate(zip(request.groups, FEW_CLASSES, strict=False)):
        amount = sum(one.resources.values()) + (1 if at else 8)
        groups.append(msgspec.structs.replace(one, resources={name: amount}))
    suffixes = frozenset(one.suffix for one in groups)
    tied = [one for one in request.affinities if one.together | one.apart <= suffixes]
    return msgspec.structs.replace(
        request, groups=tuple(groups), isolated=frozenset(), affinities=tuple(tied)
    )


@examples(400)
@given(any_forest.map(in_single_units), any_request.map(asking_more))
def test_changes_are_the_same_if_near_groups_are_asked_first(
    forest: Forest, request: Request
) -> None:
    with patch.object(refine, "FEW", 0):
        check_relaxations(forest, request)


def group(suffix: str, **resources: int) -> Group:
    return Group(suffix=suffix, resources=resources)


def near(request: Request) -> set[str]:
    """What is near the first amount."""
    first, *others = constraints(request)
    return {one.text for one in near_constraints(first, dict(enumerate(others, 1))).values()}


def test_near_are_those_who_want_the_same_or_are_tied() -> None:
    groups = (
        group("_A", VCPU=4),
        group("_B", VCPU=2, VF=1),
        group("_C", VF=2),
        group("_D", FPGA=1),
    )
    assert near(Request(groups=groups)) == {"VCPU:2", "VF:1", "VF:2"}
    tied = (Affinity(frozenset(["_C", "_D"])),)
    assert near(Request(groups=groups, affinities=tied)) == {
        *("VCPU:2", "VF:1", "VF:2", "FPGA:1", "_C,_D"),
    }
    alone = (groups[0], groups[2], groups[3])
    assert near(Request(groups=alone)) == set()
    isolated = Request(groups=alone, isolated=frozenset(["_C"]))
    assert {"VF:2", "FPGA:1"} < near(isolated)


def test_hosts_that_differ_elsewhere_are_one_kind() -> None:
    """Whether a card is left is found out of two hosts, however the others are in use."""
    hosts = [
        node(
            f"h{at}",
            node(f"h{at}x", FPGA=Inventory(2, used=at % 2)),
            VCPU=Inventory(400, used=at),
            MEMORY_MB=Inventory(400, used=at * 7 % 100),
        )
        for at in range(100)
    ]
    many = [group(f"_{at}", VCPU=100 + at, MEMORY_MB=100) for at in range(3)]
    request = Request(groups=(group("_A", FPGA=3), *many))
    fleet = FleetProblem(loaded(grow(*hosts)), request)
    asked = near_groups(fleet)
    assert asked.is_of_use
    found = [done(asked.can_give(tree, 2)) for tree in range(100)]
    assert found == [at % 2 == 0 for at in range(100)]
    assert len(fleet._problems) == 2


def near_groups(fleet: FleetProblem) -> NearGroups:
    """Of the first amount."""
    others = dict(enumerate(fleet.demands.constraints))
    del others[0]
    return NearGroups(fleet, 0, others)
