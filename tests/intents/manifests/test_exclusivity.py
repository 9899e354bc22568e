"""QoS class, and the recipe for exclusive CPUs."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.intents.manifests.exclusivity import CpuExclusivity, exclusivity_of
from dovetail.intents.manifests.workloads import pods_of
from tests.intents.manifests.charts import app, container, workload

EXACT: dict[str, Any] = {"cpu": "4", "memory": "1G"}


def report(*containers: dict[str, Any], pinning: Any = (), **spec: Any) -> CpuExclusivity:
    (found,) = pods_of(app(workload("Pod", "web", *containers, **spec)), "default")
    return exclusivity_of(found.pod, pinning)


def test_whole_cpus_in_a_guaranteed_pod_are_exclusive() -> None:
    found = report(container(requests=EXACT, limits=EXACT), pinning=[True, True])
    assert found == CpuExclusivity(qos="Guaranteed", exclusive={"main": 4}, obstacles=())


def test_limits_alone_are_enough() -> None:
    assert report(container(limits=EXACT)).exclusive == {"main": 4}


def test_a_sidecar_without_limits_spoils_it() -> None:
    """All containers count; EMCO never looked."""
    found = report(container(limits=EXACT), container("log", requests={"cpu": "100m"}))
    assert found.qos == "Burstable"
    assert found.exclusive == {}
    assert found.obstacles == (
        "the pod is Burstable, not Guaranteed",
        "container log: no cpu limit",
        "container log: no memory limit",
        "container log: 100m CPUs are no whole number",
    )


def test_an_init_container_spoils_it_too() -> None:
    found = report(container(limits=EXACT), initContainers=[container("init")])
    assert (found.qos, found.exclusive) == ("Burstable", {})


def test_requests_below_limits() -> None:
    found = report(container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1G"}))
    assert "container main: cpu request 1 is not its limit 2" in found.obstacles


def test_fractions_of_cpus_are_shared() -> None:
    parts = {"cpu": "1500m", "memory": "1G"}
    found = report(container("a", limits=parts), container("b", limits=EXACT))
    assert found.qos == "Guaranteed"
    assert found.exclusive == {"b": 4}
    assert found.obstacles == ("container a: 1500m CPUs are no whole number",)


@pytest.mark.parametrize(
    ("pinning", "words"),
    [
        ([True, False], "a node that it goes to does not pin CPUs"),
        ([None], "of a node that it goes to it is not known whether it pins CPUs"),
    ],
)
def test_nodes_have_to_pin(pinning: list[bool | None], words: str) -> None:
    assert report(container(limits=EXACT), pinning=pinning).obstacles == (words,)


def test_devices_do_not_count_for_the_class() -> None:
    found = report(container(limits={"intel.com/qat": "1"}))
    assert found.qos == "BestEffort"
