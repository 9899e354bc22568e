"""The status of a Machine: how much of its holders and its line is told."""

from __future__ import annotations

from collections import Counter

import msgspec

from tests.machines.building import node
from tests.machines.lab import Lab, kind, small

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
