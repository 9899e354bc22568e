"""Guests as people make them: with needs of their own, by controllers, with more containers, and
with intentions that nobody foresaw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import (
    HOSTNAME,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    RESERVATION,
    UNIT_GATE,
    role_labels,
)
from tests.kube.machines.bed import PODS, Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of

REFUSED = (403, 422)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("guests")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def patch(corner: Corner, name: str, body: dict[str, Any], sub: str = "") -> tuple[int, str]:
    path = f"{PODS.format(corner.namespace)}/{name}{sub}"
    status, answer = corner.bed.cluster.request("PATCH", path, body)
    return status, answer.decode()


# -- needs of their own --------------------------------------------------------------------------


def test_a_guest_for_one_node_gets_the_unit_there(corner: Corner) -> None:
    """Whatever ordinal holds it."""
    nodes = corner.add_nodes(3, cpu="2", memory="8Gi")
    corner.sell(simple_spec(nodes, 3))
    held = {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in corner.stock()}
    lowest = min(held, key=lambda node: int(held[node].rpartition("-")[2]))
    corner.guest("a", nodeSelector={HOSTNAME: lowest})
    corner.await_running("a")
    assert corner.node_of("a") == lowest
    corner.await_usage(3, 2, 1, 0)
    assert {pod["spec"]["nodeName"] for pod in corner.stock()} == set(nodes) - {lowest}


def test_terms_of_node_affinity_are_each_of_the_pool(corner: Corner) -> None:
    """Terms are alternatives: one that the pool has no part in would be a way out of it."""
    outside = corner.add_nodes(1, labels={"zone": "a"})
    nodes = corner.add_nodes(2, labels={"zone": "b"})
    corner.sell(simple_spec(nodes, 2))
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [nodes[1]]}]},
    ]
    required = {REQUIRED: {"nodeSelectorTerms": terms}}
    corner.guest("a", affinity={"nodeAffinity": required})
    corner.await_running("a")
    assert corner.node_of("a") == nodes[1]
    corner.guest("b", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms[:1]}}})
    corner.await_waiting(b="NoNodeFits")
    assert outside[0] not in corner.why("b")


def apart(corner: Corner, label: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": label}}}
    return {"labels": {"app": label}, "affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def test_guests_that_shun_each_other_are_never_on_one_node(corner: Corner) -> None:
    nodes = corner.sell_small(6, nodes=2)
    about = {"group": corner.group, "namespace": corner.namespace, **apart(corner, "shy")}
    corner.bed.create_guests(["a", "b", "c"], "small", **about)
    corner.bed.await_that(lambda: len(corner.running()) == 2, "two of them")
    corner.bed.await_that(lambda: list(corner.waiting().values()) == ["NoNodeFits"], "one waits")
    assert {corner.node_of(name) for name in corner.running()} == set(nodes)
    corner.await_usage(6, 4, 2, 1)
    first = corner.running()[0]
    corner.drop(first)
    corner.bed.await_that(lambda: len(corner.running()) == 2 and not corner.waiting(), "the third")
    assert {corner.node_of(name) for name in corner.running()} == set(nodes)


def test_pods_of_a_stateful_set_that_shun_each_other(corner: Corner) -> None:
    """Each has labels of its own, and its terms are about the others."""
    nodes = corner.sell_small(6, nodes=3)
    about = apart(corner, "shard")
    template = corner.template(**about)
    spec = {
        "replicas": 3,
        "serviceName": "shard",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": template["metadata"]["labels"]},
        "template": template,
    }
    corner.create("apis/apps/v1:statefulsets", "shard", spec)
    corner.await_running("shard-0", "shard-1", "shard-2")
    assert corner.bed.by_node(corner.bed.pods(corner.namespace)) == dict.fromkeys(nodes, 1)


def test_guests_that_keep_a_spread(corner: Corner) -> None:
    nodes = corner.sell_small(6, nodes=3)
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    about = {"group": corner.group, "namespace": corner.namespace}
    names = [f"g{n}" for n in range(6)]
    corner.bed.create_guests(
        names, "small", labels={"app": "even"}, topologySpreadConstraints=[spread], **about
    )
    corner.await_running(*names)
    assert corner.bed.by_node(corner.bed.pods(corner.namespace)) == dict.fromkeys(nodes, 2)


# -- by controllers ------------------------------------------------------------------------------


def test_a_deployment_that_is_scaled_up_and_down(corner: Corner) -> None:
    corner.sell_small(3)
    template = corner.template()
    path = f"/apis/apps/v1/namespaces/{corner.namespace}/deployments/web"
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": template["metadata"]["labels"]},
        "template": template,
    }
    corner.create("apis/apps/v1:deployments", "web", spec)
    corner.await_usage(3, 1, 2, 0)
    for replicas, usage in ((5, (3, 0, 3, 2)), (1, (3, 2, 1, 0)), (0, (3, 3, 0, 0))):
        corner.bed.cluster.request("PATCH", path, {"spec": {"replicas": replicas}})
        for name in corner.bed.pods(corner.namespace) if replicas < 5 else ():
            # kwok's containers do not listen to SIGTERM.
            patch(corner, name, {"metadata": {"annotations": {"test/exits-at-once": "true"}}})
        corner.await_usage(*usage)


def test_names_that_the_api_server_makes(corner: Corner) -> None:
    corner.sell_small(2)
    body = corner.template()
    body["metadata"]["generateName"] = "made-"
    for _ in range(3):
        status, answer = corner.bed.create(PODS.format(corner.namespace), body)
        assert status == 201, answer
    corner.await_usage(2, 0, 2, 1)
    assert all(name.startswith("made-") for name in corner.running())


def test_a_dry_run_takes_nothing(corner: Corner) -> None:
    corner.sell_small(1)
    gates = [each["name"] for each in corner.dry_run()["spec"]["schedulingGates"]]
    assert gates == [UNIT_GATE]
    corner.guest("a")
    corner.await_running("a")
    corner.await_usage(1, 0, 1, 0)


def test_letter_k_finalizers_labels_and_annotations_of_guests_are_free(corner: Corner) -> None:
    """A Job's pods keep its finalizer until it has counted them."""
    corner.sell_small(1)
    spec = {"template": corner.template(restartPolicy="Never")}
    corner.create("apis/batch/v1:jobs", "once", spec)
    corner.bed.await_that(lambda: len(corner.running()) == 1, "running")
    (name,) = corner.running()
    status, answer = patch(corner, name, {"metadata": {"labels": {"mine": "x"}}})
    assert status == 200, answer
    assert corner.pod(name)["metadata"]["finalizers"]
    corner.end(name)
    path = f"/apis/batch/v1/namespaces/{corner.namespace}/jobs/once"
    corner.bed.await_that(lambda: corner.bed.get(path)["status"].get("succeeded") == 1, "done")
    corner.bed.await_that(
        lambda: not corner.pod(name)["metadata"].get("finalizers"), "no finalizer"
    )
    corner.await_usage(1, 1, 0, 0)


