"""Listing of a Machine: its units, all holders and all who wait; `dovetail machines list` shows it.

The same rows as in the status of the Machine, which has only the first of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.machines.plan import plan_machine
from dovetail.machines.pods import is_bound, line_order
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.status import ConditionFound, holders_of, on_their_way, waiting_of


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
    survey = MachineStanding(snapshot).survey
    reasons = {**plan.waiting, **on_their_way(survey, plan.sales)}
    line = sorted((each for each in survey.guests if not is_bound(each)), key=line_order)
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
        holders=holders_of(snapshot, survey.holders, every),
        waiting=waiting_of(line, reasons, every),
        windows=plan.status["windows"],
    )
