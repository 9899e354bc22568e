"""Units of machines: sold once, whole, to whom the ledger says, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.errors import Malformed
from dovetail.core.inventory import Inventory
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import Ledger, claims, inventories, open_ledger, providers
from dovetail.ledger.bulk import audit
from dovetail.ledger.devices import DEVICE_CLASS, own_uuid
from dovetail.ledger.machines.pool_nodes import NodeGpus
from dovetail.ledger.machines.stock import TypeStock, stock_of
from dovetail.ledger.machines.units import HeldUnit, OtherClaim, UnitClaim, UnitTaken
from dovetail.machines.names import GPU_TYPE
from dovetail.machines.shapes import UnitShape
from dovetail.service.device_claims import DeviceLedger
from dovetail.service.machine_units import MachineLedger
from tests.ledger.world import make, new
from tests.machines.building import machine
from tests.service.machine_world import (
    GROUP,
    cards,
    group_stock,
    guest,
    pool,
    shape,
    sleeper,
    stock,
    stocked,
)
from tests.service.test_claims import counted, recorded

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PARENT = shape("parent")
CHILD = shape("child", root="parent", share=HALF)
MINI = shape("mini", root="parent", share=THIRD)


async def shop(
    ledger: Ledger, *shapes: UnitShape, available: int = 2, devices: Sequence[Device] = ()
) -> MachineLedger:
    """A group with so many units of each type, and a node with room for all."""
    machines = MachineLedger(ledger)
    await machines.enter_node("n1", 64, 2**20, devices)
    await machines.set_stock(GROUP, stock(available, *shapes))
    return machines


def held_by(ledger: Ledger, consumer: str) -> dict[str, dict[str, int]]:
    """Amounts by class and provider's name."""
    rows = ledger.read(
        lambda tx: tx.rows(
            """SELECT p.name, k.name, a.used FROM consumers c
               JOIN allocations a ON a.consumer_id = c.id
               JOIN providers p ON p.id = a.provider_id
               JOIN resource_classes k ON k.id = a.class_id WHERE c.uuid = ?""",
            (consumer,),
        )
    ).result()
    found: dict[str, dict[str, int]] = {}
    for provider, name, used in rows:
        found.setdefault(provider, {})[name] = used
    return found


def generations(ledger: Ledger) -> list[tuple[Any, ...]]:
    return ledger.read(
        lambda tx: tx.rows("SELECT name, generation FROM providers ORDER BY id")
    ).result()


def place(ledger: Ledger, provider: str, amounts: dict[str, int]) -> str:
    """As a client of Placement does."""
    consumer = new()
    claim = Claim(consumer=consumer, project="p", user="u", allocations={provider: amounts})
    ledger.write(lambda tx: claims.replace(tx, [claim])).result()
    return consumer


def release(ledger: Ledger, consumer: str) -> None:
    ledger.write(lambda tx: claims.release(tx, consumer)).result()


# -- units -----------------------------------------------------------------------------------------


async def test_a_unit_takes_of_its_type_and_of_its_node(ledger: Ledger) -> None:
    unit = guest(shape(gpus=2, cpu=6_500, memory=3 * 2**20 + 1))
    machines = await shop(ledger, unit.shape, devices=[pool(8)])
    await machines.move([unit])
    assert held_by(ledger, unit.consumer) == {
        "machines:general": {"CUSTOM_MACHINE_LARGE": 1},
        "n1": {"VCPU": 6, "MEMORY_MB": 3},
        "n1/nvidia.com.gpu": {DEVICE_CLASS: 2},
    }
    since = (await machines.units())[unit.consumer].since
    assert await machines.units() == {
        unit.consumer: HeldUnit(
            consumer=unit.consumer,
            group=GROUP,
            type="large",
            node="n1",
            is_stock=False,
            since=since,
            namespace="team",
            user="ada",
        )
    }
    await machines.release([unit.consumer, new()])
    assert await machines.units() == {}
    assert ledger.read(audit.examine).result().faults == []


