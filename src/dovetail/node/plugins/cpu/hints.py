"""Topology hints for a container's own CPUs; the CPU plugin answers with them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint
from dovetail.node.hints.supply import fewest, masks_with_enough
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.cpu.assign import CpuPolicyOption
from dovetail.node.plugins.cpu.state import CpuHolding, Cpus, CpuState, union
from dovetail.node.topology import Machine


def hints(cpus: Cpus, state: CpuState, request: PluginRequest) -> tuple[Hint, ...] | None:
    """None if it has no preference; raises Impossible if it can be nowhere."""
    count = cpus.exclusive(request)
    if not count:
        return None
    before = state.own(request)
    own = union(map(cpus.own, before))
    if own and asked_by(before) == count and all(map(cpus.intact, before)):
        return (hint_on(cpus.machine, own, count),)
    cpus.smt_aligned(request, count)
    shrinks = len(own) > count
    free = cpus.usable(own if shrinks else cpus.free(state, request), request)
    # What can be had again is not to be left behind, nor what it has and will keep.
    kept = CpuSet() if shrinks else (cpus.reusable(state, request) | own) & free
    room = counted(cpus.machine, free)
    for node in cpus.barred(state, request):
        room.pop(node, None)
    places = masks_with_enough(
        room,
        count,
        counted(cpus.machine, cpus.machine.online),
        must=cpus.machine.nodes_of(kept),
    )
    if request.role.cpu.numa == "single":
        places = [each for each in places if len(each.nodes or ()) == 1]
    if not places:
        raise Impossible(cpus.shortage(state, request, count))
    if CpuPolicyOption.ALIGN_BY_SOCKET in request.role.cpu.options:
        return tuple(aligned(cpus.machine, each, count) for each in places)
    return tuple(places)


def asked_by(holdings: Sequence[CpuHolding]) -> int:
    """How many CPUs a container, or all of a pod together, asked for.

    Init containers are over before the others start.
    """
    init = (each.amount for each in holdings if each.init)
    rest = sum((each.amount for each in holdings if not each.init), Fraction())
    return int(max([rest, *init]))


def hint_of(cpus: Cpus, holding: CpuHolding) -> Hint:
    """That of what a container has."""
    own = cpus.own(holding)
    return hint_on(cpus.machine, own, len(own))


def hint_on(machine: Machine, own: CpuSet, count: int) -> Hint:
    nodes = machine.nodes_of(own)
    return Hint(nodes.mask, preferred=len(nodes) == fewest_nodes(machine, count))


def aligned(machine: Machine, hint: Hint, count: int) -> Hint:
    """If sockets are what counts, nodes of as few sockets as possible are as good."""
    per_socket = sum(1 for cpus in machine.by_numa.values() if cpus) // len(machine.by_socket)
    least = -(-(fewest_nodes(machine, count) or 0) // per_socket)
    sockets = len(machine.sockets_of(hint.nodes or ()))
    return Hint(hint.mask, preferred=hint.preferred or sockets == least)


def fewest_nodes(machine: Machine, count: int) -> int | None:
    """How many NUMA nodes it would take if all of the machine were free."""
    return fewest(counted(machine, machine.online), count)


def counted(machine: Machine, cpus: CpuSet) -> dict[int, int]:
    """By NUMA node that has CPUs."""
    return {node: len(there & cpus) for node, there in machine.by_numa.items() if there}
