"""What is in use of some hosts is what is in use of them among all."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dovetail.service.fleet_map.layout import FleetLayout, HostGroups, LaneColumns
from dovetail.service.fleet_map.usage import (
    FleetUsage,
    all_in_use,
    fragmentation,
    in_use_of,
    used_by_host,
)

HOSTS, CLASSES = 40, 3


def random_layout(choice: random.Random) -> tuple[FleetLayout, FleetUsage]:
    """Hosts with up to six lanes each; some have none."""
    host = sorted(choice.choices(range(HOSTS), k=3 * HOSTS))
    count = len(host)
    capacity = np.array([choice.randint(0, 9) for _ in host], np.int64)
    used = np.array([choice.randint(0, int(most)) for most in capacity], np.int64)
    lanes = LaneColumns(
        host=np.array(host, np.int32),
        kind=np.zeros(count, np.int32),
        class_=np.array([choice.randrange(CLASSES) for _ in host], np.int32),
        names=[""] * count,
        capacity=capacity,
        offered=capacity,
        entries=(),
        order=np.arange(count),
    )
    layout = FleetLayout(
        token=object(),
        digest="",
        trees=np.arange(HOSTS, dtype=np.int32),
        root_ids=list(range(HOSTS)),
        uuids=[""] * HOSTS,
        names=[""] * HOSTS,
        state=np.zeros(HOSTS, np.int32),
        groups=dict[str, HostGroups](),
        classes=["A", "B", "C"],
        capacity=[],
        lanes=lanes,
    )
    return layout, FleetUsage(used, "")


@pytest.mark.parametrize("seed", range(20))
def test_some_hosts_are_what_they_are_among_all(seed: int) -> None:
    choice = random.Random(seed)
    layout, usage = random_layout(choice)
    some = np.array(sorted(choice.sample(range(HOSTS), choice.randint(1, HOSTS))), np.int32)
    everything, part = all_in_use(layout, usage), in_use_of(layout, usage, some)
    for of_all, of_some in zip(used_by_host(everything), used_by_host(part), strict=True):
        assert of_some.tolist() == of_all[some].tolist()
    assert fragmentation(part).tolist() == fragmentation(everything)[some].tolist()


def test_fragmentation_is_a_share() -> None:
    for seed in range(20):
        found = fragmentation(all_in_use(*random_layout(random.Random(seed))))
        assert ((found >= 0) & (found <= 100)).all()
