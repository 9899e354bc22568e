"""Machines as the ledger knows them: stock of every group, who holds units of it, and who waits.

Stock and holders are the ledger's own. Who waits and why, names of pods, and until when units are
lent, are what the operator last told (`ledger/machines/queue.py`); where it told nothing, they are
None.
"""

from __future__ import annotations

import msgspec

from dovetail.core.inventory import capacity
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.machines import queue, units
from dovetail.ledger.machines.queue import ToldQueue
from dovetail.ledger.machines.stock import GROUPS, MACHINE_CLASS, type_of
from dovetail.ledger.machines.units import HeldUnit
from dovetail.ledger.views.holders import escaped


class StockLine(msgspec.Struct, frozen=True):
    """Units of one type of a group."""

    type: str
    max: int
    """To be sold."""
    reserved: int
    """Held in stock."""
    used: int
    """Sold."""
    waiting: int | None
    """Guests that are on no node yet."""


class LentUnit(msgspec.Struct, frozen=True):
    """A unit that is held, by which pod and until when."""

    unit: HeldUnit
    pod: str | None
    until: int | None
    """Unix seconds: when the unit is to be given back; None, too, if it is lent without an end."""


class MachineGroup(msgspec.Struct, frozen=True):
    cluster: str
    """What the names of its nodes begin with; empty, if there is one cluster."""
    name: str
    types: list[StockLine]
    """Empty, if nobody sells what its guests wait for."""
    holders: list[LentUnit]
    told: ToldQueue | None


def listing(tx: Transaction) -> list[MachineGroup]:
    """Every group of every cluster that is sold, or that guests wait for."""
    queues = queue.every(tx)
    found: list[MachineGroup] = []
    roots = tx.rows(
        "SELECT id, name FROM providers WHERE name LIKE ? AND parent_id IS NULL ORDER BY name",
        (f"%{GROUPS}",),
    )
    for root, name in roots:
        prefix = name.removesuffix(GROUPS)
        held = list(units.held(tx, prefix).values())
        groups = tx.rows(
            "SELECT id, name FROM providers WHERE root_id = ? AND id <> ? ORDER BY name",
            (root, root),
        )
        for id_, group in groups:
            short = group.removeprefix(name)
            mine = [each for each in held if each.group == short]
            told = queues.pop((prefix, short), None)
            types = stock(tx, id_, mine, told)
            found.append(MachineGroup(prefix, short, types, holders(mine, told), told))
    found += [MachineGroup(*key, [], [], told) for key, told in queues.items()]
    return found


def holders(held: list[HeldUnit], told: ToldQueue | None) -> list[LentUnit]:
    if told is None:
        return [LentUnit(each, None, None) for each in held]
    # Who was sold a unit since may still be in line there.
    pods = {each.uid: each.pod for each in told.queue.guests} | told.queue.pods
    lent = told.queue.lent_seconds
    return [
        LentUnit(
            each,
            pods.get(each.consumer),
            None if each.is_stock or each.type not in lent else each.since + lent[each.type],
        )
        for each in held
    ]


def stock(
    tx: Transaction, group: int, held: list[HeldUnit], told: ToldQueue | None
) -> list[StockLine]:
    rows = tx.rows(
        """SELECT k.name, i.total, i.reserved, i.allocation_ratio, i.max_unit
           FROM inventories i JOIN resource_classes k ON k.id = i.class_id
           WHERE i.provider_id = ? AND k.name LIKE ? ESCAPE '!' ORDER BY k.name""",
        (group, f"{escaped(MACHINE_CLASS)}%"),
    )
    return [
        StockLine(
            type=type_of(name),
            max=capacity(total, reserved, ratio) // max(parts, 1),
            reserved=sum(each.is_stock for each in held if each.type == type_of(name)),
            used=sum(not each.is_stock for each in held if each.type == type_of(name)),
            waiting=None if told is None else told.queue.waiting.get(type_of(name), 0),
        )
        for name, total, reserved, ratio, parts in rows
    ]
