"""What users are told: events on guests and Machines, queues in the ledger; the controller calls.

An event is written once until there is something new, a queue when it changed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping

import structlog

from dovetail.core.errors import DovetailError
from dovetail.kube.runtime.events import Recorder
from dovetail.ledger.machines.queue import GroupQueue, QueuedGuest
from dovetail.machines.leases import LeaseNotice
from dovetail.machines.line import GuestLine
from dovetail.machines.pods import type_of
from dovetail.machines.selling.waiting import Waiting
from dovetail.podfit.objects import KubeObject, Pod
from dovetail.service.machine_units import MachineLedger

LOG = structlog.get_logger("dovetail.kube.machines")

ACTION = "Selling"
QUEUE_SECONDS = 1.0
"""Between two writes of queues."""
LONGEST_QUEUE = 1000
"""Guests that are told of one group: as many as users like may wait, but units that are held are
bounded by the stock."""


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


class QueueKeeper:
    """Keeps queues in the ledger, beside the controller: no sale waits for them.

    The controller leaves the newest line of a group here after each plan. All that changed since is
    one transaction, at most every so many seconds; what could not be written is written with what
    comes next, or by itself.
    """

    def __init__(self, ledger: MachineLedger, interval: float = QUEUE_SECONDS) -> None:
        self._ledger = ledger
        self._interval = interval
        self._lines: dict[str, tuple[GuestLine, Mapping[str, int]] | None] = {}
        """By group: what is to be told next; None: nothing any more."""
        self._kept: dict[str, GroupQueue] = {}
        """By group: what was written in this term."""
        self._inherited: set[str] = set()
        """Groups whose queue in the ledger is of another term."""
        self._is_due = asyncio.Event()

    async def begin(self) -> frozenset[str]:
        """A term begins: what another leader wrote is not known. Groups that have a queue, whose
        guests may all be gone by now."""
        self._lines.clear()
        self._kept.clear()
        self._inherited = set(await self._ledger.queued_groups())
        return frozenset(self._inherited)

    def tell(self, group: str, line: GuestLine, lent_seconds: Mapping[str, int]) -> None:
        self._lines[group] = line, lent_seconds
        self._is_due.set()

    def drop(self, group: str) -> None:
        self._lines[group] = None
        self._is_due.set()

    async def run(self) -> None:
        """Write what changed, until cancelled."""
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            try:
                await self.write()
            except DovetailError as error:
                LOG.warning("queues not written", error=str(error))
                self._is_due.set()
            await asyncio.sleep(self._interval)

    async def write(self) -> None:
        """Raises what the ledger raises; then all of it is still to be told."""
        lines, self._lines = self._lines, {}
        queues = {group: None if each is None else queue_of(*each) for group, each in lines.items()}
        changed = {
            group: queue
            for group, queue in queues.items()
            if group in self._inherited or self._kept.get(group) != queue
        }
        if not changed:
            return
        try:
            await self._ledger.set_queues(changed)
        except DovetailError:
            self._lines = lines | self._lines
            raise
        self._inherited -= changed.keys()
        for group, queue in changed.items():
            self._kept.pop(group, None)
            if queue is not None:
                self._kept[group] = queue


def queue_of(line: GuestLine, lent_seconds: Mapping[str, int]) -> GroupQueue:
    return GroupQueue(
        waiting=dict(Counter(map(type_of, line.waiting))),
        guests=tuple(
            queued_guest(pod, line.reasons.get(pod.metadata.uid))
            for pod in line.waiting[:LONGEST_QUEUE]
        ),
        lent_seconds=dict(lent_seconds),
        pods={each.metadata.uid: each.metadata.name for each in line.holders},
    )


def queued_guest(pod: Pod, why: Waiting | None) -> QueuedGuest:
    meta = pod.metadata
    return QueuedGuest(
        uid=meta.uid,
        namespace=meta.namespace,
        pod=meta.name,
        type=type_of(pod),
        since=meta.creation_timestamp or None,
        reason=None if why is None else why.reason.value,
        message="" if why is None else why.message,
    )