async def test_what_is_less_than_a_whole_number_is_rounded_down(ledger: Ledger) -> None:
    unit = guest(shape(cpu=999, memory=100))
    machines = await shop(ledger, unit.shape)
    await machines.move([unit])
    assert held_by(ledger, unit.consumer)["n1"] == {"MEMORY_MB": 1}


async def test_stock_is_told_from_guests_whatever_their_namespace_is_called(ledger: Ledger) -> None:
    machines = await shop(ledger, shape())
    stocked_unit = sleeper(shape())
    posing = guest(shape(), namespace=GROUP, user="large")
    await machines.move([stocked_unit, posing])
    units = await machines.units()
    assert units[stocked_unit.consumer].is_stock
    assert (units[stocked_unit.consumer].namespace, units[stocked_unit.consumer].user) == ("", "")
    assert not units[posing.consumer].is_stock


async def test_no_more_units_are_sold_than_there_are(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), available=2)
    await machines.move([guest(shape()), guest(shape())])
    late = guest(shape())
    with pytest.raises(UnitTaken, match="large is sold out") as refused:
        await machines.move([late])
    assert refused.value.is_sold_out
    assert (refused.value.consumer, refused.value.node) == (late.consumer, "n1")
    assert refused.value.resource == "CUSTOM_MACHINE_LARGE"


async def test_several_units_are_sold_or_none(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), available=2)
    first = sleeper(shape())
    await machines.move([first])
    before = await machines.units()
    with pytest.raises(UnitTaken):
        await machines.move([guest(shape()) for _ in range(3)], [first.consumer])
    assert await machines.units() == before
    await machines.move([guest(shape()) for _ in range(2)], [first.consumer])
    assert len(await machines.units()) == 2


async def test_a_guest_takes_over_the_gpus_of_the_sleeper(ledger: Ledger) -> None:
    two = shape(gpus=2)
    machines = await shop(ledger, two, available=3, devices=cards("a", "b", "c", "d", "e"))
    sleepers = [sleeper(two), sleeper(two)]
    for each in sleepers:
        await machines.move([each])
    buyer = guest(two)
    await machines.move([buyer], [sleepers[1].consumer])
    assert set(held_by(ledger, buyer.consumer)) == {"machines:general", "n1", "n1/c", "n1/d"}
    await machines.release([sleepers[0].consumer])
    await machines.move([guest(shape(gpus=2))])
    assert (await machines.gpus(["n1"]))["n1"] == NodeGpus(healthy=5, free=1, held_by_others=0)


async def test_a_sleepers_gpu_that_failed_is_not_taken_over(ledger: Ledger) -> None:
    one = shape(gpus=1)
    machines = await shop(ledger, one, devices=cards("a", "b"))
    first = sleeper(one)
    await machines.move([first])
    await machines.enter_node("n1", 64, 2**20, cards("a", "b", failed="a"))
    buyer = guest(one)
    await machines.move([buyer], [first.consumer])
    assert "n1/b" in held_by(ledger, buyer.consumer)
    with pytest.raises(UnitTaken, match=f"0 of 1 {GPU_TYPE} are free") as refused:
        await machines.move([guest(one)])
    assert (refused.value.resource, refused.value.is_sold_out) == (GPU_TYPE, False)


async def test_gpus_that_others_hold_are_not_sold(ledger: Ledger) -> None:
    one = shape(gpus=1)
    machines = await shop(ledger, one, devices=cards("a", "b"))
    place(ledger, own_uuid("n1/a"), {DEVICE_CLASS: 1})
    pod = new()
    await DeviceLedger(ledger).claim(pod, "default", "sa", "n1", [DeviceHolding("b", 1)])
    assert await machines.gpus(["n1", "n2"]) == {"n1": NodeGpus(2, 0, 2), "n2": NodeGpus(0, 0, 0)}
    with pytest.raises(UnitTaken):
        await machines.move([guest(one)])
    await DeviceLedger(ledger).release(pod)
    await machines.move([guest(one)])
    assert await machines.gpus(["n1"]) == {"n1": NodeGpus(2, 0, 1)}


