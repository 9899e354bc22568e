"""Unit groups: so many units at once or none, for pods that are of use only together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import HOSTNAME, UNIT_GROUP, UNIT_GROUP_SIZE
from tests.kube.machines.bed import PODS, Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of

JOBS = "apis/batch/v1:jobs"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("groups")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def member_of(name: str, size: int) -> dict[str, Any]:
    return {"labels": {UNIT_GROUP: name}, "annotations": {UNIT_GROUP_SIZE: str(size)}}


def job(corner: Corner, name: str, pods: int, **about: Any) -> None:
    template = corner.template(**member_of(name, pods), restartPolicy="Never", **about)
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 10, "template": template}
    corner.create(JOBS, name, spec)


def phases(corner: Corner) -> Counter[str]:
    return Counter(each["status"]["phase"] for each in corner.bed.pods(corner.namespace).values())


def test_nothing_is_sold_before_all_are_there(corner: Corner) -> None:
    corner.sell_small(4)
    for name in ("a", "b", "c"):
        corner.guest(name, **member_of("four", 4))
    corner.await_waiting(a="GroupIncomplete", b="GroupIncomplete", c="GroupIncomplete")
    assert "1 more of its 4" in corner.why("a")
    corner.await_usage(4, 4, 0, 3)
    # Others are not held up, and if they go there are units for all again.
    corner.guest("single")
    corner.await_running("single")
    corner.guest("d", **member_of("four", 4))
    corner.bed.await_that(lambda: set(corner.waiting().values()) == {"GroupDoesNotFit"}, "no units")
    corner.await_usage(4, 3, 1, 4)
    corner.drop("single")
    corner.await_running("a", "b", "c", "d")
    corner.await_usage(4, 0, 4, 0)


def test_a_job_of_four_gets_four_units_at_once_or_none(corner: Corner) -> None:
    corner.sell_small(6, nodes=2)
    corner.guests("x", "y", "z")
    corner.await_running("x", "y", "z")
    job(corner, "training", 4)
    corner.bed.await_that(lambda: set(corner.waiting().values()) == {"GroupDoesNotFit"}, "told", 10)
    corner.await_usage(6, 3, 3, 4)
    corner.drop("x")
    corner.await_usage(6, 0, 6, 0)
    assert phases(corner) == {"Running": 6}


def test_two_groups_that_fit_one_after_the_other_do_not_take_halves(corner: Corner) -> None:
    corner.sell_small(4)
    job(corner, "one", 3)
    job(corner, "two", 3)
    corner.bed.await_that(lambda: len(corner.running()) == 3, "one of them")
    corner.await_usage(4, 1, 3, 3)
    owners = {each.rpartition("-")[0] for each in corner.running()}
    assert len(owners) == 1
    for name in corner.running():
        corner.end(name)
    corner.await_usage(4, 1, 3, 0)
    assert {each.rpartition("-")[0] for each in corner.running()} == {"one", "two"} - owners


def test_a_member_that_failed_and_is_replaced_gets_a_unit(corner: Corner) -> None:
    corner.sell_small(4)
    job(corner, "training", 4)
    corner.await_usage(4, 0, 4, 0)
    failing, *rest = corner.running()
    corner.end(failing, "Failed")
    corner.bed.await_that(lambda: phases(corner) == {"Running": 4, "Failed": 1}, "replaced")
    # Also when the others have done their work by then: it is the same Job.
    failing, *rest = corner.running()
    for name in rest:
        corner.end(name)
    corner.bed.await_that(lambda: phases(corner)["Succeeded"] == 3, "done")
    corner.end(failing, "Failed")
    corner.bed.await_that(
        lambda: phases(corner) == {"Running": 1, "Failed": 2, "Succeeded": 3}, "replaced"
    )


def test_a_job_of_more_completions_than_pods_at_a_time_comes_to_its_end(corner: Corner) -> None:
    corner.sell_small(4)
    template = corner.template(**member_of("six", 4), restartPolicy="Never")
    corner.create(JOBS, "six", {"parallelism": 4, "completions": 6, "template": template})
    corner.await_usage(4, 0, 4, 0)
    for name in corner.running():
        corner.end(name)
    corner.bed.await_that(lambda: phases(corner) == {"Running": 2, "Succeeded": 4}, "the last two")


def test_the_same_job_again_waits_until_all_its_pods_are_there(corner: Corner) -> None:
    """Pods of the one before it linger, and count for nothing."""
    corner.sell_small(2)
    job(corner, "again", 2)
    corner.await_usage(2, 0, 2, 0)
    for name in corner.running():
        corner.end(name)
    corner.bed.await_that(lambda: phases(corner) == {"Succeeded": 2}, "done")
    corner.guest("lonely", **member_of("again", 2))
    corner.await_waiting(lonely="GroupIncomplete")
    assert "1 more of its 2" in corner.why("lonely")


def test_pods_beyond_the_size_of_the_group_come_after_it(corner: Corner) -> None:
    corner.sell_small(3)
    corner.guest("holder")
    corner.await_running("holder")
    for name in ("a", "b", "c", "d"):
        corner.guest(name, **member_of("three", 3))
    corner.await_waiting(**dict.fromkeys("abcd", "GroupDoesNotFit"))
    corner.drop("holder")
    corner.await_running("a", "b", "c")
    corner.await_waiting(d="SoldOut")
    corner.end("a")
    corner.await_running("b", "c", "d")


def test_a_group_of_no_buyers_is_told_so(corner: Corner) -> None:
    corner.sell_small(2, buyers={"namespaces": ["elsewhere"]})
    for name in ("a", "b"):
        corner.guest(name, **member_of("pair", 2))
    corner.await_waiting(a="NotABuyer", b="NotABuyer")


def test_sizes_that_make_no_sense_or_differ(corner: Corner) -> None:
    corner.sell_small(4)
    corner.guest("a", **member_of("odd", 2))
    corner.guest("b", **member_of("odd", 3))
    corner.guest("c", labels={UNIT_GROUP: "unsaid"})
    corner.await_waiting(a="GroupIncomplete", b="GroupIncomplete", c="GroupIncomplete")
    assert "unit-group-size" in corner.why("a")
    assert "unit-group-size" in corner.why("c")


def test_members_with_terms_about_each_other(corner: Corner) -> None:
    nodes = corner.sell_small(6, nodes=3)
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": HOSTNAME,
                    "labelSelector": {"matchLabels": {UNIT_GROUP: "apart"}},
                }
            ]
        }
    }
    job(corner, "apart", 3, affinity=apart)
    corner.await_usage(6, 3, 3, 0)
    pods = corner.bed.pods(corner.namespace)
    assert corner.bed.by_node(pods) == dict.fromkeys(nodes, 1)


def test_members_with_needs_of_their_own(corner: Corner) -> None:
    """One that could go anywhere does not take the place of one that could not."""
    nodes = corner.add_nodes(2, cpu="2", memory="8Gi")
    corner.sell(simple_spec(nodes, 2))
    for n, node in enumerate(nodes):
        corner.guest(f"any-{n}", **member_of(f"pair-{n}", 2))
        corner.guest(f"there-{n}", **member_of(f"pair-{n}", 2), nodeSelector={HOSTNAME: node})
        corner.await_running(f"any-{n}", f"there-{n}")
        assert corner.node_of(f"there-{n}") == node
        corner.drop(f"any-{n}", f"there-{n}")


def test_a_group_that_is_given_up(corner: Corner) -> None:
    corner.sell_small(2)
    job(corner, "given-up", 3)
    corner.bed.await_that(lambda: set(corner.waiting().values()) == {"GroupDoesNotFit"}, "told")
    path = f"/apis/batch/v1/namespaces/{corner.namespace}/jobs/given-up"
    corner.bed.cluster.request("DELETE", path, {"propagationPolicy": "Background"})
    corner.bed.await_that(
        lambda: not corner.bed.get(PODS.format(corner.namespace))["items"], "pods gone"
    )
    corner.await_usage(2, 2, 0, 0)
