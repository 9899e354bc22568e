"""Pod reporter: conditions and events that tell users what became of their pods.

The scheduling loop, the reconciler and the extender call it; writing is done beside them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.kube.api.port import ApiNotFound, KubeApi
from dovetail.kube.classes.device_ways import chain_text
from dovetail.kube.runtime.conditions import timestamp
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.plans import BindingPlan, claim_wanted_by
from dovetail.podfit.objects import Pod

SCHEDULED = "PodScheduled"
DEVICES = "dovetail.dev/DevicesAvailable"
"""Condition of a bound pod: whether the devices it was given are there, healthy and its own."""
MANAGERS = {SCHEDULED: "dovetail-scheduler", DEVICES: "dovetail-devices"}
"""One for each: what a manager leaves out of its next apply is taken away."""
WORKERS = 4


class PodCondition(msgspec.Struct, frozen=True):
    """A condition of a pod, as it shall be."""

    type: str
    status: str
    reason: str
    message: str


class PodReporter:
    def __init__(self, api: KubeApi, recorder: Recorder, pods: Mapping[str, Pod]) -> None:
        self._api = api
        self._recorder = recorder
        self._pods = pods
        self._unwritten: dict[str, PodCondition] = {}
        self._queue = WorkQueue("pod conditions", cap=30.0)

    async def run(self) -> None:
        try:
            await self._queue.run(self._write, WORKERS)
        finally:
            self._queue.close()

    def report_refusal(self, pod: Pod, why: str) -> None:
        """It fits nowhere, or cannot be placed here at all."""
        if self._set_condition(pod, PodCondition(SCHEDULED, "False", "Unschedulable", why)):
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", why)

    def report_bug(self, pod: Pod, error: Exception) -> None:
        """It is no fault of the pod's that it is not placed, and it is tried again."""
        why = f"a bug of the scheduler keeps this pod from being placed: {error!r}; see its log."
        if self._set_condition(pod, PodCondition(SCHEDULED, "False", "SchedulerError", why)):
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", why)

    def report_scheduled(self, plan: BindingPlan) -> None:
        note = f"Assigned {plan.pod.key} to {plan.node}"
        if plan.holdings:
            wanted = claim_wanted_by(plan)
            claim = wanted.name if wanted else ""
            note += f": {chain_text(plan.holdings, plan.origins, claim)}"
        self._recorder.event(plan.pod, "Normal", "Scheduled", "Binding", note)

    def report_lost_devices(self, pod: Pod, reason: str, why: str) -> None:
        if self._set_condition(pod, PodCondition(DEVICES, "False", reason, why)):
            self._recorder.event(pod, "Warning", reason, "Watching", why)

    def report_devices_back(self, pod: Pod) -> None:
        """Said only of pods of which the contrary was."""
        if any(each.type == DEVICES and each.status == "False" for each in pod.status.conditions):
            back = "All devices are there and healthy."
            self._set_condition(pod, PodCondition(DEVICES, "True", "Available", back))

    def _set_condition(self, pod: Pod, condition: PodCondition) -> bool:
        """True if that is news."""
        key = f"{pod.metadata.uid} {condition.type}"
        if has_condition(pod, condition) or self._unwritten.get(key) == condition:
            return False
        self._unwritten[key] = condition
        self._queue.add(key)
        return True

    async def _write(self, key: str) -> None:
        uid, _, type_ = key.partition(" ")
        pod, condition = self._pods.get(uid), self._unwritten.get(key)
        outdated = pod is not None and type_ == SCHEDULED and pod.spec.node_name
        if pod is None or condition is None or outdated or has_condition(pod, condition):
            self._unwritten.pop(key, None)
            return
        try:
            body = condition_patch(pod, condition)
            await self._api.apply(Pod, body, manager=MANAGERS[type_], sub="status")
        except ApiNotFound:
            pass
        if self._unwritten.get(key) == condition:
            del self._unwritten[key]


def has_condition(pod: Pod, condition: PodCondition) -> bool:
    return any(
        (each.type, each.status, each.reason, each.message)
        == (condition.type, condition.status, condition.reason, condition.message)
        for each in pod.status.conditions
    )


def condition_patch(pod: Pod, condition: PodCondition) -> dict[str, object]:
    """For this version of the pod only: by the next one it may be bound, and this untrue."""
    meta = pod.metadata
    before = next((each for each in pod.status.conditions if each.type == condition.type), None)
    since = before.last_transition_time if before and before.status == condition.status else None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        },
        "status": {
            "conditions": [
                {**msgspec.to_builtins(condition), "lastTransitionTime": since or timestamp()}
            ]
        },
    }