async def test_who_holds_the_unit_already_keeps_it_as_it_is(ledger: Ledger) -> None:
    one = shape(gpus=1)
    machines = await shop(ledger, one, available=1, devices=cards("a", "b"))
    await machines.enter_node("n2", 64, 2**20, cards("a", "b", node="n2"))
    unit = guest(one)
    await machines.move([unit])
    before = generations(ledger)
    await machines.move([unit])
    assert generations(ledger) == before
    await machines.move([guest(one, "n2", consumer=unit.consumer)])
    assert (await machines.units())[unit.consumer].node == "n2"
    assert "n2/a" in held_by(ledger, unit.consumer)


async def test_a_consumer_that_holds_anything_else_is_left_alone(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), devices=cards("a"))
    pod = new()
    await DeviceLedger(ledger).claim(pod, "default", "sa", "n1", [DeviceHolding("a", 1)])
    before = held_by(ledger, pod)
    with pytest.raises(OtherClaim), counted(conflict=1):
        await machines.move([guest(shape(), consumer=pod)])
    with pytest.raises(OtherClaim):
        await machines.release([pod])
    assert held_by(ledger, pod) == before


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (guest(shape("other")), "there is no stock of other"),
        (guest(shape(), "elsewhere"), "the ledger does not know the node"),
        (guest(shape(cpu=10**6)), "too little VCPU is left there"),
    ],
)
async def test_what_is_not_there_is_refused_in_words(
    ledger: Ledger, unit: UnitClaim, words: str
) -> None:
    machines = await shop(ledger, shape())
    with pytest.raises(UnitTaken, match=f"of general on node {unit.node}: {words}"):
        await machines.move([unit])
    with pytest.raises(UnitTaken, match=words):
        await machines.adopt(unit)
    assert await machines.units() == {}


async def test_sales_are_counted_and_recorded(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), available=1)
    first, buyer, late = sleeper(shape()), guest(shape()), guest(shape())
    with counted(granted=2):
        await machines.move([first])
        await machines.move([buyer], [first.consumer])
    with counted(refused=1), pytest.raises(UnitTaken):
        await machines.move([late])
    with counted():
        await machines.release([buyer.consumer])
        await machines.move([], [buyer.consumer])
    refused, granted = recorded(ledger, 2)
    assert (granted["consumer"], granted["outcome"]) == (buyer.consumer, "claimed")
    assert granted["words"] == "Took a unit of 'large' of 'general' on node 'n1'."
    assert granted["query"] == "machine=general/large"
    assert granted["chosen"]["allocations"][own_uuid("n1")] == {"VCPU": 4, "MEMORY_MB": 8192}
    assert (refused["consumer"], refused["outcome"]) == (late.consumer, "refused")
    assert "sold out" in refused["words"]


# -- shares ----------------------------------------------------------------------------------------


async def test_shares_and_whole_units_are_sold_from_one_stock(ledger: Ledger) -> None:
    machines = await shop(ledger, PARENT, CHILD, MINI, available=6)
    await machines.set_stock(GROUP, {**stock(6, CHILD, MINI), **stock(2, PARENT)})
    await machines.move([guest(PARENT), guest(CHILD), guest(MINI)])
    assert group_stock(ledger, "parent") == (12, 0, 11)
    with pytest.raises(UnitTaken, match="mini of general on node n1: parent is sold out"):
        await machines.move([guest(MINI)])
    names = sorted(each.type for each in (await machines.units()).values())
    assert names == ["child", "mini", "parent"]


