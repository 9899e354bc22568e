"""All holders and all who wait, beside the numbers of each type."""

from __future__ import annotations

from dovetail.machines.preview.listing import listing_of
from tests.machines.lab import Lab, kind, small


def test_numbers_holders_and_those_who_wait() -> None:
    lab = Lab(small(kind("small", available=2, maxDuration="8h"), nodes={"n1": "small"}))
    lab.sold("first", "small")
    lab.ask("second", "small", minutes_ago=30)
    lab.ask("third", "small", minutes_ago=20)
    found = listing_of(lab.snapshot())
    assert (found.machine, found.group) == ("general-machine", "general-machine")
    assert (found.generation, found.accepted_generation) == (1, 1)
    assert found.types == [
        {"name": "small", "maximum": 2, "reserved": 1, "used": 1, "waiting": 2, "free": 0}
    ]
    assert found.holders == [
        {
            "type": "small",
            "namespace": "team",
            "pod": "first",
            "user": "ada",
            "node": "n1",
            "since": "2026-11-16T12:00:00Z",
            "expires": "2026-11-16T20:00:00Z",
        }
    ]
    assert [(each["pod"], each["reason"]) for each in found.waiting] == [
        ("second", "BeingSold"),
        ("third", "SoldOut"),
    ]
    assert {each.type: each.status for each in found.conditions}["Accepted"]


def test_none_is_left_out_however_many_there_are() -> None:
    lab = Lab(small(kind("small", cpu=1, available=1), nodes={"n1": "small"}))
    lab.sold("holder", "small")
    for number in range(150):
        lab.ask(f"guest-{number}", "small")
    assert len(listing_of(lab.snapshot()).waiting) == 150
    assert len(lab.plan().status["waiting"]) == 100