# -- more containers -----------------------------------------------------------------------------


def test_letter_l_the_pod_is_the_unit_whatever_it_is_made_of(corner: Corner) -> None:
    """Two of them fill a node of twice the unit, to the last."""
    (node,) = corner.add_nodes(1, cpu="4", memory="8Gi")
    corner.sell(simple_spec([node], 2))
    amounts = {"cpu": "500m", "memory": "1Gi"}
    helper = {"name": "helper", "image": "proxy", "resources": {"requests": amounts}}
    sidecar = {**helper, "name": "sidecar", "restartPolicy": "Always"}
    large = {"cpu": "1500m", "memory": "3Gi"}
    setup = {"name": "setup", "image": "setup", "resources": {"requests": large}}
    main = {"name": "main", "image": "train"}
    for n in range(2):
        corner.guest(
            f"g{n}",
            labels={"imperator.tenzen-y.io/injecting-container": "main"},
            containers=[helper, main],
            initContainers=[sidecar, setup],
        )
    corner.await_running("g0", "g1")
    corner.await_usage(2, 0, 2, 0)
    resources = corner.pod("g0")["spec"]["containers"][1]["resources"]
    assert resources["requests"] == resources["limits"] == {"cpu": "1", "memory": "2Gi"}


def test_letter_l_what_a_unit_cannot_hold_is_refused(corner: Corner) -> None:
    corner.sell_small(1)
    whole = {"cpu": "2", "memory": "4Gi"}
    helper = {"name": "helper", "image": "proxy", "resources": {"requests": whole}}
    containers = [{"name": "main", "image": "train"}, helper]
    status, answer = corner.try_guest("a", containers=containers)
    assert status in REFUSED
    assert "2000m cpu, 4096Mi memory" in answer["message"]
    larger = {"name": "setup", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    status, answer = corner.try_guest("a", initContainers=[larger])
    assert status in REFUSED
    assert "3000m cpu" in answer["message"]
    labels = {"imperator.tenzen-y.io/injecting-container": "nobody"}
    status, answer = corner.try_guest("a", labels=labels)
    assert status in REFUSED
    assert "nobody" in answer["message"]
    corner.await_usage(1, 1, 0, 0)


# -- intentions ----------------------------------------------------------------------------------


def test_letter_k_a_guest_does_not_choose_its_node_past_the_line(corner: Corner) -> None:
    (node,) = corner.sell_small(1)
    status, answer = corner.try_guest("a", nodeName=node)
    assert status in REFUSED, answer


def test_letter_k_nobody_poses_as_stock(corner: Corner) -> None:
    corner.sell_small(1)
    labels = role_labels(corner.group, "small", RESERVATION)
    # As harmless as pods in the operator's namespace have to be.
    privileges = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    main = {
        "containers": [{"name": "main", "image": "x", "securityContext": privileges}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    for namespace in (corner.namespace, "dovetail"):
        body = {"metadata": {"name": "poser", "labels": labels}, "spec": main}
        status, answer = corner.bed.create(PODS.format(namespace), body)
        assert status in REFUSED
        assert "reservation" in answer["message"]
    template = {"metadata": {"labels": labels}, "spec": main}
    spec = {"selector": {"matchLabels": labels}, "serviceName": "x", "template": template}
    for namespace in (corner.namespace, "dovetail"):
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        status, _ = corner.bed.create(path, {"metadata": {"name": "poser"}, "spec": spec})
        assert status in REFUSED
    corner.await_usage(1, 1, 0, 0)


def test_letter_k_a_live_guest_stays_what_it_is(corner: Corner) -> None:
    corner.sell_small(2)
    corner.guest("a")
    corner.await_running("a")
    for key in (MACHINE_GROUP, MACHINE_TYPE, POD_ROLE):
        for value in ("other", None):
            status, answer = patch(corner, "a", {"metadata": {"labels": {key: value}}})
            assert status in REFUSED, answer
    plain = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    corner.bed.create(PODS.format(corner.namespace), plain)
    labels = role_labels(corner.group, "small", "guest")
    status, answer = patch(corner, "p", {"metadata": {"labels": labels}})
    assert status in REFUSED, answer
    corner.await_usage(2, 1, 1, 0)


def test_nobody_but_the_operator_lifts_a_gate(corner: Corner) -> None:
    corner.sell_small(1)
    corner.guests("holder", "a")
    corner.await_waiting(a="SoldOut")
    path = f"{PODS.format(corner.namespace)}/a"
    pod = corner.bed.get(path)
    del pod["spec"]["schedulingGates"]
    status, answer = corner.bed.cluster.request("PUT", path, pod)
    assert status in REFUSED
    assert UNIT_GATE in answer.decode()
    binding = {
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": corner.node_of("holder")},
    }
    status, answer = corner.bed.cluster.request("POST", f"{path}/binding", binding)
    assert status >= 400, answer
    corner.await_usage(1, 0, 1, 1)


def test_gates_of_others(corner: Corner) -> None:
    """A unit that nobody can use is not sold; when the other gate goes, it is."""
    corner.sell_small(1)
    corner.guest("a", schedulingGates=[{"name": "example.com/quota"}])
    corner.await_waiting(a="OtherGates")
    assert "example.com/quota" in corner.why("a")
    corner.guest("b")
    corner.await_running("b")
    corner.drop("b")
    corner.await_usage(1, 1, 0, 1)
    path = f"{PODS.format(corner.namespace)}/a"
    pod = corner.bed.get(path)
    pod["spec"]["schedulingGates"] = [{"name": UNIT_GATE}]
    status, answer = corner.bed.cluster.request("PUT", path, pod)
    assert status == 200, answer
    corner.await_running("a")


def test_a_pod_labelled_like_a_guest_where_nobody_opted_in(corner: Corner) -> None:
    corner.sell_small(1)
    corner.bed.cluster.make_namespace(f"{corner.group}-out")
    body = corner.template()
    body["metadata"]["name"] = "stranger"
    status, answer = corner.bed.create(PODS.format(f"{corner.group}-out"), body)
    assert status == 201
    assert "schedulingGates" not in answer["spec"]
    assert answer["spec"]["containers"][0]["resources"] == {}
    corner.await_usage(1, 1, 0, 0)
    corner.bed.cluster.drop_namespace(f"{corner.group}-out")


# -- those who go early --------------------------------------------------------------------------


def test_a_guest_that_is_deleted_while_it_waits(corner: Corner) -> None:
    corner.sell_small(1)
    corner.guests("holder", "a", "b")
    corner.await_waiting(a="SoldOut", b="SoldOut")
    corner.drop("a", grace=None)
    corner.await_waiting(b="SoldOut")
    corner.drop("holder")
    corner.await_running("b")


def test_guests_that_are_deleted_between_sale_and_start(corner: Corner) -> None:
    """At any moment: nothing is lost."""
    corner.sell_small(2)
    for n in range(20):
        corner.guest(f"g{n}")
        corner.drop(f"g{n}")
    corner.await_usage(2, 2, 0, 0)
    corner.guests("a", "b")
    corner.await_running("a", "b")


def test_a_guest_that_was_sold_a_unit_and_never_gets_to_its_node(corner: Corner) -> None:
    corner.sell_small(1)
    corner.bed.cluster.stop_other("kube-scheduler")
    corner.guest("a")
    corner.bed.await_that(lambda: "a" in corner.holders(), "sold")
    corner.await_usage(1, 0, 0, 1)
    corner.guest("b")
    corner.bed.await_that(lambda: corner.waiting().get("b") == "SoldOut", "told")
    corner.drop("a")
    corner.bed.await_that(lambda: "b" in corner.holders(), "the next")
    corner.bed.cluster.start_scheduler()
    corner.await_running("b")


def test_a_namespace_that_is_deleted(corner: Corner) -> None:
    corner.sell_small(2)
    other = corner.add_namespace(f"{corner.group}-other")
    for name in ("a", "b", "c"):
        corner.guest(name, namespace=other, terminationGracePeriodSeconds=0)
    corner.await_usage(2, 0, 2, 1)
    corner.bed.cluster.drop_namespace(other)
    corner.await_usage(2, 2, 0, 0)


def test_a_namespace_that_is_opted_out_later(corner: Corner) -> None:
    """Who was a guest stays one."""
    corner.sell_small(1)
    corner.guests("a", "b")
    corner.await_running("a")
    corner.change_namespace(corner.namespace, {"imperator.tenzen-y.io/inject-resource": None})
    corner.await_waiting(b="SoldOut")
    corner.await_usage(1, 0, 1, 1)
    corner.drop("a")
    corner.await_running("b")
    corner.await_usage(1, 0, 1, 0)
