"""Resizes of what a pod itself asks for (`spec.resources`): noticed, and said; the collector asks.

The kubelet changes the cgroup of the pod, and tells the runtime in a call whose failure it passes
over: nobody can say no. What was allocated to the pod as a whole stays as it is while the pod runs,
so that is logged once and told to those who ask for an explanation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import structlog

from dovetail.node.admission.admission_log import AdmissionLog, AdmissionRecord
from dovetail.node.admission.resize_amounts import changed_whole
from dovetail.node.common.pods import Pod
from dovetail.node.common.reasons import RESIZE_OF_POD
from dovetail.node.state.pod_state import PodState, amounts_of
from dovetail.node.state.store import StateStore

LOG = structlog.get_logger("dovetail.node.reconcile")


class PodLevelResizes:
    def __init__(self, store: StateStore, records: AdmissionLog) -> None:
        self._store, self._records = store, records
        self._said: dict[str, str] = {}
        """By uid of a pod."""

    def look(self, pods: Sequence[Pod]) -> None:
        """`pods` as they are wished for now."""
        found = {}
        for each in pods:
            held = self._store.pod(each.uid)
            if held is None or not held.whole:
                continue
            who = f"the pod {each.namespace}/{each.name}"
            if words := changed_whole(who, amounts_of(held.whole), each.requests):
                found[each.uid] = words
                if self._said.get(each.uid) != words:
                    self._say(held, words)
        self._said = found

    def _say(self, pod: PodState, words: str) -> None:
        LOG.warning("pod not resized", pod=pod.uid, reason=RESIZE_OF_POD, why=words)
        known = [
            each
            for each in self._records.of(pod.uid)
            if not each.container and each.result == "admitted"
        ]
        record = known[-1] if known else _record_of(pod)
        self._records.add(
            msgspec.structs.replace(record, at=time.time(), reason=RESIZE_OF_POD, words=words)
        )


def _record_of(pod: PodState) -> AdmissionRecord:
    """Of a pod that was admitted before the agent was started."""
    return AdmissionRecord(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        at=0.0,
        role=pod.role,
        type=pod.type,
    )
