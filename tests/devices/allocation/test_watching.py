"""An inventory that only watched, and was never asked, answers like one that starts afresh."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus, DeviceHolding, DeviceRequest
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.documents import DeviceClass
from tests.devices import fleets
from tests.devices.allocation.test_inventory_properties import World, happen
from tests.devices.fleets import HOLDERS, NODES

KIND = Expression("Kind", Operator.IN, ("gpu",))
MEMORY = Expression("mem", Operator.EXISTS)
NAMES = (*fleets.LEAVES, "kind", "name", "inner", "outer")


def test_a_class_by_a_new_key_that_comes_and_goes_unasked_costs_no_devices() -> None:
    kept = DeviceInventory(Rows())
    kept.set_class(DeviceClass("gpu", ((KIND,),)))
    kept.set_class(DeviceClass("large", ((KIND, MEMORY),)))
    kept.set_node("n1", [fleets.device(f"d{number}") for number in range(12)])
    kept.drop_class("large")
    assert kept.status("gpu") == ClassStatus(12, 0)
    assert kept.choose("n1", [DeviceRequest("gpu", 12)]) is not None


class Watched:
    """What two inventories were told, one of them by every event since the beginning."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.kept = DeviceInventory(self.rows)
        self.world = World()

    def fresh(self) -> DeviceInventory:
        found = DeviceInventory(self.rows)
        for each in self.world.classes.values():
            found.set_class(each)
        for node, devices in self.world.nodes.items():
            found.set_node(node, devices)
        for holder, (node, holdings) in self.world.holders.items():
            found.hold(holder, node, holdings)
        return found

    def check(self, requests: list[DeviceRequest]) -> None:
        kept, fresh = self.kept, self.fresh()
        for name in self.world.classes:
            assert kept.status(name) == fresh.status(name)
            assert kept.free(name).tolist() == fresh.free(name).tolist()
        for strategy in Strategy:
            assert kept.fits(requests, strategy).tolist() == fresh.fits(requests, strategy).tolist()
            for node in NODES:
                chosen = kept.choose(node, requests, strategy)
                assert chosen == fresh.choose(node, requests, strategy)
        assert {each: kept.holdings_of(each) for each in HOLDERS} == {
            each: fresh.holdings_of(each) for each in HOLDERS
        }


def a_device(rng: Random, number: int) -> Device:
    flags = "".join(flag for flag in fleets.LEAVES if rng.random() < 0.4)
    values = {key: rng.choice("01") for key in ("numa", "slot") if rng.random() < 0.7}
    return fleets.device(
        f"d{number}",
        flags,
        units=rng.randint(1, 3),
        healthy=rng.random() < 0.9,
        **values,
    )


def a_class(rng: Random) -> DeviceClass:
    """Few of the keys are looked at by many classes, so that keys come and go."""
    match rng.choice(("leaf", "kind", "name", "inner", "outer")):
        case "leaf":
            return fleets.selecting(rng.choice(fleets.LEAVES), single=rng.random() < 0.2)
        case "kind":
            return DeviceClass("kind", ((KIND, MEMORY), (KIND,))[rng.randint(0, 1) :])
        case "name":
            name = Expression("Name", Operator.IN, (rng.choice(("d0", "d1")),))
            return DeviceClass("name", ((name,),))
        case "inner":
            same = rng.choice(((), ("numa",), ("slot",)))
            return fleets.nested("inner", {rng.choice(fleets.LEAVES): rng.randint(1, 2)}, *same)
        case _:
            return fleets.nested("outer", {"inner": 1, rng.choice(fleets.LEAVES): 1})


def an_event(rng: Random) -> tuple[object, ...]:
    """Nothing is asked for in between."""
    node, holder = rng.choice(NODES), rng.choice(HOLDERS)
    match rng.choice(("class", "class", "no class", "no class", "node", "no node", "hold", "free")):
        case "class":
            return "set_class", a_class(rng)
        case "no class":
            return "drop_class", rng.choice(NAMES)
        case "node":
            devices = tuple(a_device(rng, number) for number in range(rng.randint(0, 4)))
            return "set_node", node, devices
        case "no node":
            return "drop_node", node
        case "hold":
            held = DeviceHolding(f"d{rng.randint(0, 3)}", rng.randint(1, 2))
            return "hold", holder, node, (held,)
        case _:
            return "release", holder


def requests(rng: Random) -> list[DeviceRequest]:
    names = rng.sample(NAMES, rng.randint(1, 2))
    return [DeviceRequest(name, rng.randint(1, 2)) for name in names]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_whoever_only_watched_answers_like_a_fresh_start(seed: int) -> None:
    """It watches for an hour of changes, leads for a moment, and watches on."""
    rng, watched = Random(seed), Watched()
    for _ in range(8):
        for _ in range(rng.choice((1, 4, 4, 60))):
            event = an_event(rng)
            happen(event, watched.kept, watched.world)
            if event[0] == "drop_node":
                watched.rows.drop(str(event[1]))
        watched.check(requests(rng))
