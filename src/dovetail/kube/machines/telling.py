"""What users are told: events on guests and Machines, each once until there is something new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.kube.runtime.events import Recorder
from dovetail.machines.leases import LeaseNotice
from dovetail.machines.selling.waiting import Waiting
from dovetail.podfit.objects import KubeObject, Pod

ACTION = "Selling"


class Teller:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: dict[str, dict[str, tuple[str, str]]] = {}
        """By group and uid: reason and words."""

    def sold(self, pod: Pod, type_name: str, node: str) -> None:
        self._recorder.event(
            pod, "Normal", "UnitSold", ACTION, f"has a unit of {type_name} on node {node}"
        )

    def conflict(self, pod: Pod, words: str) -> None:
        self._recorder.event(pod, "Warning", "UnitTaken", ACTION, words)

    def group(
        self,
        name: str,
        guests: Mapping[str, Pod],
        waiting: Mapping[str, Waiting],
        notices: Iterable[LeaseNotice] = (),
    ) -> None:
        """Why guests of a group wait, and what becomes of leases; what was said is not repeated."""
        before = self._told.get(name, {})
        now: dict[str, tuple[str, str]] = {}
        for uid, why in waiting.items():
            now[uid] = (why.reason.value, why.message)
        for notice in notices:
            reason = "LeaseEnded" if notice.has_ended else "LeaseEnding"
            now[notice.pod.metadata.uid] = (reason, notice.message)
        for uid, (reason, words) in now.items():
            if before.get(uid) != (reason, words) and uid in guests:
                self._recorder.event(guests[uid], "Warning", reason, ACTION, words)
        self._told[name] = now

    def machine(self, machine: KubeObject, reason: str, words: str) -> None:
        """Of a Machine: what is wrong with it; empty words: nothing any more."""
        told = self._told.setdefault("", {})
        uid = machine.metadata.uid
        if words and told.get(uid) != (reason, words):
            self._recorder.event(machine, "Warning", reason, "Planning", words)
        told[uid] = (reason, words)
