"""Pod reporter: conditions and events that tell users what became of their pods.

The scheduling loop, the reconciler and the extender call it; writing is done beside them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.api.port import ApiNotFound, KubeApi
from dovetail.kube.runtime.conditions import timestamp
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.kube.scheduler.plans import amounts
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
        self._said: dict[str, PodCondition] = {}
        self._queue = WorkQueue("pod conditions", cap=30.0)

    async def run(self) -> None:
        try:
            await self._queue.run(self._write, WORKERS)
        finally:
            self._queue.close()

    def refused(self, pod: Pod, why: str) -> None:
        """It fits nowhere, or cannot be placed here at all."""
        if self._say(pod, PodCondition(SCHEDULED, "False", "Unschedulable", why)):
            self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", why)

    def scheduled(self, pod: Pod, node: str, holdings: tuple[DeviceHolding, ...]) -> None:
        note = f"Assigned {pod.key} to {node}"
        if holdings:
            devices = ", ".join(
                f"{device} ({units})" if units > 1 else device
                for device, units in sorted(amounts(holdings).items())
            )
            note += f", with {devices}"
        self._recorder.event(pod, "Normal", "Scheduled", "Binding", note)

    def devices_lost(self, pod: Pod, reason: str, why: str) -> None:
        if self._say(pod, PodCondition(DEVICES, "False", reason, why)):
            self._recorder.event(pod, "Warning", reason, "Watching", why)

    def devices_back(self, pod: Pod) -> None:
        """Said only of pods of which the contrary was."""
        if any(each.type == DEVICES and each.status == "False" for each in pod.status.conditions):
            back = "All devices are there and healthy."
            self._say(pod, PodCondition(DEVICES, "True", "Available", back))

    def _say(self, pod: Pod, said: PodCondition) -> bool:
        """True if that is news."""
        key = f"{pod.metadata.uid} {said.type}"
        if has_condition(pod, said) or self._said.get(key) == said:
            return False
        self._said[key] = said
        self._queue.add(key)
        return True

    async def _write(self, key: str) -> None:
        uid, _, type_ = key.partition(" ")
        pod, said = self._pods.get(uid), self._said.get(key)
        outdated = pod is not None and type_ == SCHEDULED and pod.spec.node_name
        if pod is None or said is None or outdated or has_condition(pod, said):
            self._said.pop(key, None)
            return
        try:
            body = condition(pod, said)
            await self._api.apply(Pod, body, manager=MANAGERS[type_], sub="status")
        except ApiNotFound:
            pass
        if self._said.get(key) == said:
            del self._said[key]


def has_condition(pod: Pod, said: PodCondition) -> bool:
    return any(
        (each.type, each.status, each.reason, each.message)
        == (said.type, said.status, said.reason, said.message)
        for each in pod.status.conditions
    )


def condition(pod: Pod, said: PodCondition) -> dict[str, object]:
    """For this version of the pod only: by the next one it may be bound, and this untrue."""
    meta = pod.metadata
    before = next((each for each in pod.status.conditions if each.type == said.type), None)
    since = before.last_transition_time if before and before.status == said.status else None
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
                {**msgspec.to_builtins(said), "lastTransitionTime": since or timestamp()}
            ]
        },
    }
