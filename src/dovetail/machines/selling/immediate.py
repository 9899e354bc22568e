"""Immediate refusal: why a guest that is created now would get no unit; the webhook asks.

Only for types that are had at once or not at all (`whenSoldOut: refuse`). What is left is counted
by pods, for the ledger is read by the leader only: who was let go to a node has a unit, and who
stands in line will have the next. Nothing is taken here. Guests that are created at the same moment
are all let in, and those that come too late wait behind their gate, as anybody does.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.machines.documents import MachineType
from dovetail.machines.marks import state_of
from dovetail.machines.names import HOSTNAME, READY
from dovetail.machines.pods import (
    is_gated_guest,
    is_leaving,
    is_opted_in,
    is_over,
    type_of,
    unit_group_of,
    unit_group_size,
)
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.shapes import line_of
from dovetail.machines.snapshot import MachineSnapshot, UnitRecord
from dovetail.machines.stock.families import FamilyBook, families_of
from dovetail.podfit.objects import Pod

IN_LINE = frozenset(("", WaitReason.SOLD_OUT, WaitReason.BEING_SOLD))
"""Who waits for these reasons, or for none that was told yet, has the next unit. Whoever waits for
another is passed over by those behind it."""


def immediate_refusal(snapshot: MachineSnapshot, guest: Pod) -> Waiting | None:
    """None: a unit is left for it as far as the counts go, or its type has guests wait.

    `guest` is not among the guests of the snapshot, and need not have a name. Its type is known.
    """
    name = type_of(guest)
    kind = next(each for each in snapshot.spec.machine_types if each.name == name)
    if kind.when_sold_out != "refuse":
        return None
    if guest.metadata.namespace not in snapshot.namespaces:
        # The API server heard of it before we did: whether it may buy is found out at the gate.
        return None
    if not _is_served(snapshot, kind):
        return Waiting(WaitReason.NO_NODE_FITS, f"no node that serves {name} is ready at present")
    book = next(FamilyBook(each) for each in families_of(snapshot.spec) if name in each.available)
    buying = Buying(snapshot.spec, snapshot.namespaces, (), snapshot.now)
    for pod, node in _claimants(snapshot, guest):
        if type_of(pod) in book.family.available:
            book.add(type_of(pod), node)
            buying.bought(pod, type_of(pod))
    for unit in _lost(snapshot):
        if unit.type in book.family.available:
            book.add(unit.type, unit.node)
    return _refusal(guest, name, book, buying, _needed(snapshot, guest))


def _refusal(
    guest: Pod, name: str, book: FamilyBook, buying: Buying, needed: int
) -> Waiting | None:
    """Ends after as many units as there are at the latest."""
    for _ in range(needed):
        why = buying.refusal(guest, name, book)
        if why is not None and needed == 1:
            return why
        if why is not None:
            group = unit_group_of(guest).partition("/")[2]
            return Waiting(
                WaitReason.GROUP_DOES_NOT_FIT,
                f"unit group {group!r} gets all units or none, and needs {needed}: {why.message}",
            )
        book.add(name, "")
        buying.bought(guest, name)
    return None


def _is_served(snapshot: MachineSnapshot, kind: MachineType) -> bool:
    line = {each.name for each in line_of(snapshot.spec, kind.name)}
    return any(
        state_of(snapshot.nodes.get(entry.name), entry) == READY
        for entry in snapshot.spec.node_pool
        if line.intersection(entry.types)
    )


def _claimants(snapshot: MachineSnapshot, guest: Pod) -> Iterator[tuple[Pod, str]]:
    """Guests that have a unit or are to have the next, and the node if it is known.

    Those of the guest's own unit group that wait are not among them: they are sold with it.
    """
    reasons = {
        (each.get("namespace"), each.get("pod")): each.get("reason", "")
        for each in snapshot.machine.status.waiting
    }
    for uid, pod in snapshot.guests.items():
        if is_over(pod):
            continue
        unit = snapshot.units.get(uid)
        if unit is not None or not is_gated_guest(pod):
            if unit is not None or is_opted_in(snapshot.namespaces.get(pod.metadata.namespace)):
                pinned = pod.spec.node_selector.get(HOSTNAME, "")
                yield pod, pod.spec.node_name or (pinned if unit is None else unit.node)
        elif not is_leaving(pod) and not _are_together(pod, guest):
            meta = pod.metadata
            if reasons.get((meta.namespace, meta.name), "") in IN_LINE:
                yield pod, ""


def _lost(snapshot: MachineSnapshot) -> list[UnitRecord]:
    """Units that are sold to pods that were not seen, and may be there."""
    return [
        unit
        for uid, unit in snapshot.units.items()
        if not unit.is_stock and uid not in snapshot.guests and uid not in snapshot.gone
    ]


def _are_together(pod: Pod, guest: Pod) -> bool:
    group = unit_group_of(guest)
    return bool(group) and unit_group_of(pod) == group


def _needed(snapshot: MachineSnapshot, guest: Pod) -> int:
    """Units that have to be left: of a unit group, all that its pods do not have yet."""
    size = unit_group_size(guest) if unit_group_of(guest) else None
    if size is None:
        return 1
    have = sum(
        1
        for uid, pod in snapshot.guests.items()
        if _are_together(pod, guest)
        and not is_over(pod)
        and (uid in snapshot.units or not is_gated_guest(pod))
    )
    return max(size - have, 1)
