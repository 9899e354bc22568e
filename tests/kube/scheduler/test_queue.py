"""The queue: who comes next, who waits for how long, and what wakes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.kube.scheduler.queue import (
    QueuedPod,
    SchedulingQueue,
    Wake,
)
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import ObjectMeta, Pod, PodSpec

STALE = Timings().stale
NEVER = 1e9


def wake(queue: SchedulingQueue, what: Wake, now: float) -> int:
    queue.cluster_changed(what)
    return queue.unpark_helped(now)


def pod(uid: str, priority: int = 0, node_selector: dict[str, str] | None = None) -> Pod:
    meta = ObjectMeta(name=uid, namespace="ns", uid=uid)
    return Pod(metadata=meta, spec=PodSpec(priority=priority, node_selector=node_selector or {}))


def taken(queue: SchedulingQueue, now: float = 0.0) -> list[str]:
    """Everybody who is ready, in order."""
    found: list[QueuedPod] = []
    while (entry := queue.take(now)) is not None:
        found.append(entry)
    return [entry.pod.metadata.uid for entry in found]


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_priority_comes_first_then_arrival(priorities: list[int]) -> None:
    queue = SchedulingQueue()
    for number, priority in enumerate(priorities):
        queue.add(pod(str(number), priority))
    wanted = sorted(range(len(priorities)), key=lambda number: (-priorities[number], number))
    assert taken(queue) == [str(number) for number in wanted]


def test_a_pod_in_flight_is_not_taken_twice() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    assert taken(queue) == ["a"]
    queue.add(pod("a"))
    assert taken(queue) == []
    queue.retry("a")
    assert taken(queue) == ["a"]


def test_a_pod_that_failed_waits_longer_each_time_to_a_limit() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    waits = []
    for _ in range(7):
        assert taken(queue, NEVER) == ["a"]
        queue.back_off("a", 0.0)
        waits.append(queue.next_due())
    assert waits == [1, 2, 4, 8, 10, 10, 10]
    entry = queue.find("a")
    assert entry is not None
    entry.attempts = 10_000
    queue.back_off("a", 0.0)
    assert entry.due == Timings().longest_backoff
    queue = SchedulingQueue()
    queue.add(pod("a"))
    now = 0.0
    for wait in (1.0, 2.0, 4.0):
        assert taken(queue, now) == ["a"]
        queue.back_off("a", now)
        assert queue.next_due() == now + wait
        assert taken(queue, now + wait - 0.01) == []
        now += wait


def test_a_parked_pod_wakes_by_what_it_hopes_for_only() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    taken(queue)
    queue.park("a", 0.0, Wake.NODE | Wake.CLASS)
    assert wake(queue, Wake.GONE | Wake.PLACED, 5.0) == 0
    assert taken(queue, 5.0) == []
    assert wake(queue, Wake.CLASS | Wake.GONE, 5.0) == 1
    assert taken(queue, 5.0) == ["a"]


def test_a_pod_that_is_woken_still_waits_out_its_back_off() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    taken(queue)
    queue.park("a", 0.0, Wake.NODE)
    wake(queue, Wake.NODE, 0.5)
    assert taken(queue, 0.9) == []
    assert taken(queue, 1.0) == ["a"]


def test_a_parked_pod_whose_maker_changed_it_is_tried_at_once() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    taken(queue)
    queue.park("a", 0.0, Wake(0))
    queue.add(pod("a"))
    assert taken(queue) == []
    queue.add(pod("a", node_selector={"zone": "x"}))
    assert taken(queue) == ["a"]


def test_a_pod_that_waited_too_long_is_tried_whatever_happened() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    taken(queue)
    queue.park("a", 0.0, Wake(0))
    assert queue.unpark_stale(STALE - 1) == 0
    assert queue.unpark_stale(STALE) == 1
    assert taken(queue, STALE) == ["a"]


def test_what_is_dropped_comes_no_more() -> None:
    queue = SchedulingQueue()
    for uid in "abc":
        queue.add(pod(uid))
    queue.drop("a")
    assert taken(queue) == ["b", "c"]
    queue.park("b", 0.0, Wake.NODE)
    queue.back_off("c", 0.0)
    queue.drop("b")
    queue.drop("c")
    wake(queue, Wake.NODE, 100.0)
    assert taken(queue, 100.0) == []
    assert len(queue) == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "take", "retry", "back off", "park", "wake", "drop"]),
        st.sampled_from("abcd"),
    ),
    max_size=40,
)


@given(STEPS)
def test_no_pod_is_lost_and_none_is_in_flight_twice(steps: list[tuple[str, str]]) -> None:
    queue, there, flying, now = SchedulingQueue(), set[str](), set[str](), 0.0
    for what, uid in steps:
        now += 0.5
        match what:
            case "add":
                queue.add(pod(uid))
                there.add(uid)
            case "take":
                entry = queue.take(now)
                if entry is not None:
                    assert entry.pod.metadata.uid not in flying
                    flying.add(entry.pod.metadata.uid)
            case "wake":
                wake(queue, Wake.NODE, now)
            case "drop":
                queue.drop(uid)
                there.discard(uid)
                flying.discard(uid)
            case _ if uid in flying:
                flying.discard(uid)
                if what == "retry":
                    queue.retry(uid)
                elif what == "park":
                    queue.park(uid, now, Wake.NODE)
                else:
                    queue.back_off(uid, now)
    wake(queue, Wake.NODE, now)
    assert set(taken(queue, now + 100)) == there - flying
    assert sum(queue.depths().values()) == len(there)


def test_a_pod_that_is_woken_comes_early_where_nobody_is_ready() -> None:
    """Those that failed do not: time may heal them, nothing else."""
    queue = SchedulingQueue()
    for uid in "abc":
        queue.add(pod(uid))
    taken(queue)
    queue.park("a", 0.5, Wake.NODE)
    queue.park("b", 0.0, Wake.NODE)
    queue.back_off("c", 0.0)
    assert queue.take_early() is None
    wake(queue, Wake.NODE, 0.6)
    assert (queue.next_due(), taken(queue, 0.6)) == (1.0, [])
    early = [queue.take_early(), queue.take_early(), queue.take_early()]
    assert [entry and entry.pod.metadata.uid for entry in early] == ["b", "a", None]
    assert taken(queue, 10.0) == ["c"]


def test_a_pod_that_is_woken_and_then_changed_is_ready() -> None:
    queue = SchedulingQueue()
    queue.add(pod("a"))
    taken(queue)
    queue.park("a", 0.0, Wake.NODE)
    wake(queue, Wake.NODE, 0.1)
    queue.add(pod("a", node_selector={"zone": "x"}))
    assert taken(queue, 0.2) == ["a"]
    assert queue.take_early() is None
