"""Leases of units: which end soon, which have ended, and who is to be evicted for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from dovetail.machines.documents import MachineSpec, MachineType
from dovetail.machines.pods import is_leaving, type_of
from dovetail.machines.selling.windows import duration_of, lease_end
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.podfit.objects import Pod

EVICT = "evict"


class LeaseNotice(msgspec.Struct, frozen=True):
    """What a holder is told of its lease."""

    pod: Pod
    has_ended: bool
    message: str
    evict: bool


class Leases(msgspec.Struct, frozen=True):
    notices: tuple[LeaseNotice, ...]
    look_again: datetime | None
    """When the next one has to be given."""


def lent_seconds(spec: MachineSpec) -> dict[str, int]:
    """By type, how long a unit is lent; types without an end are not in it."""
    return {
        each.name: int(duration_of(each.max_duration).total_seconds())
        for each in spec.machine_types
        if each.max_duration is not None
    }


def leases_of(snapshot: MachineSnapshot, holders: Iterable[Pod]) -> Leases:
    kinds = {
        each.name: each for each in snapshot.spec.machine_types if each.max_duration is not None
    }
    notices: list[LeaseNotice] = []
    times: list[datetime] = []
    for pod in holders if kinds else ():
        kind, unit = kinds.get(type_of(pod)), snapshot.units.get(pod.metadata.uid)
        if kind is None or unit is None or is_leaving(pod):
            continue
        end = lease_end(datetime.fromtimestamp(unit.since, UTC), kind)
        assert end is not None
        announced = end - duration_of(kind.announce_before)
        if announced <= snapshot.now:
            notices.append(notice_of(pod, kind, end, snapshot.now))
        times += [each for each in (announced, end) if each > snapshot.now]
    return Leases(tuple(notices), min(times, default=None))


def notice_of(pod: Pod, kind: MachineType, end: datetime, now: datetime) -> LeaseNotice:
    at = end.strftime("%Y-%m-%dT%H:%M:%SZ")
    evict = kind.when_expired == EVICT
    if end > now:
        then = "the pod is evicted then" if evict else "please end the pod by then"
        return LeaseNotice(
            pod, False, f"the lease of this unit of {kind.name} ends at {at}: {then}", False
        )
    then = "the pod is evicted" if evict else "others may be waiting for the unit"
    return LeaseNotice(
        pod, True, f"the lease of this unit of {kind.name} ended at {at}: {then}", evict
    )
