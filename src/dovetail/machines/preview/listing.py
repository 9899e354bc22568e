"""Listing of a Machine: its units, all holders and all who wait; `dovetail machines list` shows it.

The same rows as in the status of the Machine, which has only the first of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.machines.plan import plan_machine
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.status import ConditionFound, holders_of, waiting_of


class MachineListing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    machine: str
    group: str
    generation: int
    accepted_generation: int
    """0: none was accepted yet."""
    conditions: tuple[ConditionFound, ...]
    types: list[dict[str, Any]]
    """`name`, `maximum`, `reserved`, `used`, `waiting` and `free` of each."""
    holders: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    windows: list[dict[str, Any]]


def listing_of(snapshot: MachineSnapshot) -> MachineListing:
    plan = plan_machine(snapshot)
    every = len(snapshot.guests)
    return MachineListing(
        machine=snapshot.machine.metadata.name,
        group=snapshot.machine.group,
        generation=snapshot.machine.metadata.generation,
        accepted_generation=snapshot.accepted_generation,
        conditions=plan.conditions,
        types=[
            {"name": each["name"], **each["usage"], "free": each["free"]}
            for each in plan.status["availableMachines"]
        ],
        holders=holders_of(snapshot, plan.line.holders, every),
        waiting=waiting_of(plan.line.waiting, plan.line.reasons, every),
        windows=plan.status["windows"],
    )
