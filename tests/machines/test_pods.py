"""What the planner reads of pods."""

from __future__ import annotations

import msgspec

from dovetail.machines.pods import line_order
from dovetail.podfit.objects import Pod


def pod(name: str, priority: int, second: int, version: str) -> Pod:
    meta = {
        "name": name,
        "uid": name,
        "creationTimestamp": f"2026-11-16T12:00:{second:02}Z",
        "resourceVersion": version,
    }
    return msgspec.convert({"metadata": meta, "spec": {"priority": priority}}, Pod)


def test_the_line_is_by_priority_then_age_within_a_second_too() -> None:
    line = [
        pod("urgent", 7, 5, "1001"),
        pod("first", 0, 1, "1000"),
        pod("of-one-second", 0, 2, "998"),
        pod("and-after-it", 0, 2, "999"),
        pod("and-then", 0, 2, "1002"),
        pod("late", 0, 3, "997"),
    ]
    by_name = sorted(line, key=lambda each: each.metadata.name)
    assert sorted(by_name, key=line_order) == line