async def test_a_sleeper_of_the_parent_makes_room_for_its_shares(ledger: Ledger) -> None:
    machines = await shop(ledger, PARENT, CHILD, available=1)
    await machines.set_stock(GROUP, {**stock(1, PARENT), **stock(2, CHILD)})
    whole, rest = sleeper(PARENT), sleeper(CHILD)
    await machines.move([whole])
    buyer = guest(CHILD)
    with pytest.raises(UnitTaken):
        await machines.move([buyer])
    await machines.move([buyer, rest], [whole.consumer])
    units = await machines.units()
    assert {units[each.consumer].type for each in (buyer, rest)} == {"child"}
    await machines.move([whole], [buyer.consumer, rest.consumer])


async def test_a_share_of_all_of_it_is_told_from_the_whole(ledger: Ledger) -> None:
    same = shape("alias", root="parent")
    machines = await shop(ledger, PARENT, same, available=2)
    one, other = guest(PARENT), guest(same)
    await machines.move([one, other])
    units = await machines.units()
    assert (units[one.consumer].type, units[other.consumer].type) == ("parent", "alias")
    with pytest.raises(UnitTaken):
        await machines.move([guest(same)])


async def test_units_stay_as_large_when_others_begin_to_share(ledger: Ledger) -> None:
    machines = await shop(ledger, PARENT, available=3)
    first = guest(PARENT)
    await machines.move([first])
    await machines.set_stock(GROUP, stock(3, PARENT, CHILD))
    assert group_stock(ledger, "parent") == (6, 0, 2)
    half = guest(CHILD)
    await machines.move([half])
    await machines.set_stock(GROUP, stock(3, PARENT, MINI))
    assert group_stock(ledger, "parent") == (18, 0, 9), "half of a unit is no number of thirds"
    assert group_stock(ledger, "child") == (1, 1, 1)
    before = generations(ledger)
    await machines.set_stock(GROUP, stock(3, PARENT, MINI))
    assert generations(ledger) == before
    await machines.release([half.consumer])
    await machines.set_stock(GROUP, stock(3, PARENT, MINI))
    assert group_stock(ledger, "parent") == (9, 0, 3)
    await machines.set_stock(GROUP, stock(3, PARENT))
    assert group_stock(ledger, "parent") == (3, 0, 1)
    assert (await machines.units())[first.consumer].type == "parent"
    assert ledger.read(audit.examine).result().faults == []


# -- stock -----------------------------------------------------------------------------------------


def test_the_stock_of_a_specification() -> None:
    assert stock_of(machine().spec)["compute-medium"] == TypeStock(4, "compute-medium", Fraction(1))


async def test_lowered_stock_keeps_what_is_held_and_sells_nothing_more(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), available=3)
    units = [sleeper(shape()) for _ in range(3)]
    await machines.move(units)
    await machines.set_stock(GROUP, stock(1, shape()))
    assert group_stock(ledger, "large") == (3, 2, 3)
    assert ledger.read(audit.examine).result().faults == []
    await machines.release([units[0].consumer])
    with pytest.raises(UnitTaken):
        await machines.move([guest(shape())])
    await machines.move([guest(shape())], [units[1].consumer])
    await machines.release([units[2].consumer])
    await machines.set_stock(GROUP, stock(1, shape()))
    assert group_stock(ledger, "large") == (1, 0, 1)
    await machines.set_stock(GROUP, stock(0, shape()))
    assert group_stock(ledger, "large") == (1, 1, 1)


async def test_a_type_that_is_gone_goes_when_nothing_holds_it(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), shape("small"))
    unit = guest(shape())
    await machines.move([unit])
    await machines.set_stock(GROUP, {})
    assert stocked(ledger, "machines:general") == {"CUSTOM_MACHINE_LARGE": (1, 1, 1)}
    assert not await machines.drop_group(GROUP)
    assert await machines.groups() == {GROUP}
    await machines.release([unit.consumer])
    assert await machines.drop_group(GROUP)
    assert await machines.groups() == frozenset()
    assert [name for name, _ in generations(ledger)] == ["n1"]
    assert await machines.drop_group(GROUP)


