"""Events: counted instead of repeated, bounded in every way, never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dovetail.kube.api.port import ApiUnreachable
from dovetail.kube.runtime.events import EventLimits, Recorder
from dovetail.podfit.objects import Event, Node, Pod
from dovetail.telemetry.metrics import METRICS
from tests.support.kube.memory import MemoryApi, failing
from tests.support.kube.virtual import now

pytestmark = pytest.mark.virtual_time


async def some_pod(api: MemoryApi, name: str = "a") -> Pod:
    await api.create(Pod, {"metadata": {"name": name, "namespace": "here"}})
    return await api.get(Pod, name, "here")


def recorder(api: MemoryApi, **limits: Any) -> Recorder:
    return Recorder(api, "dovetail-scheduler", "me-1", limits=EventLimits(**limits), clock=now)


async def sent(told: Recorder, seconds: float = 1.0) -> None:
    await during(told.run(), seconds)


async def during(work: Coroutine[Any, Any, None], seconds: float) -> None:
    task = asyncio.create_task(work)
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task])


def counted(outcome: str) -> float:
    return (
        METRICS.registry.get_sample_value("dovetail_kube_events_total", {"outcome": outcome}) or 0.0
    )


async def test_an_event_says_everything_that_the_api_wants_to_know() -> None:
    api = MemoryApi()
    pod = await some_pod(api)
    events = recorder(api)
    events.event(pod, "Warning", "FailedScheduling", "Scheduling", "0/3 nodes fit")
    await sent(events)
    (event,) = api.objects[Event.API].values()
    assert event["metadata"]["namespace"] == "here"
    assert event["metadata"]["name"].startswith("a.")
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
        "namespace": "here",
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
    }
    assert event["type"] == "Warning"
    assert event["reason"] == "FailedScheduling"
    assert event["action"] == "Scheduling"
    assert event["note"] == "0/3 nodes fit"
    assert event["reportingController"] == "dovetail-scheduler"
    assert event["reportingInstance"] == "me-1"
    assert event["eventTime"]
    assert "series" not in event


async def test_the_same_event_is_counted_and_another_note_is_another_event() -> None:
    api = MemoryApi()
    pod, events = await some_pod(api), recorder(api)
    for _ in range(3):
        events.event(pod, "Normal", "R", "A", "same")
        await sent(events)
    events.event(pod, "Normal", "R", "A", "other")
    for _ in range(5):
        events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    found = {event.note: event for event in api.everything(Event).values()}
    assert set(found) == {"same", "other"}
    assert found["same"].series is not None
    assert found["same"].series["count"] == 8
    assert found["other"].series is None
    assert api.calls["create", "Event"] == 2
    assert api.calls["merge", "Event"] == 3


async def test_an_event_that_has_expired_begins_anew() -> None:
    api = MemoryApi()
    pod, events = await some_pod(api), recorder(api)
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    (first,) = api.everything(Event).values()
    await api.delete(Event, first.metadata.name, "here")
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    (second,) = api.everything(Event).values()
    assert second.series is None


async def test_events_about_objects_without_namespace_live_in_the_default_one() -> None:
    api = MemoryApi()
    await api.create(Node, {"metadata": {"name": "n"}})
    events = recorder(api)
    events.event(await api.get(Node, "n"), "Normal", "R", "A", "x" * 2000 + "ü")
    await sent(events)
    (event,) = api.everything(Event).values()
    assert event.metadata.namespace == "default"
    assert len(event.note.encode()) == 1024


async def test_the_rate_is_bounded_and_what_waits_too_and_drops_are_counted() -> None:
    api = MemoryApi()
    pod = await some_pod(api)
    events = recorder(api, waiting=50, rate=2, burst=10)
    before = counted("dropped")
    for n in range(70):
        events.event(pod, "Normal", "R", "A", f"note {n}")
    assert counted("dropped") - before == 20
    await sent(events, 5)
    assert 18 <= api.calls["create", "Event"] <= 21
    await sent(events, 60)
    assert api.calls["create", "Event"] == 50


async def test_what_is_remembered_is_bounded() -> None:
    api = MemoryApi()
    pod, events = await some_pod(api), recorder(api, remembered=10)
    before = counted("dropped")
    for n in range(30):
        events.event(pod, "Normal", "R", "A", f"note {n}")
    assert counted("dropped") - before == 20
    await sent(events)
    assert len(events._stories) == 10
    assert api.calls["create", "Event"] == 10


async def test_an_event_that_could_not_begin_anew_begins_later_with_the_right_count() -> None:
    api = MemoryApi()
    pod, events = await some_pod(api), recorder(api)
    for _ in range(3):
        events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    (first,) = api.everything(Event).values()
    await api.delete(Event, first.metadata.name, "here")
    api.before = failing(lambda: ApiUnreachable("away"), {"create"})
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    api.before = None
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    (second,) = api.everything(Event).values()
    assert second.series is not None
    assert second.series["count"] == 2


async def test_a_long_name_is_cut_where_a_name_may_end() -> None:
    api = MemoryApi()
    events = recorder(api)
    events.event(await some_pod(api, "a" * 229 + "-" + "b" * 20), "Normal", "R", "A", "n")
    await sent(events)
    (event,) = api.everything(Event).values()
    assert event.metadata.name.startswith("a" * 229 + ".")


async def test_an_api_that_is_away_is_nobodys_trouble() -> None:
    api = MemoryApi()
    pod, events = await some_pod(api), recorder(api)
    api.before = failing(lambda: ApiUnreachable("away"), {"create"})
    before = counted("failed")
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    assert counted("failed") - before == 1
    api.before = None
    events.event(pod, "Normal", "R", "A", "same")
    await sent(events)
    (event,) = api.everything(Event).values()
    assert event.series is not None
    assert event.series["count"] == 2
