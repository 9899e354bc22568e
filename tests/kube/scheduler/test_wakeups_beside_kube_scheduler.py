"""Each kind of event, on a real API server: whoever it helps is placed at once, as by
kube-scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dovetail.kube.scheduler.pod_requirements import WHO_IS_HELPED
from dovetail.kube.scheduler.queue import Wake
from tests.kube.scheduler import real
from tests.kube.scheduler.wakeup_scenarios import SCENARIOS, Scenario, Side
from tests.support.kube.cluster import Cluster

AT_ONCE_SECONDS = 1.0
"""More than that only where kube-scheduler, on the same busy machine, took as much."""
LONGEST_SECONDS = 5.0
QUIET_SECONDS = 0.5


def test_every_kind_of_event_has_a_scenario() -> None:
    played = {each.kind for each in SCENARIOS.values()}
    assert played == {*WHO_IS_HELPED, Wake(0)}


@pytest.mark.timeout(400)
def test_whoever_an_event_helps_is_placed_at_once(own_cluster: Cluster, database: str) -> None:
    cluster = own_cluster
    real.install(cluster)
    cluster.start_scheduler()
    with real.scheduler(cluster, database, "scheduler") as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler")
        sides = {name: prepared(cluster, name, each) for name, each in SCENARIOS.items()}
        for name, both in sides.items():
            for side in both:
                cluster.await_that(side.has_been_refused, f"refusal ({name})")
        late = {}
        for name, (ours, *theirs) in sides.items():
            event = SCENARIOS[name].event
            # What happened before must help nobody by chance.
            time.sleep(QUIET_SECONDS)
            seconds = seconds_until_bound(ours, event)
            # After ours, for its event would help our pod, too, if it were forgotten.
            beside = max((seconds_until_bound(each, event) for each in theirs), default=0.0)
            if seconds > max(AT_ONCE_SECONDS, beside + AT_ONCE_SECONDS):
                late[name] = (seconds, beside)
        assert not late, "seconds until placed, and beside it kube-scheduler's"


def prepared(cluster: Cluster, name: str, scenario: Scenario) -> list[Side]:
    """Dovetail's side first."""
    sides = [Side(cluster, f"{name}-ours", "dovetail")]
    if scenario.has_counterpart:
        sides.append(Side(cluster, f"{name}-theirs", "default-scheduler"))
    for side in sides:
        scenario.prepare(side)
    return sides


def seconds_until_bound(side: Side, event: Callable[[Side], None]) -> float:
    event(side)
    began = time.monotonic()
    while not side.is_bound:
        passed = time.monotonic() - began
        if passed > LONGEST_SECONDS:
            return LONGEST_SECONDS
        time.sleep(0.01)
    return time.monotonic() - began
