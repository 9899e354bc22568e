"""What is counted as used, and who is refused when nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.machines.bed import PODS, Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of

FORBIDDEN = 403


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("counting")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def report(corner: Corner, pod: str, **state: Any) -> None:
    """A kubelet tells the state of its container."""
    told = {"name": "main", "image": "train", "imageID": "", "ready": False, "restartCount": 1}
    patch = {"status": {"phase": "Running", "containerStatuses": [{**told, "state": state}]}}
    path = f"{PODS.format(corner.namespace)}/{pod}/status"
    status, answer = corner.bed.cluster.request("PATCH", path, patch)
    assert status == 200, answer


# -- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("counting", "crashed"), [("bound", 1), ("spec", 0)])
def test_a_guest_whose_container_neither_runs_nor_waits(
    corner: Corner, counting: str, crashed: int
) -> None:
    """By the specification it is not in use; the scheduler charges it all the same."""
    corner.sell({**simple_spec(corner.add_nodes(1), 2), "counting": counting})
    corner.guest("a", annotations={"test/unseen": "true"}, terminationGracePeriodSeconds=5)
    corner.await_usage(2, 1, crashed, 0)
    report(corner, "a", terminated={"exitCode": 1, "reason": "Error"})
    corner.await_usage(2, 1, crashed, 0)
    report(corner, "a", waiting={"reason": "Error"})
    corner.await_usage(2, 1, crashed, 0)
    report(corner, "a", waiting={"reason": "CrashLoopBackOff"})
    corner.await_usage(2, 1, 1, 0)
    report(corner, "a", terminated={"exitCode": 1, "reason": "Error"})
    corner.await_usage(2, 1, crashed, 0)
    # Whatever is counted, its unit is sold: nobody else gets it.
    corner.guests("b", "c")
    corner.bed.await_that(lambda: len(corner.waiting()) == 1, "one waits")
    # One that is going is in use until it is gone.
    corner.drop("a", grace=None)
    corner.await_usage(2, 0, 2, 1)
    corner.bed.await_that(lambda: "a" not in corner.bed.pods(corner.namespace), "gone")
    corner.await_running("b", "c")
    corner.await_usage(2, 0, 2, 0)


# -- whenSoldOut ---------------------------------------------------------------------------------


def test_guests_are_refused_when_nothing_is_left_where_that_is_asked_for(corner: Corner) -> None:
    corner.sell_small(1, whenSoldOut="refuse")
    corner.bed.await_that(lambda: corner.free() == 1, "free")
    corner.guest("a")
    corner.await_running("a")
    corner.bed.await_that(lambda: corner.free() == 0, "sold out")
    status, answer = corner.try_guest("b")
    assert status == FORBIDDEN
    for words in ("small", corner.group, "sold out", "no unit is left of 1"):
        assert words in answer["message"]
    corner.end("a")
    corner.bed.await_that(lambda: corner.free() == 1, "free again")
    corner.guest("b")
    corner.bed.await_that(lambda: "b" in corner.running(), "b")


def test_a_job_that_was_refused_gets_its_units_when_there_are_some(corner: Corner) -> None:
    """Its controller tries again."""
    corner.sell_small(1, whenSoldOut="refuse")
    corner.guest("a")
    corner.await_running("a")
    corner.bed.await_that(lambda: corner.free() == 0, "sold out")
    spec = {"template": corner.template(restartPolicy="Never")}
    corner.create("apis/batch/v1:jobs", "patient", spec)
    corner.drop("a")
    corner.bed.await_that(lambda: len(corner.running()) == 1, "the Job's", 60)


def test_of_many_at_once_those_who_slip_through_wait(corner: Corner) -> None:
    corner.sell_small(1, whenSoldOut="refuse")
    names = [f"g{n}" for n in range(8)]
    about = {"group": corner.group, "namespace": corner.namespace}
    answers = corner.bed.create_guests(names, "small", **about)
    assert {status for status, _ in answers} <= {201, FORBIDDEN}
    corner.bed.await_that(lambda: len(corner.running()) == 1, "one")
    made = len([status for status, _ in answers if status == 201])
    corner.await_usage(1, 0, 1, made - 1)
    assert set(corner.waiting().values()) <= {"SoldOut"}
