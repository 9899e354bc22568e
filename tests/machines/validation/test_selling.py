"""Terms of sale: buyers, caps, leases and windows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machines.validation.worlds import faults

TYPE = "spec.machineTypes[0]"
WINDOW: dict[str, Any] = {
    "name": "course",
    "start": "2026-11-16T09:00:00Z",
    "duration": "2h",
    "rrule": "FREQ=WEEKLY;BYDAY=MO",
    "timeZone": "Asia/Tokyo",
    "units": 4,
    "buyers": {"namespaces": ["course"]},
}


def windows(*more: dict[str, Any]) -> dict[str, Any]:
    return {"machineTypes[0].windows": [WINDOW, *more]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("counting", "all"),
        ("machineTypes[0].whenSoldOut", "queue"),
        ("machineTypes[0].whenExpired", "kill"),
    ],
)
def test_choices(field: str, value: str) -> None:
    [(path, message)] = faults({field: value})
    assert path == f"spec.{field}"
    assert message.startswith(f"{value!r} is none of ")


def test_terms_that_are_in_order() -> None:
    terms = {
        "counting": "spec",
        "buyers": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        "machineTypes[0].whenSoldOut": "refuse",
        "machineTypes[0].whenExpired": "evict",
        "machineTypes[0].maxDuration": "1h30m",
        "machineTypes[0].announceBefore": "0s",
        "machineTypes[0].caps": {"perNamespace": 0, "perUser": 2},
    }
    assert faults({**terms, **windows()}) == []


@pytest.mark.parametrize("where", ["", "machineTypes[0].", "machineTypes[0].windows[0]."])
def test_selectors_are_kubernetes_own(where: str) -> None:
    term = {"key": "tier", "operator": "Gt", "values": ["1"]}
    selector = {f"{where}buyers": {"namespaceSelector": {"matchExpressions": [term]}}}
    [(path, message)] = faults({**windows(), **selector})
    assert path == f"spec.{where}buyers.namespaceSelector.matchExpressions[0]"
    assert "tier Gt ['1']" in message


@pytest.mark.parametrize("cap", ["perNamespace", "perUser"])
def test_caps_are_not_negative(cap: str) -> None:
    assert faults({"machineTypes[0].caps": {cap: -1}}) == [
        (f"{TYPE}.caps.{cap}", "-1 is less than nothing")
    ]


@pytest.mark.parametrize(
    ("field", "text"),
    [("maxDuration", "8"), ("maxDuration", "0h"), ("announceBefore", "soon")],
)
def test_leases_have_durations(field: str, text: str) -> None:
    [(path, message)] = faults({f"machineTypes[0].{field}": text})
    assert path == f"{TYPE}.{field}"
    assert text in message


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "is not a name of its own"),
        ("start", "monday", "is no time"),
        ("duration", "0m", "is no time at all"),
        ("duration", "2 hours", "is no duration"),
        ("holdBefore", "-1h", "is no duration"),
        ("rrule", "FREQ=SECONDLY", "FREQ has to be one of"),
        ("rrule", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "names no time"),
        ("rrule", "FREQ=YEARLY;COUNT=5000", "is not reached"),
        ("timeZone", "Mars/Olympus", "is no time zone"),
        ("units", 0, "cannot be set aside"),
        ("units", 5, "5 cannot be set aside of the 4 that there are"),
        ("buyers", None, "whom the units are set aside for"),
    ],
)
def test_windows(field: str, value: Any, words: str) -> None:
    [(path, message)] = faults(windows({**WINDOW, "name": "other", field: value}))
    assert path == f"{TYPE}.windows[1].{field}"
    assert words in message


def test_windows_have_names_of_their_own() -> None:
    [(path, message)] = faults(windows(WINDOW))
    assert path == f"{TYPE}.windows[1].name"
    assert message == "'course' is not a name of its own"


def test_a_window_counts_with_the_stock_of_its_type() -> None:
    """Lowered below what the window sets aside, the stock cannot keep the promise."""
    found = faults({**windows(), "machineTypes[0].available": 3})
    assert [path for path, _ in found] == [f"{TYPE}.windows[0].units"]
