"""Random histories: a standby answers like a fresh start, and no helpful event is missed."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.scheduler.decide import Choice, choice_of, device_choice
from dovetail.kube.scheduler.pod_requirements import PodRequirements, RequirementsCache
from dovetail.kube.scheduler.queue import Wake
from dovetail.kube.scheduler.state import ClusterState
from tests.kube.scheduler.histories import CLASSES, NODES, History, a_pod, with_class

EVENTS_OF_AN_HOUR = 120


def waiting(rng: Random, count: int) -> list[PodRequirements]:
    """What pods that wait require; some ask for devices."""
    cache = RequirementsCache()
    pods = [a_pod(rng, f"waiting-{number}") for number in range(count)]
    return [
        cache.of(with_class(pod, rng.choice(CLASSES)) if rng.random() < 0.4 else pod)
        for pod in pods
    ]


def answers(state: ClusterState, required: PodRequirements) -> dict[str, object]:
    """What the state says of each node: the score where the pod fits, and its devices there."""
    fitting = state.nodes.filter(required.pod_request).mask
    if required.device_requests:
        fitting = fitting & state.inventory.fits(required.device_requests)
    scores = state.nodes.score(required.pod_request, fitting)
    found: dict[str, object] = {}
    for node in NODES:
        row = state.rows.find(node)
        if row is not None and fitting[row]:
            chosen = device_choice(state, node, required, Strategy.FIRST_FIT)
            found[node] = round(float(scores[row]), 6), chosen
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_standby_that_only_watched_answers_like_a_fresh_start(seed: int) -> None:
    rng = Random(seed)
    history = History(rng)
    for _ in range(2):
        for _ in range(rng.choice((5, 30, EVENTS_OF_AN_HOUR))):
            history.step()
        standby, fresh = history.state, history.fresh()
        for name in fresh.classes:
            assert standby.inventory.status(name) == fresh.inventory.status(name)
        assert standby.classes == fresh.classes
        for required in waiting(rng, 4):
            assert answers(standby, required) == answers(fresh, required)
            here, there = (
                choice_of(each, required, Strategy.FIRST_FIT) for each in (standby, fresh)
            )
            assert type(here) is type(there)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32))
def test_no_event_that_makes_room_leaves_a_pod_that_waits_asleep(seed: int) -> None:
    """The table of who may be helped by what, against what does help."""
    rng = Random(seed)
    history = History(rng)
    for _ in range(25):
        history.step()
    pods = waiting(rng, 6)
    fitted = [fits(history.state, each) for each in pods]
    for _ in range(60):
        history.queue.changes = Wake(0)
        before = [history.state.change_count(each.wake_on) for each in pods]
        happened = history.step()
        for number, required in enumerate(pods):
            now = fits(history.state, required)
            if now and not fitted[number]:
                assert history.queue.changes & required.wake_on, happened
                assert history.state.change_count(required.wake_on) > before[number], happened
            fitted[number] = now


def fits(state: ClusterState, required: PodRequirements) -> bool:
    return isinstance(choice_of(state, required, Strategy.FIRST_FIT), Choice)


def test_the_histories_are_about_something() -> None:
    """Pods fit and do not, with devices and without."""
    rng = Random(1)
    history, found = History(rng), []
    for _ in range(200):
        history.step()
        found += [
            (bool(each.device_requests), fits(history.state, each)) for each in waiting(rng, 2)
        ]
    shares = np.unique(found, axis=0)
    assert len(shares) == 4
