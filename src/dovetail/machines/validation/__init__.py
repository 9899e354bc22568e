"""Validation of Machines: what is wrong with one, by field; the operator, webhook and `plan` ask.

Rules are generators of faults, a module for each part of a Machine. Validation is ratcheting: what
is wrong with the accepted Machine as well (a node that has vanished since) is no fault of the
change. Nothing is in the way of deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dovetail.machines.documents import Machine
from dovetail.machines.validation.names import group_faults, join_faults, type_name_faults
from dovetail.machines.validation.pool import node_faults, served_type_faults
from dovetail.machines.validation.selling import term_faults, window_faults
from dovetail.machines.validation.shapes import dependence_faults, host_limit_faults, shape_faults
from dovetail.machines.validation.sold import sold_faults
from dovetail.machines.validation.stock import stock_faults
from dovetail.machines.validation.world import FieldFault, World

RULES: tuple[Callable[[Machine], Iterator[FieldFault]], ...] = (
    served_type_faults,
    type_name_faults,
    shape_faults,
    dependence_faults,
    term_faults,
    window_faults,
)
RULES_IN_WORLD: tuple[Callable[[Machine, World], Iterator[FieldFault]], ...] = (
    group_faults,
    node_faults,
    join_faults,
    host_limit_faults,
)


def findings(machine: Machine, world: World) -> tuple[FieldFault, ...]:
    """All that is wrong with it; nothing: it may be accepted."""
    if machine.metadata.deletion_timestamp is not None:
        return ()
    found = _faults(machine, world)
    if world.accepted is not None:
        known = {(each.subject, each.message) for each in _faults(world.accepted, world)}
        found = [each for each in found if (each.subject, each.message) not in known]
    found += sold_faults(machine, world)
    return tuple(found or stock_faults(machine, world))


def _faults(machine: Machine, world: World) -> list[FieldFault]:
    found = [fault for rule in RULES for fault in rule(machine)]
    return found + [fault for rule in RULES_IN_WORLD for fault in rule(machine, world)]
