"""Units of machines whatever happens in whatever order: never more than there is, in any share.

A model says what should be possible; replicas that race are held to the same books.
"""

from __future__ import annotations

import asyncio
import random
import uuid as uuids
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from dovetail.core.claim import Claim
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import Ledger, Transaction, claims, open_ledger
from dovetail.ledger.bulk import audit
from dovetail.ledger.devices import DEVICE_CLASS, own_uuid
from dovetail.ledger.machines.stock import TypeStock
from dovetail.ledger.machines.units import UnitClaim, UnitTaken
from dovetail.service.claims import AlreadyClaimed, DeviceTaken
from dovetail.service.device_claims import DeviceLedger
from dovetail.service.machine_units import MachineLedger
from tests.service.machine_world import GROUP, cards, guest, pool, shape, stock
from tests.support import databases

T = TypeVar("T")

SHAPES = {
    each.name: each
    for each in (
        shape("whole", gpus=2),
        shape("half", gpus=1, root="whole", share=Fraction(1, 2)),
        shape("third", root="whole", share=Fraction(1, 3)),
        shape("all", gpus=2, root="whole"),
        shape("plain"),
    )
}
NODES = {"n1": [pool(3)], "n2": cards("a", "b", "c", node="n2")}
GPUS_OF_A_NODE = 3
PODS = tuple(str(uuids.UUID(int=number + 1)) for number in range(6))
OTHERS = tuple(str(uuids.UUID(int=number + 100)) for number in range(2))

a_type, a_node = st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(NODES))
a_pod, an_other = st.sampled_from(PODS), st.sampled_from(OTHERS)
some_stock = st.one_of(
    st.fixed_dictionaries(dict.fromkeys(SHAPES, st.integers(1, 4))),
    st.dictionaries(a_type, st.integers(0, 4), max_size=5),
)
some_units = st.dictionaries(
    a_pod, st.tuples(a_type, a_node, st.booleans()), min_size=1, max_size=3
)


