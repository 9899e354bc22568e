"""Who may have another unit: caps, windows, and stock that parents and children share."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from dovetail.machines.names import USER
from dovetail.machines.selling.waiting import WaitReason
from tests.machines.building import namespace, node
from tests.machines.lab import NOW, Lab, kind, opted_in, small

COURSE = {"namespaces": ["course"]}


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def window(start: timedelta, units: int, **fields: Any) -> dict[str, Any]:
    """From then on for two hours; for the namespace `course`."""
    written = {"name": "lesson", "start": text(NOW + start), "duration": "2h", "units": units}
    return {**written, "buyers": COURSE, **fields}


def lab(available: int = 3, *more: dict[str, Any], **fields: Any) -> Lab:
    """Units of 4 CPUs on one large node."""
    spec = small(kind("quad", 4, available, **fields), *more, nodes={"n0": "quad"})
    names = ("team", "other", "course")
    return Lab(spec, node("n0", cpu=64, gpus=0), namespaces=tuple(map(opted_in, names)))


def reasons(found: Lab) -> dict[str, WaitReason]:
    return {uid: why.reason for uid, why in found.plan().waiting.items()}


def sold(found: Lab) -> set[str]:
    return {order.pod.metadata.name for sale in found.plan().sales for order in sale.orders}


# -- caps ----------------------------------------------------------------------------------------


def test_a_namespace_holds_no_more_than_its_cap() -> None:
    found = lab(caps={"perNamespace": 1})
    found.sold("first", "quad")
    found.ask("second", "quad")
    found.ask("another", "quad", namespace="other")
    assert sold(found) == {"another"}
    assert reasons(found) == {"second": WaitReason.NAMESPACE_CAP_REACHED}
    found.end("first")
    assert sold(found) == {"second", "another"}


def test_caps_hold_within_one_plan() -> None:
    found = lab(caps={"perNamespace": 2})
    for number in range(3):
        found.ask(f"guest-{number}", "quad", minutes_ago=60 - number)
    assert sold(found) == {"guest-0", "guest-1"}


def test_a_user_holds_no_more_than_the_cap_in_all_namespaces() -> None:
    """The user is the namespace's, else who made the pod."""
    mei = {USER: "mei"}
    found = lab(caps={"perUser": 1})
    for name in ("team", "other"):
        labels = found.namespaces[name].metadata.labels
        found.namespaces[name] = namespace(name, dict(labels), mei)
    found.sold("first", "quad", namespace="team")
    found.ask("second", "quad", namespace="other")
    found.ask("another", "quad", namespace="course")
    assert sold(found) == {"another"}, "made by ada"
    assert reasons(found) == {"second": WaitReason.USER_CAP_REACHED}


def test_caps_are_a_types_own() -> None:
    half = kind("half", 2, 4, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}})
    found = lab(3, half, caps={"perNamespace": 1})
    found.sold("whole", "quad")
    found.ask("half", "half")
    assert sold(found) == {"half"}


def test_a_group_beyond_a_cap_is_not_sold_at_all() -> None:
    found = lab(caps={"perNamespace": 1})
    for number in range(2):
        found.ask(f"member-{number}", "quad", unit_group=("pair", 2))
    assert sold(found) == set()
    assert set(reasons(found).values()) == {WaitReason.GROUP_DOES_NOT_FIT}


def test_who_is_no_buyer_waits_with_that_reason() -> None:
    found = lab(buyers=COURSE)
    found.ask("guest", "quad")
    found.ask("pupil", "quad", namespace="course")
    assert (sold(found), reasons(found)) == ({"pupil"}, {"guest": WaitReason.NOT_A_BUYER})


# -- windows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "fields", "is_held"),
    [
        (timedelta(hours=-1), {}, True),
        (timedelta(hours=-2), {}, False),
        (timedelta(minutes=30), {}, False),
        (timedelta(minutes=30), {"holdBefore": "1h"}, True),
        (timedelta(hours=2), {"holdBefore": "1h"}, False),
    ],
    ids=["runs", "is over", "is to come", "is about to", "not yet"],
)
def test_units_are_held_for_a_windows_buyers(
    start: timedelta, fields: dict[str, Any], is_held: bool
) -> None:
    found = lab(3, windows=[window(start, 2, **fields)])
    for number in range(3):
        found.ask(f"guest-{number}", "quad", minutes_ago=60 - number)
    if not is_held:
        assert len(sold(found)) == 3
        return
    assert sold(found) == {"guest-0"}
    assert set(reasons(found).values()) == {WaitReason.HELD_FOR_WINDOW}
    found.ask("pupil", "quad", namespace="course")
    assert sold(found) == {"guest-0", "pupil"}


def test_who_buys_shortly_before_would_stay_into_the_window() -> None:
    """So units are held back for as long as they are lent."""
    found = lab(1, maxDuration="3h", windows=[window(timedelta(hours=2), 1)])
    found.ask("guest", "quad")
    assert reasons(found) == {"guest": WaitReason.HELD_FOR_WINDOW}


def test_what_its_buyers_have_already_is_not_held_again() -> None:
    found = lab(3, windows=[window(timedelta(0), 2)])
    found.sold("pupil", "quad", namespace="course")
    found.ask("guest", "quad")
    found.ask("second", "quad", minutes_ago=30)
    assert sold(found) == {"guest"}
    assert reasons(found) == {"second": WaitReason.HELD_FOR_WINDOW}


HALF = kind("half", 2, 6, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}})


def test_inconsistency_17_children_do_not_open_units_that_a_window_holds() -> None:
    found = lab(2, HALF, windows=[window(timedelta(0), 1)])
    for number in range(3):
        found.ask(f"half-{number}", "half", minutes_ago=60 - number)
    assert sold(found) == {"half-0", "half-1"}, "both of one unit"
    assert reasons(found) == {"half-2": WaitReason.HELD_FOR_WINDOW}
    found.ask("pupil", "half", namespace="course")
    assert "pupil" in sold(found)


def test_inconsistency_17_a_parent_is_not_sold_if_a_window_holds_its_parts() -> None:
    half = {**HALF, "windows": [window(timedelta(0), 2)]}
    found = lab(2, half)
    found.ask("first", "quad", minutes_ago=60)
    found.ask("second", "quad", minutes_ago=30)
    assert sold(found) == {"first"}
    assert reasons(found) == {"second": WaitReason.HELD_FOR_WINDOW}
