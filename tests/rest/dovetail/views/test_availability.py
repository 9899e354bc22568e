"""Availability of classes: what is left of each, on how many nodes, and what two have in common."""

from __future__ import annotations

from typing import Any

from tests.rest.client import Client
from tests.rest.dovetail.test_classes import LARGE, define, fleet, spec

__all__ = ["fleet"]

AVAILABILITY = "/dovetail/v1/classes/availability"
ALL = spec(("Kind", "In", "nvidia-gpu"))
SMALL = spec(("Kind", "In", "nvidia-gpu"), ("memory", "Lt", "30G"))


def test_classes_and_what_they_share(fleet: Client) -> None:
    for name, given in (("all", ALL), ("large", LARGE), ("small", SMALL)):
        assert define(fleet, name, given).status_code == 201
    found = fleet.get(AVAILABILITY).json()
    left = {
        each["name"]: (each["available"], each["nodes"], each["nodes_available"])
        for each in found["classes"]
    }
    assert left == {"all": (3, 2, 2), "large": (1, 1, 1), "small": (2, 1, 1)}
    shared: list[Any] = [
        (each["classes"], each["units"], each["available"]) for each in found["overlaps"]
    ]
    assert shared == [(["all", "large"], 2, 1), (["all", "small"], 2, 2)]


def test_without_classes_there_is_nothing_to_tell(client: Client) -> None:
    assert client.get(AVAILABILITY).json() == {"classes": [], "overlaps": []}