def done(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def unit(pod: str, machine_type: str, node: str, is_stock: bool) -> UnitClaim:
    return UnitClaim(
        consumer=pod,
        group=GROUP,
        shape=SHAPES[machine_type],
        node=node,
        namespace="" if is_stock else "team",
        user="" if is_stock else "ada",
    )


def totals(stock: dict[str, int]) -> dict[str, TypeStock]:
    """A type is sold with its root only, as specifications are."""
    return {
        name: TypeStock(stock[name], each.root, each.share)
        for name, each in SHAPES.items()
        if name in stock and each.root in stock
    }


class AnyOrderOfUnits(RuleBasedStateMachine):
    """One ledger for all examples, emptied: making tables takes longer than using them."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.machines = MachineLedger(self.ledger)
        self.stock: dict[str, TypeStock] = {}
        self.units: dict[str, tuple[str, str, bool]] = {}
        self.others: dict[str, tuple[str, str]] = {}
        self.cursor: str | None = None

    @initialize()
    def empty(self) -> None:
        def clear(tx: Transaction) -> None:
            for table in ("allocations", "consumers", "inventories", "provider_attributes"):
                tx.run(f"DELETE FROM {table}")
            tx.run("DELETE FROM providers WHERE parent_id IS NOT NULL")
            tx.run("DELETE FROM providers")

        self.ledger.write(clear).result()
        for node, devices in NODES.items():
            done(self.machines.enter_node(node, 1000, 2**20, devices))

    @rule(stock=some_stock)
    def set_stock(self, stock: dict[str, int]) -> None:
        self.stock = totals(stock)
        done(self.machines.set_stock(GROUP, self.stock))

    @rule(pods=st.sets(a_pod, max_size=3))
    def release(self, pods: set[str]) -> None:
        done(self.machines.move([], pods))
        self.units = {pod: each for pod, each in self.units.items() if pod not in pods}

    @rule(taken=some_units, released=st.sets(a_pod, max_size=3))
    def move(self, taken: dict[str, tuple[str, str, bool]], released: set[str]) -> None:
        then = {pod: each for pod, each in self.units.items() if pod not in released} | taken
        # What is held already costs nothing; of what is given back, all can be had again.
        is_news = any(self.units.get(pod) != each for pod, each in taken.items())
        expected = not is_news or self.fits(taken, then)
        try:
            done(self.machines.move([unit(pod, *each) for pod, each in taken.items()], released))
        except UnitTaken:
            assert not expected
        else:
            assert expected
            self.units = then

    def fits(
        self, taken: dict[str, tuple[str, str, bool]], then: dict[str, tuple[str, str, bool]]
    ) -> bool:
        known = all(self.is_known(each[0]) for each in taken.values())
        return known and self.stock_suffices(taken, then) and self.gpus_suffice(taken, then)

    def is_known(self, name: str) -> bool:
        """There, or kept because somebody holds of it; likewise its root."""
        held = {each for one, _, _ in self.units.values() for each in (one, SHAPES[one].root)}
        return {name, SHAPES[name].root} <= self.stock.keys() | held

    def stock_suffices(
        self, taken: dict[str, tuple[str, str, bool]], then: dict[str, tuple[str, str, bool]]
    ) -> bool:
        before, after = used(self.units), used(then)
        asked = {each for one, _, _ in taken.values() for each in (one, SHAPES[one].root)}
        return all(after[name] <= max(before[name], self.available(name)) for name in asked)

    def available(self, name: str) -> Fraction:
        return Fraction(self.stock[name].available if name in self.stock else 0)

    def gpus_suffice(
        self, taken: dict[str, tuple[str, str, bool]], then: dict[str, tuple[str, str, bool]]
    ) -> bool:
        asked: Counter[str] = Counter()
        for name, node, _ in then.values():
            asked[node] += SHAPES[name].gpus
        for node, _ in self.others.values():
            asked[node] += 1
        busy = {node for name, node, _ in taken.values() if SHAPES[name].gpus}
        return all(asked[node] <= GPUS_OF_A_NODE for node in busy)

    @rule(other=an_other, node=a_node, device=st.sampled_from("abc"), by_class=st.booleans())
    def claim(self, other: str, node: str, device: str, by_class: bool) -> None:
        """As a pod that asks by class does, or a client of Placement."""
        name = "nvidia.com.gpu" if node == "n1" else device
        before = len(self.others)
        with suppress(DeviceTaken, AlreadyClaimed) if by_class else suppress(Exception):
            if by_class:
                holding = [DeviceHolding(name, 1)]
                done(DeviceLedger(self.ledger).claim(other, "ns", "sa", node, holding))
            else:
                wanted = {own_uuid(f"{node}/{name}"): {DEVICE_CLASS: 1}}
                claim = Claim(consumer=other, project="p", user="u", allocations=wanted)
                self.ledger.write(lambda tx: claims.replace(tx, [claim])).result()
            self.others[other] = (node, name)
            assert len(self.others) == before + 1

    @rule(other=an_other)
    def give_back(self, other: str) -> None:
        done(DeviceLedger(self.ledger).release(other))
        self.others.pop(other, None)

    @rule()
    def follow(self) -> None:
        self.cursor, _ = done(self.machines.changes(self.cursor))
        assert not done(self.machines.changes(self.cursor))[1]

    @invariant()
    def units_are_those_that_were_moved(self) -> None:
        found = done(self.machines.units())
        assert self.units == {
            pod: (each.type, each.node, each.is_stock) for pod, each in found.items()
        }

    @invariant()
    def the_books_are_sound(self) -> None:
        assert self.ledger.read(audit.examine).result().faults == []
        gpus = done(self.machines.gpus(list(NODES)))
        for node, each in gpus.items():
            units = sum(SHAPES[one].gpus for one, at, _ in self.units.values() if at == node)
            others = sum(at == node for at, _ in self.others.values())
            assert (each.free, each.held_by_others) == (GPUS_OF_A_NODE - units - others, others)


def used(units: dict[str, tuple[str, str, bool]]) -> dict[str, Fraction]:
    """By type in units, those of dependents by their shares."""
    found = dict.fromkeys(SHAPES, Fraction(0))
    for name, _, _ in units.values():
        found[name] += 1
        if SHAPES[name].root != name:
            found[SHAPES[name].root] += SHAPES[name].share
    return found


@pytest.fixture
def model(sqlite_with_tables: str, tmp_path: Path) -> Iterator[type[AnyOrderOfUnits]]:
    opened = open_ledger(databases.copied(sqlite_with_tables, tmp_path / "any.db"))
    AnyOrderOfUnits.ledger = opened
    yield AnyOrderOfUnits
    opened.close()


def test_any_order_of_events_keeps_the_books(model: type[AnyOrderOfUnits]) -> None:
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=60,
            stateful_step_count=25,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# -- replicas that race ----------------------------------------------------------------------------

STOCK = {"whole": 2, "half": 3, "third": 4, "plain": 3}
SALES = 40


async def sell(machines: MachineLedger, seed: int, sold: set[str]) -> None:
    """What one replica does: stock, sales, groups and ends, as they come; the units it holds."""
    chance = random.Random(seed)
    for number in range(SALES):
        pods = [str(uuids.UUID(int=seed * 1000 + number * 3 + at)) for at in range(3)]
        wanted = [
            unit(pod, chance.choice(sorted(STOCK)), chance.choice(sorted(NODES)), at == 2)
            for at, pod in enumerate(pods[: chance.randint(1, 3)])
        ]
        released = set(chance.sample(sorted(sold), min(len(sold), chance.randint(0, 2))))
        with suppress(UnitTaken):
            await machines.move(wanted, released)
            sold -= released
            sold |= {each.consumer for each in wanted}
    await machines.release(sorted(sold)[::2])
    sold -= set(sorted(sold)[::2])


async def test_replicas_that_sell_at_once_never_sell_too_much(database_url: str) -> None:
    ledgers = [open_ledger(database_url) for _ in range(2)]
    try:
        first, second = (MachineLedger(each) for each in ledgers)
        for node, devices in NODES.items():
            await first.enter_node(node, 1000, 2**20, devices)
        await first.set_stock(GROUP, totals(STOCK))
        sold: list[set[str]] = [set() for _ in range(6)]
        most: dict[str, Fraction] = {}

        async def watch() -> None:
            """What is held at any moment keeps within the stock."""
            while True:
                held = await second.units()
                now = used({pod: (each.type, each.node, True) for pod, each in held.items()})
                most.update((name, max(most.get(name, now[name]), now[name])) for name in now)
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await asyncio.gather(
            *(sell((first, second)[at % 2], at + 1, each) for at, each in enumerate(sold))
        )
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        assert all(most[name] <= available for name, available in STOCK.items())
        assert max(most.values()) > 0
        assert set(await first.units()) == set().union(*sold)
        assert ledgers[0].read(audit.examine).result().faults == []
    finally:
        for each in ledgers:
            each.close()


async def test_gpus_that_are_free_are_found_by_all_who_buy_at_once(database_url: str) -> None:
    ledgers = [open_ledger(database_url) for _ in range(2)]
    names = "abcdefgh"
    try:
        replicas = [MachineLedger(each) for each in ledgers]
        one = shape(gpus=1)
        await replicas[0].enter_node("n1", 64, 2**20, cards(*names))
        await replicas[0].set_stock(GROUP, stock(len(names), one))
        for _ in range(5):
            buyers = [guest(one) for _ in names]
            await asyncio.gather(*(replicas[at % 2].move([each]) for at, each in enumerate(buyers)))
            await replicas[0].release([each.consumer for each in buyers])
    finally:
        for each in ledgers:
            each.close()


async def test_stock_that_changes_while_it_is_sold_keeps_its_shares(database_url: str) -> None:
    """A unit is counted in more and in fewer parts while units are taken and given back."""
    ledgers = [open_ledger(database_url) for _ in range(2)]
    try:
        first, second = (MachineLedger(each) for each in ledgers)
        for node, devices in NODES.items():
            await first.enter_node(node, 1000, 2**20, devices)
        await first.set_stock(GROUP, totals(STOCK))
        sold: list[set[str]] = [set() for _ in range(4)]

        async def restock() -> None:
            chance = random.Random(7)
            for _ in range(SALES):
                names = {"whole", *chance.sample(["half", "third", "plain"], 2)}
                await second.set_stock(GROUP, totals({name: STOCK[name] for name in names}))

        await asyncio.gather(
            restock(),
            *(sell((first, second)[at % 2], at + 1, each) for at, each in enumerate(sold)),
        )
        await first.set_stock(GROUP, totals(STOCK))
        held = await first.units()
        assert set(held) == set().union(*sold)
        assert ledgers[0].read(audit.examine).result().faults == []
        after = used({pod: (each.type, each.node, True) for pod, each in held.items()})
        assert all(after[name] <= available for name, available in STOCK.items())
        assert parts_held(ledgers[0]) == {name: each for name, each in after.items() if each}
    finally:
        for each in ledgers:
            each.close()


def parts_held(ledger: Ledger) -> dict[str, Fraction]:
    """By type in units, as the inventories say."""
    rows = ledger.read(
        lambda tx: tx.rows(
            """SELECT k.name, i.used, i.max_unit FROM inventories i
               JOIN resource_classes k ON k.id = i.class_id
               WHERE k.name LIKE 'CUSTOM_MACHINE_%' AND i.used > 0"""
        )
    ).result()
    return {
        name.removeprefix("CUSTOM_MACHINE_").lower(): Fraction(held, parts)
        for name, held, parts in rows
    }
