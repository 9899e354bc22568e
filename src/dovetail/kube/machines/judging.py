"""Judging: who sells a group, and the world that a Machine is validated in, from observed state.

The controller judges what is there, the webhook what somebody is about to write; both ask here.
Every replica can answer: units that only the leader has from the ledger are found by their pods.
"""

from __future__ import annotations

from msgspec.structs import replace

from dovetail.kube.machines.acceptance import Accepted
from dovetail.kube.machines.state import MachineState
from dovetail.machines.documents import Machine
from dovetail.machines.pods import is_bound, is_over, type_of
from dovetail.machines.validation.world import World


def standing_machines(state: MachineState, group: str) -> list[Machine]:
    """Those of the group that are not being deleted, the oldest first."""
    return [each for each in state.machines_of(group) if each.metadata.deletion_timestamp is None]


def seller_of(state: MachineState, group: str) -> tuple[Machine, Accepted] | None:
    """The one Machine whose units the group's guests get, and what is in force of it."""
    for machine in standing_machines(state, group):
        accepted = state.accepted.of(machine)
        if accepted is not None:
            return machine, accepted
    return None


def is_unjudged(state: MachineState, node: str) -> bool:
    """Whether a Machine wants the node of which it is not known yet whether it gets it."""
    return any(
        each.metadata.deletion_timestamp is None
        and state.accepted.of(each) is None
        and not state.accepted.faults_of(each)
        and any(entry.name == node for entry in each.spec.node_pool)
        for each in state.machines.values()
    )


def world_of(state: MachineState, machine: Machine, before: Machine | None = None) -> World:
    """What validation has to know besides the Machine; `before` is how it was, if that is known."""
    was = before or machine
    accepted = state.accepted.of(was)
    return World(
        machines=tuple(others_of(state, machine)),
        nodes=state.nodes,
        sold=holders_of(state, was.group),
        accepted=None if accepted is None else replace(was, spec=accepted.spec),
    )


def others_of(state: MachineState, machine: Machine) -> list[Machine]:
    """All other Machines, with what is in force of them."""
    others = []
    for each in state.machines.values():
        found = state.accepted.of(each)
        is_going = each.metadata.deletion_timestamp is not None
        if each.metadata.name != machine.metadata.name and found is not None and not is_going:
            others.append(replace(each, spec=found.spec))
    return others


def holders_of(state: MachineState, group: str) -> dict[str, tuple[str, ...]]:
    """By type: who holds a unit, by `namespace/name`, or by uid if the pod is not known."""
    pods = state.guests_of(group)
    sold = {
        (unit.type, pods[uid].key if uid in pods else uid)
        for uid, unit in state.units.get(group, {}).items()
        if not unit.is_stock
    }
    sold |= {(type_of(pod), pod.key) for pod in pods.values() if is_bound(pod) and not is_over(pod)}
    found: dict[str, tuple[str, ...]] = {}
    for name, holder in sorted(sold):
        found[name] = (*found.get(name, ()), holder)
    return found
