"""Asks that take long to decide: nothing breaks, nobody waits, and what is said is true."""

from __future__ import annotations

import random

import pytest

from dovetail.core.device import Device
from dovetail.devices.allocation import class_counts, fit_cache
from dovetail.devices.allocation import nested as nesting
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus, DeviceRequest
from dovetail.devices.allocation.solver.search import MOST_STEPS, SearchGivenUp, assign
from dovetail.devices.allocation.strategies import Strategy
from tests.devices.fleets import device, inventory, nested, selecting

SINGLE = selecting("a", single=True)


def bins(
    seed: int, count: int = 8, parts: int = 3, spare: int = 0
) -> tuple[list[Device], list[DeviceRequest]]:
    """Devices of different sizes, and asks that fill them but for what is to spare."""
    chance = random.Random(seed)
    devices: list[Device] = []
    requests: list[DeviceRequest] = []
    for number in range(count):
        sizes = [chance.randrange(20, 60) for _ in range(parts)]
        name = f"d{chance.randrange(10**6)}"
        devices.append(device(name, "a", units=sum(sizes) + spare, slot=str(number)))
        requests += [
            DeviceRequest("a", size, str(len(requests) + at)) for at, size in enumerate(sizes)
        ]
    return devices, requests


def test_what_was_given_up_is_not_called_impossible() -> None:
    devices, requests = bins(seed=4)
    kept = inventory([SINGLE], devices, most_steps=2000)
    assert kept.fits(requests).tolist() == [False]
    assert kept.choose("n1", requests) is None
    assert kept.why_not("n1", requests) == (
        "enough of each class is free, but no devices were found for all together: a; the search"
        " was given up, since there are too many ways to try"
    )


@pytest.mark.parametrize("strategy", Strategy)
def test_where_asks_are_said_to_fit_devices_are_found(strategy: Strategy) -> None:
    """Whatever the devices are called and the strategy prefers: both decide how long it takes."""
    fitting = []
    for seed in range(12):
        devices, requests = bins(seed, count=6, parts=2, spare=5 * (seed % 4))
        requests.sort(key=lambda each: -each.count)
        kept = inventory([SINGLE], devices, most_steps=350)
        fitting.append(bool(kept.fits(requests, strategy)[0]))
        if fitting[-1]:
            assert kept.choose("n1", requests, strategy) is not None
    # Else this would show nothing.
    assert any(fitting)
    assert not all(fitting)


def test_many_nodes_that_are_too_hard_share_the_steps_of_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[int] = []

    def too_hard(*_: object, most_steps: int, **__: object) -> None:
        spent.append(most_steps)
        raise SearchGivenUp

    monkeypatch.setattr("dovetail.devices.allocation.choose.assign", too_hard)
    nodes = [[device("d", "a", units=9 + number)] for number in range(100)]
    kept = inventory([SINGLE], *nodes)
    assert not kept.fits([DeviceRequest("a", 9)]).any()
    assert len(spent) == 100
    assert sum(spent) <= 2 * MOST_STEPS + 100 * fit_cache.LEAST_STEPS


def test_requested_is_from_0_to_allocatable_even_if_counting_was_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All units at once are too hard to count here; those that are left are not."""

    def impatient_assign(places: list[object], *rest: object, **more: object) -> object:
        if len(places) > 2:
            raise SearchGivenUp
        return assign(places, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(nesting, "assign", impatient_assign)
    kept = inventory(
        [SINGLE, nested("pair", {"a": 2})], [device(f"d{at}", "a", units=2) for at in "012"]
    )
    found = kept.choose("n1", [DeviceRequest("a", 2)])
    assert found is not None
    kept.hold("pod", "n1", found)
    assert kept.status("pair") == ClassStatus(2, 0)


def test_thousands_of_units_that_agree_in_a_key_are_found_at_once() -> None:
    pools = [device(f"d{numa}", "a", units=10_001, numa=numa) for numa in "01"]
    kept = inventory([selecting("a"), nested("pair", {"a": 2}, "numa")], pools)
    assert kept.status("pair") == ClassStatus(10_000, 0)
    found = kept.choose("n1", [DeviceRequest("pair", 9_000)])
    assert found is not None
    assert {each.device: each.units for each in found} == {"d0": 10_000, "d1": 8_000}


def test_counts_of_states_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_counts, "SPARE_NESTED_COUNTS", 10)
    kept: DeviceInventory = inventory(
        [selecting("a"), nested("pair", {"a": 2})], [device("d", "a", units=500)]
    )
    for units in range(1, 200):
        found = kept.choose("n1", [DeviceRequest("a", units)])
        assert found is not None
        kept.hold("pod", "n1", found)
        assert kept.status("pair").available == (500 - units) // 2
        assert len(kept._counts._nested) <= 20
