"""Immediate refusal: a type that is had at once or not at all, as its units go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dovetail.core.rows import Rows
from dovetail.machines.names import (
    ENABLED,
    GUEST,
    HOSTNAME,
    INJECT_RESOURCE,
    UNIT_GATE,
    UNIT_GROUP,
    UNIT_GROUP_SIZE,
    USER,
    role_labels,
)
from dovetail.machines.selling.immediate import immediate_refusal
from dovetail.machines.snapshot import MachineSnapshot, StockSettings, UnitRecord
from dovetail.podfit.objects import Namespace, Pod
from dovetail.podfit.table import NodeTable
from tests.machines.building import machine, namespace, node

GROUP = "lab"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def whole(**fields: Any) -> dict[str, Any]:
    return {
        "name": "whole",
        "spec": {"cpu": 8, "memory": "16Gi"},
        "available": 2,
        "whenSoldOut": "refuse",
        **fields,
    }


def half(**fields: Any) -> dict[str, Any]:
    dependence = {"parent": "whole", "availableRatio": 0.5}
    spec = {"cpu": 4, "memory": "8Gi", "dependence": dependence}
    return {
        "name": "half",
        "spec": spec,
        "available": 4,
        "whenSoldOut": "refuse",
        **fields,
    }


def guest(
    name: str,
    kind: str = "whole",
    *,
    on: str = "",
    pinned: str = "",
    space: str = "team",
    group: str = "",
    size: int = 0,
    phase: str = "Pending",
    leaving: bool = False,
) -> Pod:
    """Behind its gate, unless it is on a node or let go to one."""
    labels = role_labels(GROUP, kind, GUEST) | ({UNIT_GROUP: group} if group else {})
    meta = {
        "name": name,
        "namespace": space,
        "uid": name,
        "labels": labels,
        "annotations": {UNIT_GROUP_SIZE: str(size)} if size else {},
        "deletionTimestamp": "2026-11-16T12:00:00Z" if leaving else None,
    }
    spec = {
        "nodeName": on,
        "nodeSelector": {HOSTNAME: pinned} if pinned else {},
        "schedulingGates": [] if on or pinned else [{"name": UNIT_GATE}],
    }
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, Pod)


TEAMS = [namespace(name, {INJECT_RESOURCE: ENABLED}, {USER: "mei"}) for name in ("team", "course")]


def snapshot(
    guests: Sequence[Pod] = (),
    types: Sequence[dict[str, Any]] = (),
    *,
    waiting: Sequence[tuple[str, str]] = (),
    units: dict[str, UnitRecord] | None = None,
    namespaces: Sequence[Namespace] = (),
    mode: str = "ready",
) -> MachineSnapshot:
    """`waiting`: name and reason of those of whom the status tells."""
    pool = [{"name": "one", "mode": mode, "machineType": [{"name": "whole"}]}]
    found = machine({"nodePool": pool, "machineTypes": list(types or [whole()])}, group=GROUP)
    rows = [{"namespace": "team", "pod": name, "reason": reason} for name, reason in waiting]
    status = msgspec.structs.replace(found.status, waiting=tuple(rows))
    return MachineSnapshot(
        machine=msgspec.structs.replace(found, status=status),
        spec=found.spec,
        accepted_generation=1,
        settings=StockSettings(),
        now=NOON,
        table=NodeTable(Rows()),
        nodes={"one": node("one")},
        guests={each.metadata.uid: each for each in guests},
        sleepers={},
        units=units or {},
        gone=frozenset(),
        namespaces={each.metadata.name: each for each in namespaces or TEAMS},
        gpus_of_others={},
    )


def refusal(found: MachineSnapshot, asking: Pod | None = None) -> str:
    """Reason and words; empty if there is none."""
    why = immediate_refusal(found, asking or guest("asking"))
    return "" if why is None else f"{why.reason.value}: {why.message}"


def test_it_is_refused_when_all_are_sold_and_let_in_before() -> None:
    one, two = guest("one", on="one"), guest("two", on="one")
    assert refusal(snapshot([one])) == ""
    assert refusal(snapshot([one, two])) == "SoldOut: all 2 units of whole are sold"


def test_a_type_that_has_guests_wait_refuses_none() -> None:
    sold = [guest("one", on="one"), guest("two", on="one")]
    assert refusal(snapshot(sold, [whole(whenSoldOut="wait", buyers={})])) == ""


def test_who_is_let_go_or_stands_in_line_counts() -> None:
    let_go = guest("let-go", pinned="one")
    assert refusal(snapshot([let_go, guest("not-looked-at-yet")])).startswith("SoldOut")
    in_line = [guest("a"), guest("b")]
    told = [("a", "SoldOut"), ("b", "SoldOut")]
    assert refusal(snapshot(in_line, waiting=told)).startswith("SoldOut")


@pytest.mark.parametrize("reason", ["NotABuyer", "NamespaceCapReached", "NoNodeFits", "OtherGates"])
def test_who_waits_for_something_else_holds_nobody_up(reason: str) -> None:
    there = [guest("one", on="one"), guest("stuck")]
    assert refusal(snapshot(there, waiting=[("stuck", reason)])) == ""
    assert refusal(snapshot(there)).startswith("SoldOut")


def test_who_is_over_or_goes_before_its_turn_counts_no_more() -> None:
    ended = guest("ended", on="one", phase="Succeeded")
    going = guest("going", leaving=True)
    assert refusal(snapshot([ended, going, guest("one", on="one")])) == ""


def test_a_pod_that_is_only_labelled_like_a_guest_counts_for_nothing() -> None:
    posing = [guest(name, on="one", space="elsewhere") for name in ("a", "b")]
    spaces = [*TEAMS, namespace("elsewhere")]
    assert refusal(snapshot(posing, namespaces=spaces)) == ""


def test_a_unit_whose_holder_was_not_seen_is_sold() -> None:
    unseen = UnitRecord("whole", "one", False, 0)
    stock = UnitRecord("whole", "one", True, 0)
    one = guest("one", on="one")
    assert refusal(snapshot([one], units={"unseen": unseen})).startswith("SoldOut")
    assert refusal(snapshot([one], units={"sleeper": stock})) == ""


def test_halves_and_wholes_are_left_from_one_stock() -> None:
    types = [whole(), half()]
    halves = [guest(f"half-{n}", "half", on="one") for n in range(3)]
    assert refusal(snapshot(halves[:2], types)) == ""
    sold_out = refusal(snapshot(halves, types))
    assert sold_out.startswith("SoldOut: 0 of 2 units of whole are sold, and parts of the others")
    assert refusal(snapshot(halves, types), guest("asking", "half")) == ""
    both = [*halves, guest("half-3", "half", on="one")]
    assert refusal(snapshot(both, types), guest("asking", "half")).startswith("SoldOut")


def test_who_may_not_buy_and_who_has_enough_is_refused_with_that() -> None:
    others = [whole(buyers={"namespaces": ["course"]})]
    words = "NotABuyer: namespace 'team' is not among the buyers of whole"
    assert refusal(snapshot([], others)) == words
    assert refusal(snapshot([], others), guest("asking", space="course")) == ""
    one = guest("one", on="one", space="course")
    capped = snapshot([one], [whole(caps={"perNamespace": 1})])
    assert refusal(capped, guest("asking", space="course")).startswith("NamespaceCapReached")
    assert refusal(capped) == ""
    assert refusal(snapshot([one], [whole(caps={"perUser": 1})])).startswith("UserCapReached")


def test_what_is_held_for_a_window_is_not_left_for_others() -> None:
    window = {
        "name": "lecture",
        "start": "2026-11-16T11:00:00Z",
        "duration": "2h",
        "units": 2,
        "buyers": {"namespaces": ["course"]},
    }
    held = snapshot([], [whole(windows=[window])])
    assert refusal(held).startswith("HeldForWindow")
    assert refusal(held, guest("asking", space="course")) == ""


def test_a_namespace_that_was_not_heard_of_is_not_judged() -> None:
    new = guest("asking", space="made-just-now")
    assert refusal(snapshot([], [whole(buyers={"namespaces": ["course"]})]), new) == ""


def test_nothing_is_left_where_no_node_that_serves_the_type_is_ready() -> None:
    away = snapshot([], [whole(), half()], mode="maintenance")
    for kind in ("whole", "half"):
        words = f"NoNodeFits: no node that serves {kind} is ready at present"
        assert refusal(away, guest("asking", kind)) == words


def test_a_unit_group_is_refused_with_its_first_pod_if_not_all_are_left() -> None:
    first = guest("first", group="ring", size=3)
    assert refusal(snapshot([]), first) == (
        "GroupDoesNotFit: unit group 'ring' gets all units or none, and needs 3:"
        " all 2 units of whole are sold"
    )
    pair = [guest(f"pair-{n}", group="pair", size=2) for n in range(2)]
    assert refusal(snapshot([]), pair[0]) == ""
    assert refusal(snapshot(pair[:1], waiting=[("pair-0", "GroupIncomplete")]), pair[1]) == ""
    taken = [guest("other", on="one"), pair[0]]
    assert refusal(snapshot(taken), pair[1]).startswith("GroupDoesNotFit")


def test_the_last_of_a_unit_group_needs_what_the_others_do_not_have() -> None:
    has = guest("pair-0", on="one", group="pair", size=2)
    assert refusal(snapshot([has]), guest("pair-1", group="pair", size=2)) == ""
    full = [has, guest("other", on="one")]
    assert refusal(snapshot(full), guest("pair-1", group="pair", size=2)).startswith("SoldOut")
