"""One GPU, three ways to it: Placement's API, a resource class, a unit of a machine. One holder."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import permutations

import msgspec
import pytest

from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import Ledger
from dovetail.ledger.bulk import audit
from dovetail.ledger.devices import DEVICE_CLASS, own_uuid
from dovetail.ledger.machines.units import UnitTaken
from dovetail.service.claims import DeviceTaken
from dovetail.service.device_claims import DeviceLedger
from dovetail.service.machine_units import MachineLedger
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import new
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.service.machine_world import GROUP, cards, guest, pool, shape, sleeper, stock

WAYS = ("placement", "class", "machine")
POOL = "nvidia.com.gpu"


class SharedNode:
    """A node with GPUs, and all who want them."""

    def __init__(self, ledger: Ledger, client: Client, devices: list[Device]) -> None:
        self._ledger, self.client = ledger, client
        self._classes, self.machines = DeviceLedger(ledger), MachineLedger(ledger)
        self.units = {each.name: each.units for each in devices}
        client.run(self.machines.enter_node("n1", 64, 2**20, devices))
        client.run(self.machines.set_stock(GROUP, stock(99, shape(gpus=1))))

    def take(self, way: str, device: str) -> str:
        """As `buy`."""
        return self.client.run(self.buy(way, device))

    async def buy(self, way: str, device: str) -> str:
        """The consumer that has a GPU now; empty if nobody does. A unit takes whichever is free."""
        ways: dict[str, Callable[[str, str], Awaitable[bool]]] = {
            "placement": self._by_placement,
            "class": self._by_class,
            "machine": self._by_machine,
        }
        consumer = new()
        return consumer if await ways[way](consumer, device) else ""

    async def _by_placement(self, consumer: str, device: str) -> bool:
        body = {
            "allocations": {own_uuid(f"n1/{device}"): {"resources": {DEVICE_CLASS: 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        answer = await self.client.send("PUT", f"/allocations/{consumer}", body)
        assert answer.status_code in {204, 409}
        return answer.status_code == 204

    async def _by_class(self, consumer: str, device: str) -> bool:
        with suppress(DeviceTaken):
            holding = [DeviceHolding(device, 1, "gpu")]
            await self._classes.claim(consumer, "ns", "sa", "n1", holding)
            return True
        return False

    async def _by_machine(self, consumer: str, device: str) -> bool:
        with suppress(UnitTaken):
            await self.machines.move([guest(shape(gpus=1), consumer=consumer)])
            return True
        return False

    def give_back(self, way: str, consumer: str) -> None:
        if way == "placement":
            assert self.client.call("DELETE", f"/allocations/{consumer}").status_code == 204
        elif way == "class":
            assert self.client.run(self._classes.release(consumer))
        else:
            self.client.run(self.machines.release([consumer]))

    def holders(self) -> dict[str, Counter[str]]:
        """Units by consumer by device."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.units}
        for consumer, held in self.client.run(self._classes.holders()).items():
            for name, units in held.devices.items():
                found[name][consumer] = units
        return found

    def check(self) -> None:
        assert self._ledger.read(audit.examine).result().faults == []
        for name, holders in self.holders().items():
            assert holders.total() <= self.units[name]


Share = Callable[[list[Device]], SharedNode]


@pytest.fixture
def share(serve: Make, ledger: Ledger) -> Share:
    client = serve(ledger=ledger, keeper=SnapshotKeeper(ledger))
    return lambda devices: SharedNode(ledger, client, devices)


@pytest.mark.parametrize("order", list(permutations(WAYS)))
@pytest.mark.parametrize("devices", [[pool(1)], cards(POOL)], ids=["pool", "card"])
def test_who_comes_first_has_it_and_the_next_when_it_is_given_back(
    share: Share, devices: list[Device], order: tuple[str, ...]
) -> None:
    node = share(devices)
    for way in order:
        holder = node.take(way, POOL)
        assert holder
        assert not any(node.take(other, POOL) for other in WAYS)
        assert node.holders() == {POOL: Counter({holder: 1})}
        node.give_back(way, holder)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("devices", [[pool(4)], cards("a", "b", "c", "d")], ids=["pool", "cards"])
def test_whoever_comes_and_goes_no_gpu_has_two_holders(
    share: Share, devices: list[Device], seed: int
) -> None:
    node, chance = share(devices), random.Random(seed)
    held: dict[str, str] = {}
    refused = 0
    for _ in range(60):
        if held and chance.random() < 0.4:
            consumer = chance.choice(sorted(held))
            node.give_back(held.pop(consumer), consumer)
        else:
            way, device = chance.choice(WAYS), chance.choice(sorted(node.units))
            before = node.holders()
            consumer = node.take(way, device)
            taken = sum(each.total() for each in before.values())
            is_free = before[device].total() < node.units[device]
            has_room = taken < sum(node.units.values()) if way == "machine" else is_free
            assert bool(consumer) == has_room
            if consumer:
                held[consumer] = way
            else:
                refused += 1
        node.check()
        assert sorted(held) == sorted(set().union(*node.holders().values()))
    assert refused


@pytest.mark.parametrize("devices", [[pool(4)], cards("a", "b", "c", "d")], ids=["pool", "cards"])
def test_of_all_who_come_at_once_as_many_are_served_as_there_are_gpus(
    share: Share, devices: list[Device]
) -> None:
    node = share(devices)
    names = [each.name for each in devices for _ in range(each.units)]

    async def rush() -> list[str]:
        orders = [node.buy(way, name) for name in names for way in WAYS]
        return await asyncio.gather(*orders)

    served = {each for each in node.client.run(rush()) if each}
    assert len(served) == 4
    assert set().union(*node.holders().values()) == served
    node.check()


def test_a_sleeper_that_makes_way_makes_it_for_its_guest_alone(share: Share) -> None:
    node = share(cards("a"))
    client = node.client
    stocked = sleeper(shape(gpus=1))
    client.run(node.machines.move([stocked]))
    buyer = guest(shape(gpus=1))
    client.run(node.machines.move([buyer], [stocked.consumer]))
    assert not any(node.take(way, "a") for way in WAYS)
    with pytest.raises(UnitTaken):
        client.run(node.machines.move([msgspec.structs.replace(buyer, consumer=new())]))
    assert node.holders() == {"a": Counter({buyer.consumer: 1})}
