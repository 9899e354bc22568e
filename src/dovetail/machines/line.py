"""Line of a machine group: who waits for units and why, in the order of serving, and who has some.

The planner makes it; the status of the Machine, `dovetail machines list` and the queue that the
operator keeps in the ledger tell it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import msgspec

from dovetail.machines.pods import is_bound, line_order
from dovetail.machines.selling.seller import Sale
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.survey import Survey
from dovetail.podfit.objects import Pod


class GuestLine(msgspec.Struct, frozen=True, kw_only=True):
    waiting: tuple[Pod, ...]
    """Guests that are on no node yet: those that are on their way, then the next one first."""
    reasons: Mapping[str, Waiting]
    """Why each of them waits, by uid; those have none whose turn has not come."""
    holders: tuple[Pod, ...]
    """Guests that have a unit, or are on a node without one in the ledger."""


def carried_out(line: GuestLine, units: Container[str]) -> GuestLine:
    """The line after its plan: whom the ledger refused a unit is not on its way."""
    reasons = {
        uid: why
        for uid, why in line.reasons.items()
        if why.reason is not WaitReason.BEING_SOLD or uid in units
    }
    return msgspec.structs.replace(line, reasons=reasons)


def line_of(survey: Survey, sales: Iterable[Sale], refused: Mapping[str, Waiting]) -> GuestLine:
    coming = on_their_way(survey, sales)
    # They have had their turn: a write to one of them must not put it behind those of its second.
    waiting = sorted(
        (each for each in survey.guests if not is_bound(each)),
        key=lambda pod: (pod.metadata.uid not in coming, line_order(pod)),
    )
    return GuestLine(
        waiting=tuple(waiting), reasons={**refused, **coming}, holders=tuple(survey.holders)
    )


def on_their_way(survey: Survey, sales: Iterable[Sale]) -> dict[str, Waiting]:
    """Guests that have a unit and are not on their node yet, by uid."""
    places = {each.pod.metadata.uid: each.node for sale in sales for each in sale.orders} | {
        pod.metadata.uid: survey.places[pod.metadata.uid]
        for pod in survey.holders
        if not is_bound(pod)
    }
    return {
        uid: Waiting(WaitReason.BEING_SOLD, f"has a unit, and is on its way to node {node}")
        for uid, node in places.items()
    }
