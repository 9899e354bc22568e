"""Scheduling queue: pods that are ready, that wait out a failure, or that wait for a change.

The state puts pods in and says what changed in the cluster; the scheduling loop takes pods out and
sleeps until the queue is woken. Ready pods come by priority, then in the order of their arrival. A
pod that failed waits longer each time. A pod that fits nowhere is not tried again until something
happens that could help it, or until it has waited so long that somebody may have missed what
happened. Woken, it waits out its back-off behind others; where nobody is ready it comes early, if
the loop has time for that. No I/O, no clock: the caller says what time it is.
"""

from __future__ import annotations

import asyncio
import heapq
from enum import IntFlag, auto
from itertools import count

import msgspec

from dovetail.aio.backoff import doubling
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import Pod


class Wake(IntFlag):
    """What happened that may help a pod that fits nowhere; `pod_requirements` says whom."""

    NODE = auto()
    """A node came, or changed in something that pods can tell."""
    NODE_GONE = auto()
    """And with it its domains, and pods that were in somebody's way."""
    GONE = auto()
    """A pod ended, or a decision was taken back."""
    RESIZED = auto()
    """A pod on a node counts for another amount than before."""
    PLACED = auto()
    """A pod got its node: others may want to be near it."""
    RELABELLED = auto()
    """A pod on a node has other labels, or began to leave: selectors may see it otherwise."""
    NAMESPACE = auto()
    """A namespace has other labels: the same for selectors of namespaces."""
    CLASS = auto()
    """A resource class came or changed."""
    DEVICES = auto()
    """Devices came, changed, were given back, or became healthy."""


class QueuedPod(msgspec.Struct):
    """A pod that waits or is being worked on."""

    pod: Pod
    arrived: int
    attempts: int = 0
    conflicts: int = 0
    """Times in a row that others were faster."""
    state: str = "ready"
    """`ready`, `backing off`, `parked` or `in flight`."""
    due: float = 0.0
    """When its back-off ends."""
    failed: float = 0.0
    """When it was last found to fit nowhere."""
    wake_on: Wake = Wake(0)
    """What could help it, while it is parked."""
    is_woken: bool = False
    """While it is backing off: not from a failure, but from being found to fit nowhere."""


