"""Objects that make pods: how many, and which, with and without requirements."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.intents.manifests.errors import (
    BadManifest,
    Uneditable,
    UnknownContainer,
    UnknownWorkload,
)
from dovetail.intents.manifests.workloads import (
    KINDS,
    AppWorkload,
    pods_of,
    with_requirements,
    workload_of,
)
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from tests.intents.manifests.charts import amount, app, consumer, container, label, workload


def only(manifest: dict[str, Any], namespace: str = "default") -> AppWorkload:
    (found,) = pods_of(app(manifest), namespace)
    return found


def amounts(of: AppWorkload) -> dict[str, int]:
    return dict(pod_request_of(of.pod).amounts)


def request(of: AppWorkload) -> PodRequest:
    return pod_request_of(of.pod)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_that_makes_pods(kind: str) -> None:
    found = only(workload(kind, "web", container(requests={"cpu": "2", "memory": "1Gi"})))
    assert (found.kind, found.name, found.object_index, found.count) == (kind, "web", 0, 1)
    assert found.per_node == (kind == "DaemonSet")
    assert amounts(found) == {"pods": 1, "cpu": 2000, "memory": 2**30}


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.replicas])
def test_replicas_and_parallelism(kind: str) -> None:
    assert only(workload(kind, replicas=3)).count == 3
    assert only(workload(kind, replicas=0)).count == 0


def test_a_job_runs_no_more_pods_than_it_has_to_complete() -> None:
    job = workload("Job", replicas=5)
    job["spec"]["completions"] = 2
    assert only(job).count == 2
    assert with_requirements(only(job), consumer("Job", replicas=9), ()).count == 2
    assert with_requirements(only(job), consumer("Job", replicas=1), ()).count == 1


def test_objects_that_make_no_pods_are_passed_over() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    foreign = {**workload("Deployment"), "apiVersion": "acme.example.com/v1"}
    (found,) = pods_of(app(service, foreign, workload("Deployment")), "default")
    assert found.object_index == 2


def test_old_api_versions_count() -> None:
    assert only({**workload("CronJob"), "apiVersion": "batch/v1beta1"}).kind == "CronJob"


def test_the_pod_is_in_the_namespace_of_its_object_or_of_the_group() -> None:
    manifest = workload("Deployment")
    assert only(manifest, "edge").pod.metadata.namespace == "edge"
    manifest["metadata"]["namespace"] = "own"
    assert only(manifest, "edge").pod.metadata.namespace == "own"
    assert only(manifest).pod.metadata.labels == {"app": "web"}


def test_limits_stand_for_requests_that_are_left_out() -> None:
    found = only(workload("Pod", "web", container(limits={"cpu": 2}, requests={"memory": "1G"})))
    assert amounts(found) == {"pods": 1, "cpu": 2000, "memory": 10**9}


def test_nulls_are_fields_that_are_not_there() -> None:
    """As charts leave them: `nodeSelector:` with nothing after it."""
    manifest = workload("Deployment", nodeSelector=None, tolerations=None, initContainers=None)
    manifest["spec"]["replicas"] = None
    manifest["spec"]["template"]["metadata"]["creationTimestamp"] = None
    assert only(manifest).count == 1


def test_pods_on_the_hosts_network_use_its_ports() -> None:
    web = {**container(), "ports": [{"containerPort": 80}]}
    assert not request(only(workload("Pod", "web", web))).ports
    (port,) = request(only(workload("Pod", "web", web, hostNetwork=True))).ports
    assert port.number == 80


def test_pods_of_a_daemon_set_go_to_cordoned_nodes() -> None:
    keys = {each.key for each in request(only(workload("DaemonSet"))).tolerations}
    assert "node.kubernetes.io/unschedulable" in keys
    assert not request(only(workload("Deployment"))).tolerations


def test_a_chart_that_names_a_node_is_packed_there() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [term, {}]}}}
    name = SelectorRequirement(key="metadata.name", operator="In", values=("n7",))
    plain = request(only(workload("Deployment", nodeName="n7")))
    assert [each.match_fields for each in plain.node_terms or ()] == [(name,)]
    (found,) = request(only(workload("Pod", nodeName="n7", affinity=affinity))).node_terms or ()
    assert found.match_fields == (name,)
    assert found.match_expressions[0].key == "zone"


def test_what_a_pod_requests_as_a_whole_follows_from_its_limits_unless_containers_request() -> None:
    whole = {"limits": {"cpu": "4", "memory": "1G"}}
    found = only(workload("Pod", "web", container(requests={"cpu": "1"}), resources=whole))
    assert amounts(found) == {"pods": 1, "cpu": 1000, "memory": 10**9}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"spec": {}}, "Deployment web: spec.template.spec: there are no pods without it"),
        ({"spec": {"template": []}}, "Deployment web: spec.template.spec: there are no pods"),
        ({"metadata": {}}, r"Deployment \(no name\): metadata.name: an object has a name"),
    ],
)
def test_what_is_missing_is_told(broken: dict[str, Any], words: str) -> None:
    """EMCO's action controller called this a success and changed nothing."""
    with pytest.raises(BadManifest, match=words):
        only({**workload("Deployment"), **broken})


