"""The status of a Machine: numbers, holders, who waits and why, windows and conditions."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dovetail.machines import status as machine_status
from dovetail.machines.plan import plan_machine
from dovetail.podfit.objects import Condition, Node
from tests.machines.building import node
from tests.machines.lab import NOW, Lab, kind, opted_in, small

LARGEST_BYTES = 1_500_000
"""Of a request that etcd takes."""


def crowded(types: int, guests: int) -> Lab:
    """Of each type so many are sold, and as many wait."""
    names = [f"type-{number}" for number in range(types)]
    lab = Lab(
        small(
            *(kind(name, 1, guests) for name in names), nodes={f"n-{name}": name for name in names}
        ),
        *(node(f"n-{name}", cpu=guests, memory="1Ti", gpus=0) for name in names),
    )
    for name in names:
        for number in range(guests):
            lab.ask(f"{name}-{number:03}", name)
    lab.sell()
    for name in names:
        for number in range(guests):
            lab.ask(f"{name}-late-{number:03}", name)
    return lab


def test_at_most_a_hundred_of_a_type_are_told() -> None:
    status = crowded(1, 103).plan().status
    assert len(status["holders"]) == len(status["waiting"]) == 100
    assert status["availableMachines"][0]["usage"]["used"] == 103
    assert status["availableMachines"][0]["usage"]["waiting"] == 103


def test_many_types_share_a_thousand_lines_and_the_status_stays_small() -> None:
    status = crowded(25, 50).plan().status
    for told in (status["holders"], status["waiting"]):
        assert set(Counter(row["type"] for row in told).values()) == {40}
    assert len(msgspec.json.encode(status)) < LARGEST_BYTES / 2


# -- what is told --------------------------------------------------------------------------------


def quads(available: int = 3, *more: dict[str, Any], **fields: Any) -> Lab:
    spec = small(kind("quad", 4, available, **fields), *more, nodes={"n0": "quad"})
    names = ("team", "other", "course")
    return Lab(spec, node("n0", cpu=64, gpus=0), namespaces=tuple(map(opted_in, names)))


HALF = kind("half", 2, 6, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}})


def test_letter_f_numbers_are_numbers_and_the_summary_is_text() -> None:
    lab = quads(3, HALF)
    lab.sold("guest", "half")
    lab.ask("next", "quad")
    status = lab.plan().status
    assert [each["usage"] for each in status["availableMachines"]] == [
        {"maximum": 3, "reserved": 2, "used": 0.5, "waiting": 1},
        {"maximum": 6, "reserved": 0, "used": 1, "waiting": 0},
    ]
    assert status["summary"] == {
        "types": "quad,half",
        "maximum": "3,6",
        "reserved": "2,0",
        "used": "0.5,1",
        "waiting": "1,0",
    }


@pytest.mark.parametrize(
    ("amount", "shown"), [(Fraction(2), "2"), (Fraction(1, 2), "0.5"), (Fraction(1, 3), "0.333")]
)
def test_shares_are_shown_to_the_thousandth(amount: Fraction, shown: str) -> None:
    assert str(machine_status.number(amount)) == shown


def test_holders_are_told_with_user_node_and_end_the_oldest_first() -> None:
    lab = quads(maxDuration="8h")
    lab.sold("first", "quad")
    lab.now += timedelta(hours=1)
    lab.sold("second", "quad", namespace="other")
    assert lab.plan().status["holders"] == [
        {
            "type": "quad",
            "namespace": "team",
            "pod": "first",
            "user": "ada",
            "node": "n0",
            "since": "2026-11-16T12:00:00Z",
            "expires": "2026-11-16T20:00:00Z",
        },
        {
            "type": "quad",
            "namespace": "other",
            "pod": "second",
            "user": "ada",
            "node": "n0",
            "since": "2026-11-16T13:00:00Z",
            "expires": "2026-11-16T21:00:00Z",
        },
    ]


def test_those_who_wait_are_told_in_line_order_with_their_reason() -> None:
    lab = quads(0)
    lab.ask("late", "quad", minutes_ago=10)
    lab.ask("early", "quad", minutes_ago=20)
    rows = lab.plan().status["waiting"]
    assert [(row["pod"], row["reason"], row["message"]) for row in rows] == [
        ("early", "SoldOut", "quad has no stock"),
        ("late", "SoldOut", "quad has no stock"),
    ]
    assert rows[0]["since"] == "2026-11-16T11:40:00Z"


def test_a_guest_on_its_way_is_told_as_such() -> None:
    lab = quads()
    lab.ask("guest", "quad")
    [row] = lab.plan().status["waiting"]
    assert (row["reason"], row["message"]) == (
        "BeingSold",
        "has a unit, and is on its way to node n0",
    )


# -- free ----------------------------------------------------------------------------------------


def test_what_finds_no_room_is_not_free() -> None:
    lab = Lab(small(kind("quad", 4, 3), HALF, nodes={"n0": "quad"}), node("n0", cpu=8, gpus=0))
    free = {each["name"]: each["free"] for each in lab.plan().status["availableMachines"]}
    assert free == {"quad": 2, "half": 4}, "two units have room, and they are four halves"


def test_inconsistency_18_nothing_is_free_of_a_type_that_no_node_serves() -> None:
    lab = quads(3, kind("unserved", 1, 5))
    plan = lab.plan()
    assert [each["free"] for each in plan.status["availableMachines"]] == [3, 0]
    [found] = [each for each in plan.conditions if each.type == "Unserved"]
    assert (found.status, found.reason) == (True, "NoNode")
    assert found.message == "no node of the pool serves unserved"


# -- windows -------------------------------------------------------------------------------------


def window(name: str, units: int, *, buyer: str = "course", hours: int = 1) -> dict[str, Any]:
    """From one hour ago on, for four."""
    start = (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    buyers = {"namespaces": [buyer]}
    return {"name": name, "start": start, "duration": "4h", "units": units, "buyers": buyers}


def test_a_window_tells_what_is_held_and_what_is_short() -> None:
    lab = quads(2, windows=[window("lesson", 2)])
    [row] = lab.plan().status["windows"]
    assert row == {
        "type": "quad",
        "name": "lesson",
        "start": "2026-11-16T11:00:00Z",
        "end": "2026-11-16T15:00:00Z",
        "units": 2,
        "held": 2,
        "short": 0,
    }
    lab.sold("pupil", "quad", namespace="course")
    [row] = lab.plan().status["windows"]
    assert (row["held"], row["short"]) == (1, 0)


def test_what_is_free_is_held_for_one_window_only() -> None:
    windows = [window("early", 2, hours=2), window("later", 2, buyer="other")]
    rows = quads(3, windows=windows).plan().status["windows"]
    assert [(row["name"], row["held"], row["short"]) for row in rows] == [
        ("early", 2, 0),
        ("later", 1, 1),
    ]


def test_a_window_that_is_short_tells_when_leases_free_its_units() -> None:
    """Those of its own buyers do not: they have what the window is for."""
    lab = quads(3, maxDuration="8h", windows=[window("lesson", 2, hours=-20)])
    lab.sold("pupil", "quad", namespace="course")
    for name in ("first", "second"):
        lab.now += timedelta(hours=1)
        lab.sold(name, "quad")
    lab.now = NOW + timedelta(hours=20)
    [row] = lab.plan().status["windows"]
    assert (row["held"], row["short"], row["freedBy"]) == (0, 1, "2026-11-16T21:00:00Z")


# -- conditions ----------------------------------------------------------------------------------


def conditions(lab: Lab, **changes: Any) -> dict[str, tuple[bool, str]]:
    plan = plan_machine(replace(lab.snapshot(), **changes))
    return {each.type: (each.status, each.reason) for each in plan.conditions}


def test_a_machine_is_ready_when_its_stock_is_held() -> None:
    assert conditions(quads()) == {
        "Accepted": (True, "Accepted"),
        "StockShort": (False, "StockHeld"),
        "Unserved": (False, "Served"),
        "Ready": (True, "StockHeld"),
    }


def test_it_is_not_while_its_newest_specification_is_not_accepted() -> None:
    found = conditions(quads(), faults=("spec.nodePool[0].name: there is no node 'n9'",))
    assert found["Accepted"] == (False, "Invalid")
    assert found["Ready"] == (False, "NotAccepted")


def test_it_is_not_while_stock_is_short_and_the_blocking_node_is_named() -> None:
    lab = Lab(small(kind("quad", 4, 3), nodes={"n0": "quad"}), node("n0", cpu=8, gpus=0))
    assert conditions(lab)["StockShort"] == (True, "NoRoom")
    assert conditions(lab)["Ready"] == (False, "StockShort")
    [found] = [each for each in lab.plan().conditions if each.type == "StockShort"]
    assert found.message == (
        "1 of quad find no room: n0: Insufficient cpu: wants 4, free 0 of 8, 4 short"
    )


def test_it_is_not_while_no_node_of_a_type_is_ready() -> None:
    lab = quads()
    lab.set_node(cordoned(lab.nodes["n0"]))
    assert conditions(lab)["Ready"] == (False, "NodesUnavailable")


def cordoned(found: Node) -> Node:
    return replace(found, spec=replace(found.spec, unschedulable=True))


def test_it_stays_ready_while_units_change_hands() -> None:
    """A sleeper is away for a moment whenever a guest comes or goes."""
    lab = quads()
    ready = Condition(type="Ready", status="True")
    before = replace(lab.machine, status=replace(lab.machine.status, conditions=(ready,)))
    lab.sleepers.clear()
    for uid in list(lab.units):
        del lab.units[uid]
        lab.table.remove_pod(uid)
    assert conditions(lab)["Ready"] == (False, "StockPending")
    assert conditions(lab, machine=before)["Ready"] == (True, "StockHeld")
