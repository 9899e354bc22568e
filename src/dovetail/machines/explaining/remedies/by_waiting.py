"""What others do, or time does: leases and windows end, guests go, the rest of a group comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from dovetail.core.explanation import Reason
from dovetail.core.explanation_text import count_of, listed
from dovetail.machines.explaining.cases import GuestCase
from dovetail.machines.explaining.judging import Judgement
from dovetail.machines.explaining.remedies.remedy import Remedy, Supposition
from dovetail.machines.pods import (
    is_bound,
    is_over,
    type_of,
    unit_group_of,
    unit_group_size,
    user_of,
)
from dovetail.machines.selling.windows import holds, lease_end
from dovetail.machines.shapes import shapes_of
from dovetail.machines.status import time_text
from dovetail.podfit.objects import Pod

MOST_NAMED = 3
IN_THE_WAY = (
    *(Reason.CAP, Reason.STOCK, Reason.WINDOW, Reason.UNIT_GROUP, Reason.AMOUNT),
    *(Reason.HOST_PORT, Reason.DISK, Reason.TOPOLOGY_SPREAD),
    *(Reason.POD_ANTI_AFFINITY, Reason.EXISTING_ANTI_AFFINITY),
)
"""What holders of units can be the reason of."""


def waiting_remedies(case: GuestCase, found: Judgement) -> Iterator[list[Remedy]]:
    reasons = found.reasons
    reason = next((each for each in IN_THE_WAY if each in reasons), None)
    if reason is not None:
        holders = holders_in_the_way(case, reason)
        counts = sorted({1, len(found.ahead) + 1, len(case.members()), len(holders)})
        yield list(leases_end(case, holders, counts, reason))
        yield list(holders_go(case, holders, counts, reason))
    if Reason.WINDOW in reasons:
        yield list(windows_end(case))
    if Reason.UNIT_GROUP in reasons:
        yield list(group_complete(case))


# -- units that come back --------------------------------------------------------------------------


def holders_in_the_way(case: GuestCase, reason: Reason) -> list[Pod]:
    """Guests with units of its family; where a cap is reached, those that count towards it."""
    snapshot, pod = case.snapshot, case.pod
    shapes = shapes_of(case.spec)
    name = type_of(pod)
    root = shapes[name].root if name in shapes else ""
    family = {each.name for each in shapes.values() if each.root == root}
    found = [
        each
        for uid, each in snapshot.guests.items()
        if type_of(each) in family
        and not is_over(each)
        and (is_bound(each) or uid in snapshot.units)
    ]
    if reason is Reason.CAP:
        spaces = snapshot.namespaces
        user = user_of(pod, spaces.get(pod.metadata.namespace))
        return [
            each
            for each in found
            if type_of(each) == name
            and (
                each.metadata.namespace == pod.metadata.namespace
                or user_of(each, spaces.get(each.metadata.namespace)) == user
            )
        ]
    return found


def end_of(case: GuestCase, pod: Pod) -> datetime | None:
    """Of the lease of a holder."""
    unit = case.snapshot.units.get(pod.metadata.uid)
    kind = next((one for one in case.spec.machine_types if one.name == type_of(pod)), None)
    if unit is None or kind is None:
        return None
    return lease_end(datetime.fromtimestamp(unit.since, UTC), kind)


def leases_end(
    case: GuestCase, holders: Sequence[Pod], counts: Sequence[int], reason: Reason
) -> Iterator[Remedy]:
    """Those that end first, as many as it takes."""
    ends = [(end, pod) for pod in holders if (end := end_of(case, pod)) is not None]
    ends.sort(key=lambda each: (each[0], each[1].key))
    for count in counts:
        if 0 < count <= len(ends):
            going = ends[:count]
            at = time_text(going[-1][0].timestamp())
            is_over_by_now = going[-1][0] <= case.snapshot.now
            yield Remedy(
                reason=reason,
                old=", ".join(pod.key for _, pod in going),
                new=at,
                words=f"{names_of([pod for _, pod in going])} {_gives(count)}: the lease"
                f" {'ended' if is_over_by_now else 'ends'} at {at}",
                suppose=_without([pod for _, pod in going]),
            )


def holders_go(
    case: GuestCase, holders: Sequence[Pod], counts: Sequence[int], reason: Reason
) -> Iterator[Remedy]:
    """The fewest; those of its own namespace first, then the oldest. Leases tell by themselves."""
    own, units, shapes = case.pod.metadata.namespace, case.snapshot.units, shapes_of(case.spec)
    share = shapes[type_of(case.pod)].share if type_of(case.pod) in shapes else 0

    def order(pod: Pod) -> tuple[bool, bool, int, str]:
        """One who has less than the guest wants is not enough."""
        unit, is_part = units.get(pod.metadata.uid), shapes[type_of(pod)].share < share
        since = unit.since if unit is not None else 0
        return is_part, pod.metadata.namespace != own, since, pod.key

    ordered = sorted((pod for pod in holders if end_of(case, pod) is None), key=order)
    together: dict[str, list[Pod]] = {}
    for pod in ordered:
        uid = pod.metadata.uid
        together.setdefault(units[uid].node if uid in units else pod.spec.node_name, []).append(pod)
    sets = [ordered[:count] for count in counts if 0 < count <= len(ordered)]
    for going in sorted((*sets, *together.values()), key=len):
        yield Remedy(
            reason=reason,
            old=", ".join(pod.key for pod in going),
            new=None,
            words=f"{names_of(going)} {_gives(len(going))}",
            suppose=_without(going),
        )


def _gives(count: int) -> str:
    return "gives its unit back" if count == 1 else "give their units back"


def names_of(pods: Sequence[Pod]) -> str:
    return listed([pod.key for pod in pods], MOST_NAMED, ", ", " and ")


def _without(pods: Sequence[Pod]) -> Supposition:
    uids = [pod.metadata.uid for pod in pods]
    return lambda case: case.without(*uids)


# -- time ------------------------------------------------------------------------------------------


def windows_end(case: GuestCase) -> Iterator[Remedy]:
    """The first of them, or more."""
    kind = next((one for one in case.spec.machine_types if one.name == type_of(case.pod)), None)
    held = () if kind is None else holds(kind, case.snapshot.now)
    for each in sorted(held, key=lambda hold: hold.end):
        at = time_text(each.end.timestamp())
        yield Remedy(
            reason=Reason.WINDOW,
            old=each.name,
            new=at,
            words=f"window {each.name!r} is over, at {at}",
            suppose=_at(each.end),
        )


def _at(time: datetime) -> Supposition:
    return lambda case: replace(case, snapshot=replace(case.snapshot, now=time))


# -- pods to come ----------------------------------------------------------------------------------


def group_complete(case: GuestCase) -> Iterator[Remedy]:
    """The pods that its unit group lacks, made like it."""
    members, size = case.members(), unit_group_size(case.pod)
    missing = 0 if size is None else size - len(members)
    if missing <= 0:
        return
    name = unit_group_of(case.pod).partition("/")[2]
    yield Remedy(
        reason=Reason.UNIT_GROUP,
        old=str(len(members)),
        new=str(size),
        words=f"{count_of(missing, 'more pod')} of unit group {name!r} {_come(missing)}",
        suppose=_with_more(missing),
    )


def _come(count: int) -> str:
    return "comes" if count == 1 else "come"


def _with_more(missing: int) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        meta = case.pod.metadata
        more = {
            uid: replace(case.pod, metadata=replace(meta, uid=uid, name=f"{meta.name}-{n}"))
            for n in range(missing)
            for uid in [f"{meta.uid}/{n}"]
        }
        guests = {**case.snapshot.guests, **more}
        return replace(case, snapshot=replace(case.snapshot, guests=guests))

    return suppose
