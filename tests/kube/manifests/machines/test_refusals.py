"""What no unit can hold is refused when it is created, with the reason and the sum."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import INJECTING_CONTAINER, RESERVATION, role_labels
from tests.kube.manifests.machines.api import machine_object, one_type
from tests.kube.manifests.machines.guests import (
    GROUP,
    NAMESPACE,
    OPERATOR,
    admission,
    container,
    made,
    pod_object,
    refusal,
)
from tests.support.kube.cluster import Cluster

SPACE = "opted-in"
UNIT = "a unit of compute-xlarge has 40000m cpu, 131072Mi memory, 2 nvidia.com/gpu"
MASTERS = "--as-group=system:masters"
"""With this group one may do everything, whoever one is."""


@pytest.fixture(scope="module")
def policies(cluster: Cluster) -> Iterator[Cluster]:
    with admission(cluster) as found:
        yield found


@pytest.mark.parametrize("labels", [{}, {"imperator.tenzen-y.io/machine-group": "no-such-group"}])
def test_a_type_that_nobody_sells_is_refused_by_its_name(
    policies: Cluster, labels: dict[str, str]
) -> None:
    said = refusal(policies, SPACE, pod_object("compute-tiny", labels=labels))
    group = labels.get("imperator.tenzen-y.io/machine-group", GROUP)
    assert f"no Machine of the group {group} sells compute-tiny" in said


def test_defect_4_an_unknown_container_is_refused_with_those_there_are(policies: Cluster) -> None:
    labels = {INJECTING_CONTAINER: "trainer"}
    pod = pod_object("compute-xlarge", container("a"), container("b"), labels=labels)
    assert "there is no container trainer; there are a, b" in refusal(policies, SPACE, pod)


@pytest.mark.parametrize(
    "requests",
    [{"cpu": "40"}, {"memory": "200Gi"}, {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "3"}],
    ids=str,
)
def test_letter_l_a_pod_whose_others_leave_nothing_is_refused_with_the_sum(
    policies: Cluster, requests: dict[str, str]
) -> None:
    other = container("other", resources={"requests": requests, "limits": requests})
    said = refusal(policies, SPACE, pod_object("compute-xlarge", container("main"), other))
    assert f"spec.containers: {UNIT}; the other containers, sidecars and overhead request" in said
    assert "too little is left for main" in said


def test_the_sum_has_containers_and_sidecars(policies: Cluster) -> None:
    others = [container(name, {"cpu": "15", "memory": "1Gi"}) for name in ("main", "a", "b")]
    sidecar = container("s", {"cpu": "10500m", "memory": "1"}, restartPolicy="Always")
    said = refusal(policies, SPACE, pod_object("compute-xlarge", *others, initContainers=[sidecar]))
    assert "request 40500m cpu, 2147483649 memory, 0 nvidia.com/gpu" in said


def test_a_type_without_gpus_takes_no_pod_with_one(policies: Cluster) -> None:
    other = container("other", resources={"limits": {"nvidia.com/gpu": "1"}})
    said = refusal(policies, SPACE, pod_object("plain", container("main"), other))
    assert "0 nvidia.com/gpu; the other" in said


def test_letter_l_an_init_container_larger_than_the_unit_is_refused(policies: Cluster) -> None:
    small = container("small", {"cpu": "40", "memory": "128Gi"})
    large = container("large", {"cpu": "41"})
    said = refusal(policies, SPACE, pod_object(initContainers=[small, large]))
    assert f"spec.initContainers: {UNIT}; large" in said
    assert "requests 41000m cpu" in said


def test_an_init_container_runs_beside_the_sidecars_before_it(policies: Cluster) -> None:
    sidecar = container("sidecar", {"cpu": "1"}, restartPolicy="Always")
    starts = container("starts", {"cpu": "40"})
    assert not refusal(policies, SPACE, pod_object(initContainers=[starts, sidecar]))
    said = refusal(policies, SPACE, pod_object(initContainers=[sidecar, starts]))
    assert "starts, with overhead and the sidecars before it, requests 41000m cpu" in said


def test_a_pod_that_requests_more_than_the_unit_as_a_whole_is_refused(policies: Cluster) -> None:
    whole = {"requests": {"cpu": "41"}, "limits": {"cpu": "41"}}
    said = refusal(policies, SPACE, pod_object(resources=whole))
    assert f"spec.resources.requests: {UNIT}; the pod as a whole requests" in said
    whole = {"requests": {"cpu": "40"}, "limits": {"cpu": "40"}}
    assert not refusal(policies, SPACE, pod_object(resources=whole))


def test_letter_k_a_guest_does_not_choose_its_node(policies: Cluster) -> None:
    assert "nodeName" in refusal(policies, SPACE, pod_object(nodeName="n0"))


# -- stock ---------------------------------------------------------------------------------------


def stateful_set(name: str, namespace: str, role: str) -> dict[str, Any]:
    labels = role_labels(GROUP, "plain", role)
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container("main")]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "serviceName": name,
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def test_letter_k_nobody_poses_as_stock(policies: Cluster) -> None:
    sleeper = pod_object("plain", role=RESERVATION)
    for namespace in (SPACE, NAMESPACE, "default"):
        assert "reservation is for pods of the StatefulSets that the operator makes" in refusal(
            policies, namespace, sleeper
        )
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1"}
    sleeper["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    assert not refusal(policies, NAMESPACE, sleeper), "the StatefulSet controller's"
    assert refusal(policies, SPACE, sleeper)


def test_only_the_operator_makes_stock_and_only_where_it_is(policies: Cluster) -> None:
    refused = "stock is held by StatefulSets that the operator makes"
    creating = ("create", "-f", "-", "--dry-run=server")
    stock = stateful_set("stock", NAMESPACE, RESERVATION)
    elsewhere = stateful_set("stock", SPACE, RESERVATION)
    operator = (f"--as={OPERATOR}", MASTERS)
    policies.await_that(
        lambda: refused in policies.kubectl(*creating, given=stock, check=False), "refusal"
    )
    assert refused in policies.kubectl(*creating, *operator, given=elsewhere, check=False)
    assert "created" in policies.kubectl(*creating, *operator, given=stock)
    assert "created" in policies.kubectl(*creating, given=stateful_set("own", SPACE, "guest"))


def test_stock_is_scaled_labelled_and_collected_by_others_but_not_changed(
    policies: Cluster,
) -> None:
    """What somebody scales is put right again; what the garbage collector does has to go on."""
    stock = stateful_set("stock", NAMESPACE, RESERVATION)
    policies.kubectl("create", "-f", "-", f"--as={OPERATOR}", MASTERS, given=stock)
    its = ("statefulset", "stock", "-n", NAMESPACE)
    try:
        policies.kubectl("scale", *its, "--replicas=0")
        policies.kubectl("label", *its, "a=b")
        finalizer = '{"metadata": {"finalizers": ["example.com/held"]}}'
        policies.kubectl("patch", *its, "--type=merge", "-p", finalizer)
        changed = '{"spec": {"template": {"spec": {"hostNetwork": true}}}}'
        said = policies.kubectl("patch", *its, "--type=merge", "-p", changed, check=False)
        assert "stock is held by StatefulSets" in said
        policies.kubectl("patch", *its, "--type=merge", "-p", '{"metadata": {"finalizers": []}}')
    finally:
        policies.kubectl("delete", *its)


# -- sold out ------------------------------------------------------------------------------------


@pytest.fixture
def refusing(policies: Cluster) -> Iterator[Cluster]:
    """The type `plain` refuses when it is sold out; nothing is known of its stock."""
    spec = one_type("plain", whenSoldOut="refuse", available=2)
    policies.kubectl("create", "-f", "-", given=machine_object(spec))
    yield policies
    policies.kubectl("delete", "machine", "general-machine")


def write_free(cluster: Cluster, free: float, used: float) -> None:
    usage = {"maximum": 2, "reserved": free, "used": used, "waiting": 0}
    status = {"status": {"availableMachines": [{"name": "plain", "usage": usage, "free": free}]}}
    patching = ("patch", "machine", "general-machine", "--subresource=status", "--type=merge")
    cluster.kubectl(*patching, "-p", json.dumps(status))


def test_guests_of_a_type_that_refuses_are_refused_when_it_is_sold_out(refusing: Cluster) -> None:
    guest = pod_object("plain")
    assert not refusal(refusing, SPACE, guest), "nothing is known yet"
    write_free(refusing, 0, 2)
    refusing.await_that(lambda: bool(refusal(refusing, SPACE, guest)), "refusal")
    said = made(refusing, SPACE, guest)
    assert said["code"] == 403
    assert "plain of the group general-machine is sold out: no unit is left of 2" in said["message"]
    assert not refusal(refusing, SPACE, pod_object("compute-medium")), "another type"
    assert not refusal(refusing, "default", guest), "a namespace that is not opted in"
    write_free(refusing, 1, 1)
    refusing.await_that(lambda: not refusal(refusing, SPACE, guest), "a unit")


def test_guests_of_a_type_that_lets_wait_are_taken_when_it_is_sold_out(refusing: Cluster) -> None:
    waiting = '[{"op": "add", "path": "/spec/machineTypes/0/whenSoldOut", "value": "wait"}]'
    write_free(refusing, 0, 2)
    refusing.await_that(lambda: bool(refusal(refusing, SPACE, pod_object("plain"))), "refusal")
    refusing.kubectl("patch", "machine", "general-machine", "--type=json", "-p", waiting)
    refusing.await_that(
        lambda: not refusal(refusing, SPACE, pod_object("plain")), "a place in line"
    )