async def test_stock_that_is_set_already_is_not_touched(ledger: Ledger) -> None:
    machines = await shop(ledger, PARENT, CHILD)
    await machines.move([guest(CHILD)])
    before = generations(ledger)
    await machines.set_stock(GROUP, stock(2, PARENT, CHILD))
    assert generations(ledger) == before


async def test_a_bound_guest_is_recorded_beyond_the_stock(ledger: Ledger) -> None:
    machines = await shop(ledger, PARENT, CHILD, available=1)
    await machines.move([guest(PARENT)])
    bound = guest(CHILD)
    await machines.adopt(bound)
    assert group_stock(ledger, "parent") == (3, 1, 3)
    assert group_stock(ledger, "child") == (1, 0, 1)
    await machines.adopt(guest(CHILD))
    assert group_stock(ledger, "parent") == (4, 2, 4)
    assert group_stock(ledger, "child") == (2, 1, 2)
    before = await machines.units()
    await machines.adopt(bound)
    assert await machines.units() == before
    with pytest.raises(UnitTaken):
        await machines.move([guest(CHILD)])
    assert ledger.read(audit.examine).result().faults == []


async def test_a_bound_guest_does_not_get_what_others_hold(ledger: Ledger) -> None:
    one = shape(gpus=1)
    machines = await shop(ledger, one, devices=[pool(1)])
    place(ledger, own_uuid("n1/nvidia.com.gpu"), {DEVICE_CLASS: 1})
    with pytest.raises(UnitTaken, match=f"0 of 1 {GPU_TYPE} are free"):
        await machines.adopt(guest(one))
    assert group_stock(ledger, "large") == (2, 0, 0)


# -- nodes -----------------------------------------------------------------------------------------


async def test_a_node_says_what_it_has_and_is_touched_only_if_that_changed(ledger: Ledger) -> None:
    machines = MachineLedger(ledger)
    await machines.enter_node("n1", 40, 1024, [pool(4)])
    assert stocked(ledger, "n1") == {"VCPU": (40, 0, 0), "MEMORY_MB": (1024, 0, 0)}
    assert await machines.nodes() == {"n1"}
    before = generations(ledger)
    await machines.enter_node("n1", 40, 1024, [pool(4)])
    assert generations(ledger) == before
    await machines.enter_node("n1", 39, 1024, [pool(3)])
    assert stocked(ledger, "n1")["VCPU"] == (39, 0, 0)
    assert stocked(ledger, "n1/nvidia.com.gpu") == {DEVICE_CLASS: (3, 0, 0)}
    await machines.leave_node("n1")
    assert generations(ledger) == []
    await machines.leave_node("n1")
    assert await machines.nodes() == frozenset()


async def test_what_others_put_on_a_node_is_left_as_it_is(ledger: Ledger) -> None:
    host = make(ledger, "n1", VCPU=Inventory(total=8, allocation_ratio=16.0))
    await DeviceLedger(ledger).publish("n1", [pool(4)])
    machines = MachineLedger(ledger)
    for _ in range(2):
        await machines.enter_node("n1", 40, 1024, [pool(4)])
        assert stocked(ledger, "n1") == {"VCPU": (8, 0, 0), "MEMORY_MB": (1024, 0, 0)}
    theirs = Inventory(total=512, reserved=100)
    ledger.write(
        lambda tx: inventories.change(tx, providers.get(tx, host.uuid), "MEMORY_MB", theirs)
    ).result()
    await machines.enter_node("n1", 40, 2048, [pool(4)])
    assert stocked(ledger, "n1")["MEMORY_MB"] == (512, 100, 0)
    await machines.leave_node("n1")
    assert stocked(ledger, "n1") == {"VCPU": (8, 0, 0), "MEMORY_MB": (512, 100, 0)}
    assert stocked(ledger, "n1/nvidia.com.gpu") == {DEVICE_CLASS: (4, 0, 0)}
    assert await machines.nodes() == frozenset()


