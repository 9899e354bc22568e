"""Conditions: the time is that of the last change of status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from dovetail.kube.runtime.conditions import as_documents, timestamp, with_condition
from dovetail.podfit.objects import Condition

OTHER = Condition(type="Other", status="True", last_transition_time="t0")


def test_a_new_condition_comes_last_and_begins_now() -> None:
    found = with_condition([OTHER], "Valid", True, "Fine", "all well", generation=3, now="t1")
    assert found == (
        OTHER,
        Condition(
            type="Valid",
            status="True",
            reason="Fine",
            message="all well",
            observed_generation=3,
            last_transition_time="t1",
        ),
    )


def test_found_again_it_keeps_its_time_and_place_whatever_the_words() -> None:
    first = with_condition([], "Valid", False, "Bad", "no", generation=1, now="t1")
    again = with_condition((*first, OTHER), "Valid", False, "Worse", "no!", generation=2, now="t2")
    assert [each.type for each in again] == ["Valid", "Other"]
    assert again[0].last_transition_time == "t1"
    assert (again[0].reason, again[0].message, again[0].observed_generation) == ("Worse", "no!", 2)


def test_another_status_begins_now() -> None:
    first = with_condition([], "Valid", False, "Bad", "no", generation=1, now="t1")
    for status, word in ((True, "True"), (None, "Unknown")):
        (changed,) = with_condition(first, "Valid", status, "R", "", generation=1, now="t2")
        assert (changed.status, changed.last_transition_time) == (word, "t2")


def test_they_go_out_as_the_api_names_them() -> None:
    found = with_condition([], "Valid", True, "Fine", "", generation=3, now="t1")
    assert as_documents(found) == [
        {
            "type": "Valid",
            "status": "True",
            "reason": "Fine",
            "message": "",
            "observedGeneration": 3,
            "lastTransitionTime": "t1",
        }
    ]


def test_times_are_utc() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 999, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(at) == "2026-01-02T01:04:05Z"
    assert timestamp(at.astimezone(UTC)) == "2026-01-02T01:04:05Z"