class SchedulingQueue:
    """Of the pods that name this scheduler. Used on the event loop only."""

    def __init__(self, name: str = "dovetail", timings: Timings | None = None) -> None:
        self._name = name
        self._timings = timings or Timings()
        self.woken = asyncio.Event()
        """Set when there may be something to do; the loop clears it."""
        self.changes = Wake(0)
        """What changed in the cluster since parked pods were last looked at."""
        self._entries: dict[str, QueuedPod] = {}
        self._ready: list[tuple[int, int, str]] = []
        self._due: list[tuple[float, int, str]] = []
        self._woken: list[tuple[float, int, str]] = []
        """Those of the back-offs that may be broken off."""
        self._parked: dict[str, QueuedPod] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._entries)

    def wake(self) -> None:
        """There may be something to do."""
        self.woken.set()

    def cluster_changed(self, what: Wake) -> None:
        """Something happened that may help parked pods: `unpark_helped` looks, when it is time."""
        self.changes |= what
        self.woken.set()

    def offer(self, pod: Pod) -> None:
        """A pod that has no node is new or has changed: it is added if it waits for this scheduler,
        and dropped if it does not, or not any more."""
        if is_ours(pod, self._name):
            self.add(pod)
            self.woken.set()
        else:
            self.drop(pod.metadata.uid)

    def add(self, pod: Pod) -> None:
        """A pod is new or has changed; what its maker changed may be just what it lacked."""
        uid = pod.metadata.uid
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = QueuedPod(pod, next(self._numbers))
            self._make_ready(entry)
            return
        changed = is_request_changed(entry.pod, pod)
        entry.pod = pod
        if changed and (entry.state == "parked" or entry.is_woken):
            self._make_ready(entry)

    def drop(self, uid: str) -> None:
        """The pod is bound, over or gone."""
        self._entries.pop(uid, None)
        self._parked.pop(uid, None)

    def find(self, uid: str) -> QueuedPod | None:
        return self._entries.get(uid)

    def take(self, now: float) -> QueuedPod | None:
        """The next pod to decide about; it is in flight until it is given back or dropped."""
        self._collect(now)
        while self._ready:
            _, arrived, uid = heapq.heappop(self._ready)
            entry = self._entries.get(uid)
            if entry is not None and entry.state == "ready" and entry.arrived == arrived:
                return self._taken(entry)
        return None

    def take_early(self) -> QueuedPod | None:
        """For when nobody is ready: the pod that was woken and has least of its back-off left."""
        while self._woken:
            entry = self._waiting(*heapq.heappop(self._woken))
            if entry is not None:
                return self._taken(entry)
        return None

    def retry(self, uid: str) -> None:
        """At once: it was no fault of the pod's."""
        if (entry := self._entries.get(uid)) is not None:
            entry.conflicts += 1
            self._make_ready(entry)

    def retry_parked(self, uid: str) -> None:
        """At once, if it waits for something to happen: it did."""
        if uid in self._parked:
            self.retry(uid)

    def back_off(self, uid: str, now: float) -> None:
        """Something failed that time may heal."""
        if (entry := self._entries.get(uid)) is not None:
            entry.due, entry.conflicts = now + self._backoff(entry), 0
            self._wait(entry, is_woken=False)

    def park(self, uid: str, now: float, wake_on: Wake) -> None:
        """It fits nowhere now."""
        if (entry := self._entries.get(uid)) is not None:
            entry.state, entry.wake_on = "parked", wake_on
            entry.failed, entry.due = now, now + self._backoff(entry)
            entry.conflicts = 0
            self._parked[uid] = entry

    def unpark_helped(self, now: float) -> int:
        """Parked pods that the changes could help are tried again, when their back-off is over."""
        what, self.changes = self.changes, Wake(0)
        helped = [uid for uid, entry in self._parked.items() if entry.wake_on & what]
        self._unpark(helped, now)
        return len(helped)

    def unpark_stale(self, now: float) -> int:
        stale = self._timings.stale
        old = [uid for uid, entry in self._parked.items() if now - entry.failed >= stale]
        self._unpark(old, now)
        return len(old)

    @property
    def has_woken(self) -> bool:
        """Whether there may be somebody for `take_early`."""
        return bool(self._woken)

    def next_due(self) -> float | None:
        """When the next back-off ends."""
        return min((heap[0][0] for heap in (self._due, self._woken) if heap), default=None)

    def depths(self) -> dict[str, int]:
        found = {"ready": 0, "backing off": 0, "parked": 0, "in flight": 0}
        for entry in self._entries.values():
            found[entry.state] += 1
        return found

    def _unpark(self, uids: list[str], now: float) -> None:
        for uid in uids:
            entry = self._parked[uid]
            if entry.due <= now:
                self._make_ready(entry)
            else:
                self._wait(entry, is_woken=True)

    def _backoff(self, entry: QueuedPod) -> float:
        """Twice as long each time, to a limit."""
        timings = self._timings
        return doubling(max(entry.attempts, 1), timings.first_backoff, timings.longest_backoff)

    def _taken(self, entry: QueuedPod) -> QueuedPod:
        entry.state, entry.is_woken = "in flight", False
        entry.attempts += 1
        return entry

    def _make_ready(self, entry: QueuedPod) -> None:
        uid = entry.pod.metadata.uid
        self._parked.pop(uid, None)
        entry.state, entry.is_woken = "ready", False
        heapq.heappush(self._ready, (-entry.pod.spec.priority, entry.arrived, uid))

    def _wait(self, entry: QueuedPod, *, is_woken: bool) -> None:
        uid = entry.pod.metadata.uid
        self._parked.pop(uid, None)
        entry.state, entry.is_woken = "backing off", is_woken
        heapq.heappush(self._woken if is_woken else self._due, (entry.due, entry.arrived, uid))

    def _waiting(self, due: float, arrived: int, uid: str) -> QueuedPod | None:
        """Whose back-off it is, if it still is one."""
        entry = self._entries.get(uid)
        if entry is None or entry.state != "backing off":
            return None
        return entry if (entry.due, entry.arrived) == (due, arrived) else None

    def _collect(self, now: float) -> None:
        """Those whose back-off is over become ready."""
        for heap in (self._due, self._woken):
            while heap and heap[0][0] <= now:
                entry = self._waiting(*heapq.heappop(heap))
                if entry is not None:
                    self._make_ready(entry)


def is_ours(pod: Pod, name: str) -> bool:
    """Whether a pod waits for the scheduler of this name, and may be placed."""
    return (
        pod.spec.scheduler_name == name
        and not pod.spec.scheduling_gates
        and pod.metadata.deletion_timestamp is None
    )


def is_request_changed(old: Pod, new: Pod) -> bool:
    """Whether the pod's request changed. Status does not count: the scheduler itself writes it."""
    return old.spec != new.spec or old.metadata.labels != new.metadata.labels
