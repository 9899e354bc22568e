"""Event recorder: Events for users (`kubectl describe`), sent in the background for controllers.

Whoever tells one neither waits nor fails. The same event about the same object is sent once and
then counted; a bounded number wait to be sent, at a bounded rate; what is too much is dropped and
counted in the metrics.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import structlog

from dovetail.aio.token_bucket import TokenBucket
from dovetail.kube.api.port import ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.runtime.metrics import EVENTS
from dovetail.podfit.objects import Event, KubeObject

LOG = structlog.get_logger("dovetail.kube.events")

Type = Literal["Normal", "Warning"]
LONGEST_NOTE = 1024
LONGEST_NAME = 230
"""Of the object's name in the event's: both may have 253 characters."""
DEFAULT_NAMESPACE = "default"
"""Events about objects without a namespace live there."""


class EventKey(msgspec.Struct, frozen=True):
    """What makes two events the same."""

    uid: str
    type: Type
    reason: str
    action: str
    note: str


class EventSeries(msgspec.Struct):
    """An event and how often it happened."""

    namespace: str
    body: dict[str, Any]
    name: str = ""
    """Of the event that was sent, if one was."""
    count: int = 0
    sent: int = 0
    last: str = ""


class EventLimits(msgspec.Struct, frozen=True, kw_only=True):
    waiting: int = 1000
    remembered: int = 4096
    rate: float = 20.0
    """Events a second in the long run."""
    burst: float = 100.0


class Recorder:
    def __init__(
        self,
        api: KubeApi,
        controller: str,
        instance: str,
        *,
        limits: EventLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._reporting = {"reportingController": controller, "reportingInstance": instance[-128:]}
        self._limits = limits or EventLimits()
        self._bucket = TokenBucket(self._limits.rate, self._limits.burst, clock)
        self._stories: OrderedDict[EventKey, EventSeries] = OrderedDict()
        self._waiting: OrderedDict[EventKey, None] = OrderedDict()
        self._some = asyncio.Event()

    def event(self, regarding: KubeObject, type: Type, reason: str, action: str, note: str) -> None:  # noqa: A002
        """Tell users that something happened to `regarding`, when doing `action`."""
        note = shortened(note)
        subject = EventKey(regarding.metadata.uid or regarding.key, type, reason, action, note)
        if subject not in self._waiting and len(self._waiting) >= self._limits.waiting:
            EVENTS.labels("dropped").inc()
            return
        story = self._stories.get(subject)
        if story is None:
            story = self._stories[subject] = self._story(regarding, subject)
        self._stories.move_to_end(subject)
        story.count += 1
        story.last = microtime()
        self._waiting[subject] = None
        self._some.set()
        while len(self._stories) > self._limits.remembered:
            forgotten, _ = self._stories.popitem(last=False)
            if forgotten in self._waiting:
                del self._waiting[forgotten]
                EVENTS.labels("dropped").inc()

    async def run(self) -> None:
        """Send what was told, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self._bucket.wait_seconds())
            await self.send_next()

    async def send_next(self) -> None:
        """The one that waits longest, as it is by now."""
        if self._waiting:
            subject, _ = self._waiting.popitem(last=False)
            story = self._stories[subject]
            try:
                outcome = await self._send(story)
            except (ApiError, ApiUnreachable) as error:
                outcome = "failed"
                LOG.info("event not sent", reason=subject.reason, error=str(error))
            EVENTS.labels(outcome).inc()
        if not self._waiting:
            self._some.clear()

    async def _send(self, story: EventSeries) -> str:
        count = story.count
        if story.name:
            series = {"count": count, "lastObservedTime": story.last}
            try:
                await self._api.merge(
                    Event, story.name, {"series": series}, namespace=story.namespace
                )
                story.sent = count
                return "repeated"
            except ApiNotFound:
                # Events are kept for an hour. This one begins anew.
                story.count -= story.sent
                story.name, story.sent, count = "", 0, story.count
        # Names end in letters or digits before each dot.
        about = story.body["regarding"]["name"][:LONGEST_NAME].rstrip("-.")
        name = f"{about}.{uuid.uuid4().hex[:16]}"
        meta = {"name": name, "namespace": story.namespace}
        body = {**story.body, "metadata": meta, "eventTime": story.last}
        if count > 1:
            body["series"] = {"count": count, "lastObservedTime": story.last}
        await self._api.create(Event, body, namespace=story.namespace)
        story.name, story.sent = name, count
        return "sent"

    def _story(self, regarding: KubeObject, subject: EventKey) -> EventSeries:
        meta = regarding.metadata
        about = {
            "apiVersion": regarding.API.api_version,
            "kind": regarding.API.kind,
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        body = {
            "regarding": {name: value for name, value in about.items() if value},
            "type": subject.type,
            "reason": subject.reason,
            "action": subject.action,
            "note": subject.note,
            **self._reporting,
        }
        return EventSeries(meta.namespace or DEFAULT_NAMESPACE, body)


def shortened(note: str) -> str:
    """No longer than the API takes, and no half characters."""
    data = note.encode()
    if len(data) <= LONGEST_NOTE:
        return note
    return data[: LONGEST_NOTE - 3].decode(errors="ignore") + "..."


def microtime() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
