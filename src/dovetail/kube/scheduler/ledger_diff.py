"""Diff of ledger and cluster: what the ledger says pods hold, and the pods there are. Pure rules.

The ledger and the API server are two memories, and whoever wrote to both may have died between.
The diff tells the reconciler what is left to do, whatever happened before.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from dovetail.kube.scheduler.plans import held_by, is_over
from dovetail.podfit.objects import Pod
from dovetail.service.device_claims import HeldBy


class LedgerDiff(msgspec.Struct, frozen=True):
    over: tuple[str, ...]
    """Claims of pods that are over, or run elsewhere without devices: to be released."""
    unknown: tuple[str, ...]
    """Claims of pods that are not in the cache: to be released if there are none such indeed."""
    unbound: tuple[str, ...]
    """Claims of pods that wait for their binding: to be adopted."""
    unclaimed: tuple[Pod, ...]
    """Bound pods that say they hold devices, and the ledger has nothing for them on their node: to
    be claimed again, the oldest binding first."""


def ledger_diff_of(
    holders: Mapping[str, HeldBy], pods: Mapping[str, Pod], busy: Set[str] = frozenset()
) -> LedgerDiff:
    """`pods` by uid; those in `busy` are being bound just now, and look wrong for a moment."""
    over, unknown, unbound = [], [], []
    unclaimed: list[Pod] = []
    for uid, held in holders.items():
        if not held.is_pod or uid in busy:
            continue
        pod = pods.get(uid)
        if pod is None:
            unknown.append(uid)
        elif is_over(pod) or (pod.spec.node_name not in ("", held.node) and not held_by(pod)):
            over.append(uid)
        elif not pod.spec.node_name:
            unbound.append(uid)
    for uid, pod in pods.items():
        if pod.spec.node_name and uid not in busy and not is_over(pod) and not agrees(pod, holders):
            unclaimed.append(pod)
    unclaimed.sort(key=bound_at)
    return LedgerDiff(tuple(over), tuple(unknown), tuple(unbound), tuple(unclaimed))


def agrees(pod: Pod, holders: Mapping[str, HeldBy]) -> bool:
    """Whether the ledger has devices for a bound pod where it is, if it says that it has some.

    Which ones, the ledger knows better: annotations can be edited after the binding.
    """
    if not held_by(pod):
        return True
    held = holders.get(pod.metadata.uid)
    return held is not None and held.node == pod.spec.node_name


def bound_at(pod: Pod) -> tuple[str, str, str]:
    """Sorts pods by the age of their binding."""
    times = (
        each.last_transition_time
        for each in pod.status.conditions
        if each.type == "PodScheduled" and each.status == "True"
    )
    meta = pod.metadata
    return (
        next(times, None) or meta.creation_timestamp or "",
        meta.creation_timestamp or "",
        meta.uid,
    )