def test_what_is_mistyped_is_told_with_its_field() -> None:
    with pytest.raises(BadManifest, match=r"Deployment web: spec.replicas: '3': a whole number"):
        only(workload("Deployment", replicas="3"))
    with pytest.raises(BadManifest, match=r"Pod web: spec.nodeSelector\[...\]: Expected `str`"):
        only(workload("Pod", nodeSelector={"gpu": True}))
    with pytest.raises(
        BadManifest, match=r"Pod web: spec.containers\[main\].resources.limits\[cpu\]: 'x' is no q"
    ):
        only(workload("Pod", "web", container(limits={"cpu": "x"}, requests={"cpu": 1})))
    with pytest.raises(BadManifest, match="-1 is less than nothing"):
        only(workload("Pod", "web", container(requests={"cpu": -1})))
    with pytest.raises(BadManifest, match="a pod has at least one container"):
        only(workload("Pod", containers=[]))


def test_a_consumer_finds_its_object_by_kind_and_name() -> None:
    every = pods_of(app(workload("Deployment"), workload("StatefulSet")), "default")
    assert workload_of(every, consumer("StatefulSet")).kind == "StatefulSet"
    assert workload_of(every, consumer("statefulset")).kind == "StatefulSet"
    assert workload_of(every[:1], consumer("")).kind == "Deployment"
    with pytest.raises(
        UnknownWorkload, match=r"which web is meant is not said: there are Dep.*Stat"
    ):
        workload_of(every, consumer(""))
    with pytest.raises(
        UnknownWorkload, match="no DaemonSet web among the app's workloads: Deployment web, State"
    ):
        workload_of(every, consumer("DaemonSet"))


def test_requirements_become_part_of_the_pod() -> None:
    found = with_requirements(
        only(workload("StatefulSet", replicas=1)),
        consumer("StatefulSet", replicas=3),
        [amount("cpu", "4", "4"), amount("nvidia.com/gpu", "1"), label("zone", "a")],
    )
    assert found.count == 3
    assert amounts(found) == {"pods": 1, "cpu": 4000, "nvidia.com/gpu": 1}
    assert request(found).node_labels == (
        SelectorRequirement(key="zone", operator="In", values=("a",)),
    )


def test_exactly_the_requirements_given_are_applied() -> None:
    """Another subset of the same consumer takes the place of the one before it."""
    web = consumer()
    more = with_requirements(only(workload("Deployment")), web, [amount("cpu", "4")])
    less = with_requirements(more, web, [amount("memory", "1G")])
    assert amounts(less) == {"pods": 1, "memory": 10**9}


def test_consumers_of_one_object_add_up() -> None:
    pair = only(workload("Deployment", "web", container("a"), container("b")))
    first = with_requirements(pair, consumer(container="a", called="a"), [amount("cpu", "1")])
    both = with_requirements(first, consumer(container="b", called="b"), [amount("cpu", "2")])
    assert amounts(both)["cpu"] == 3000


def test_optional_labels_have_to_hold_where_they_are_counted() -> None:
    wanted = label("zone", "a", mandatory=False, weight=7)
    found = request(with_requirements(only(workload("Pod")), consumer("Pod"), [wanted]))
    assert found.node_labels
    assert not found.preferred_nodes


def test_operators_are_required_of_every_term() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    {},
                ]
            }
        }
    }
    found = with_requirements(
        only(workload("Pod", affinity=affinity)),
        consumer("Pod"),
        [label("cores", "8", operator="Gt")],
    )
    terms = request(found).node_terms
    assert terms is not None
    wanted = SelectorRequirement(key="cores", operator="Gt", values=("8",))
    assert [wanted in each.match_expressions for each in terms] == [True, True]


def test_a_container_that_is_not_there_is_told_with_those_that_are() -> None:
    pair = only(workload("Deployment", "web", container("a"), container("b")))
    with pytest.raises(UnknownContainer, match="Deployment web: no container 'c': there are a, b"):
        with_requirements(pair, consumer(container="c"), [amount("cpu", "1")])
    with pytest.raises(UnknownContainer, match="which container is not said: there are a, b"):
        with_requirements(pair, consumer(container=""), [amount("cpu", "1")])
    assert with_requirements(pair, consumer(container=""), [label("zone", "a")])


def test_the_only_container_need_not_be_named() -> None:
    found = with_requirements(
        only(workload("Deployment")), consumer(container=""), [amount("cpu", "1")]
    )
    assert amounts(found)["cpu"] == 1000


def test_init_containers_can_be_consumers() -> None:
    init = [container("warm-up")]
    found = with_requirements(
        only(workload("Job", initContainers=init)),
        consumer("Job", container="warm-up"),
        [amount("cpu", "1.5")],
    )
    assert amounts(found)["cpu"] == 1500


@pytest.mark.parametrize("kind", ["DaemonSet", "Pod"])
def test_what_has_no_replicas_cannot_be_given_some(kind: str) -> None:
    found = only(workload(kind))
    assert with_requirements(found, consumer(kind, replicas=1), ()).count == 1
    with pytest.raises(Uneditable, match=f"consumer web: 2 replicas: a {kind} makes"):
        with_requirements(found, consumer(kind, replicas=2), ())