async def test_a_node_that_left_keeps_what_is_held(ledger: Ledger) -> None:
    unit = guest(shape(gpus=1))
    machines = await shop(ledger, unit.shape, devices=cards("a", "b"))
    await machines.move([unit])
    assert not await machines.leave_node("n1")
    assert held_by(ledger, unit.consumer)["n1/a"] == {DEVICE_CLASS: 1}
    assert stocked(ledger, "n1/b") == {}
    assert await machines.gpus(["n1"]) == {"n1": NodeGpus(0, 0, 0)}
    assert await machines.nodes() == {"n1"}
    await machines.release([unit.consumer])
    assert await machines.leave_node("n1")
    assert await machines.nodes() == frozenset()
    assert "n1" not in [name for name, _ in generations(ledger)]


async def test_a_node_that_no_ledger_can_have_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Malformed, match="161 characters"):
        await MachineLedger(ledger).enter_node("n" * 161, 1, 1, [])
    assert generations(ledger) == []


# -- several ---------------------------------------------------------------------------------------


async def test_what_concerns_machines_is_told(ledger: Ledger) -> None:
    machines = await shop(ledger, shape(), devices=[pool(2)])
    other = make(ledger, "elsewhere", VCPU=8)
    cursor, changed = await machines.changes(None)
    assert changed
    held = place(ledger, other.uuid, {"VCPU": 1})
    cursor, changed = await machines.changes(cursor)
    assert not changed
    unit = guest(shape())
    await machines.move([unit])
    cursor, changed = await machines.changes(cursor)
    assert changed
    taken = place(ledger, own_uuid("n1/nvidia.com.gpu"), {DEVICE_CLASS: 1})
    cursor, changed = await machines.changes(cursor)
    assert changed
    release(ledger, held)
    cursor, changed = await machines.changes(cursor)
    assert not changed
    release(ledger, taken)
    cursor, changed = await machines.changes(cursor)
    assert changed
    assert not (await machines.changes(cursor))[1]


@pytest.mark.parametrize("names", [("east", "west"), ("east", ""), ("machines:", "")])
async def test_clusters_that_share_a_ledger_do_not_see_each_other(
    ledger: Ledger, names: tuple[str, str]
) -> None:
    east, west = (MachineLedger(ledger, name) for name in names)
    for machines in (east, west):
        await machines.enter_node(GROUP, 64, 2**20, [pool(1)])
        await machines.set_stock(GROUP, stock(1, shape(gpus=1)))
    unit = guest(shape(gpus=1), node=GROUP)
    await east.move([unit])
    assert list(await east.units()) == [unit.consumer]
    assert await west.units() == {}
    assert await west.gpus([GROUP]) == {GROUP: NodeGpus(1, 1, 0)}
    for machines in (east, west):
        assert await machines.nodes() == {GROUP}
        assert await machines.groups() == {GROUP}
    await west.move([guest(shape(gpus=1), node=GROUP)])


async def test_of_replicas_that_race_for_the_last_unit_one_wins(database_url: str) -> None:
    ledgers = [open_ledger(database_url) for _ in range(2)]
    try:
        replicas = [MachineLedger(each) for each in ledgers]
        one = shape(gpus=1)
        await replicas[0].enter_node("n1", 64, 2**20, cards("a", "b"))
        for _ in range(10):
            await replicas[0].set_stock(GROUP, stock(1, one))
            last = sleeper(one)
            await replicas[0].move([last])
            buyers = [guest(one) for _ in range(8)]
            ends = await asyncio.gather(
                *(replicas[at % 2].move([each], [last.consumer]) for at, each in enumerate(buyers)),
                return_exceptions=True,
            )
            assert sum(end is None for end in ends) == 1
            assert all(isinstance(end, UnitTaken) for end in ends if end is not None)
            (winner,) = await replicas[1].units()
            await replicas[1].release([winner])
        assert ledgers[0].read(audit.examine).result().faults == []
    finally:
        for each in ledgers:
            each.close()
