"""Units as pods show them, for those who cannot look into the ledger.

`dovetail machines` asks, wherever it runs. Whoever is not behind its gate any more has a unit; when
it was sold is told by when it was scheduled. What the ledger says is truer by the moment between a
sale and its gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.machines.names import HOSTNAME
from dovetail.machines.pods import (
    group_of,
    is_bound,
    is_gated_guest,
    is_gated_sleeper,
    is_guest,
    is_opted_in,
    is_over,
    type_of,
)
from dovetail.machines.selling.recurrence import BadTime
from dovetail.machines.selling.windows import time_of
from dovetail.machines.snapshot import UnitRecord
from dovetail.podfit.objects import Namespace, Pod

SCHEDULED = "PodScheduled"


def units_seen(
    pods: Iterable[Pod], namespaces: Mapping[str, Namespace]
) -> dict[str, dict[str, UnitRecord]]:
    """By group and uid, of guests and sleepers."""
    found: dict[str, dict[str, UnitRecord]] = {}
    for pod in pods:
        if is_over(pod) or is_gated_guest(pod) or is_gated_sleeper(pod):
            continue
        if is_guest(pod) and not is_opted_in(namespaces.get(pod.metadata.namespace)):
            continue
        node = pod.spec.node_name or pod.spec.node_selector.get(HOSTNAME, "")
        unit = UnitRecord(type_of(pod), node, not is_guest(pod), _since(pod))
        found.setdefault(group_of(pod), {})[pod.metadata.uid] = unit
    return found


def _since(pod: Pod) -> int:
    scheduled = (
        each.last_transition_time
        for each in pod.status.conditions
        if each.type == SCHEDULED and each.status == "True"
    )
    times = [*scheduled, pod.status.start_time if is_bound(pod) else None]
    for text in (*times, pod.metadata.creation_timestamp):
        try:
            if text:
                return int(time_of(text).timestamp())
        except BadTime:
            continue
    return 0
