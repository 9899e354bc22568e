"""Guests get what their unit has when they are created, whatever they brought along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import (
    CREATOR,
    INJECT_RESOURCE_ALIAS,
    INJECTING_CONTAINER,
    INJECTING_CONTAINER_ALIAS,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    UNIT_GATE,
)
from dovetail.machines.placement_rules import expressions_of, tolerations_of
from tests.kube.manifests.machines.guests import (
    GROUP,
    admission,
    container,
    made,
    opt_in,
    pod_object,
    refusal,
    spec_of,
)
from tests.machines.building import shape
from tests.support.kube.cluster import Cluster

XLARGE = {"cpu": "40", "memory": "128Gi", "nvidia.com/gpu": "2"}
DEMANDS = expressions_of(shape("compute-xlarge"), GROUP)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
IN_A_ZONE = {"matchExpressions": [ZONE]}
ON_ANY = {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}
BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}


@pytest.fixture(scope="module")
def policies(cluster: Cluster) -> Iterator[Cluster]:
    with admission(cluster) as found:
        yield found


@pytest.fixture
def space(policies: Cluster, namespace: str) -> str:
    """A namespace that is opted in."""
    opt_in(policies, namespace)
    there = ("get", "namespace", namespace, "--show-labels")
    policies.await_that(lambda: "enabled" in policies.kubectl(*there), "label")
    policies.await_that(
        lambda: UNIT_GATE in str(made(policies, namespace, pod_object())), "injection"
    )
    return namespace


def terms_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return found


def resources_of(spec: dict[str, Any], index: int = 0) -> dict[str, Any]:
    """The container's, whose requests are its limits."""
    found: dict[str, Any] = spec["containers"][index]["resources"]
    assert found["requests"] == found["limits"]
    limits: dict[str, Any] = found["limits"]
    return limits


def test_a_guest_gets_gate_tolerations_affinity_resources_and_its_creator(
    policies: Cluster, space: str
) -> None:
    found = made(policies, space, pod_object())
    spec = found["spec"]
    assert spec["schedulingGates"] == [{"name": UNIT_GATE}]
    assert spec["tolerations"][-2:] == tolerations_of(shape("compute-xlarge"), GROUP)
    assert terms_of(spec) == [{"matchExpressions": DEMANDS}]
    assert resources_of(spec) == XLARGE
    assert found["metadata"]["annotations"] == {CREATOR: "admin"}


def test_the_creator_is_who_creates_the_pod_whatever_it_says(policies: Cluster, space: str) -> None:
    pod = pod_object(meta={"annotations": {CREATOR: "bob", "other": "kept"}})
    creating = ("create", "-n", space, "--dry-run=server", "-f", "-", "-o", "jsonpath={.metadata}")
    said = policies.kubectl(*creating, "--as=alice", "--as-group=system:masters", given=pod)
    assert f'"{CREATOR}":"alice"' in said
    assert '"other":"kept"' in said


def test_inconsistency_11_the_gpu_label_is_that_of_the_machine(
    policies: Cluster, space: str
) -> None:
    demanded = {"key": "nvidia.com/gpu.machine", "operator": "In", "values": ["DGX-1"]}
    spec = spec_of(policies, space, pod_object("compute-medium"))
    assert demanded in terms_of(spec)[0]["matchExpressions"]
    plain = spec_of(policies, space, pod_object("plain"))
    assert "nvidia.com" not in str(terms_of(plain))


@pytest.mark.parametrize(
    "own",
    [[IN_A_ZONE], [IN_A_ZONE, ON_ANY], [BY_NAME], [{**IN_A_ZONE, **BY_NAME}, ON_ANY]],
    ids=["one term", "two terms", "fields only", "both"],
)
def test_defect_1_demands_are_added_to_every_term_of_its_own(
    policies: Cluster, space: str, own: list[dict[str, Any]]
) -> None:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}}
    spec = spec_of(policies, space, pod_object(affinity=affinity))
    assert terms_of(spec) == [
        {**term, "matchExpressions": [*term.get("matchExpressions", []), *DEMANDS]} for term in own
    ]


def test_a_term_that_matches_nothing_goes_on_to_match_nothing(
    policies: Cluster, space: str
) -> None:
    """With expressions in it, it would match what the other terms keep out."""
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, IN_A_ZONE]}}}
    empty, zoned = terms_of(spec_of(policies, space, pod_object(affinity=affinity)))
    assert empty == {}
    assert zoned == {"matchExpressions": [ZONE, *DEMANDS]}


PREFERRED = {
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": IN_A_ZONE}]
}
POD_AFFINITY = {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}


@pytest.mark.parametrize(
    "affinity",
    [{}, {"podAffinity": POD_AFFINITY}, {"nodeAffinity": {}}, {"nodeAffinity": PREFERRED}],
    ids=["none", "of pods", "no node affinity", "preferred"],
)
def test_defect_2_affinity_of_its_own_without_required_terms_is_kept(
    policies: Cluster, space: str, affinity: dict[str, Any]
) -> None:
    spec = spec_of(policies, space, pod_object(affinity=affinity))
    assert terms_of(spec) == [{"matchExpressions": DEMANDS}]
    del spec["affinity"]["nodeAffinity"][REQUIRED]
    if not spec["affinity"]["nodeAffinity"]:
        assert not affinity.get("nodeAffinity")
        affinity = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
        del spec["affinity"]["nodeAffinity"]
    assert spec["affinity"] == affinity


def test_gates_and_tolerations_of_its_own_are_kept(policies: Cluster, space: str) -> None:
    own = {"key": "team", "operator": "Exists"}
    gate = {"name": "example.com/quota"}
    spec = spec_of(policies, space, pod_object(tolerations=[own], schedulingGates=[gate]))
    assert spec["tolerations"][0] == own
    assert spec["schedulingGates"] == [gate, {"name": UNIT_GATE}]


def test_what_has_been_injected_is_not_injected_again(policies: Cluster, space: str) -> None:
    """As when a guest's own template was written after the specification."""
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [IN_A_ZONE, ON_ANY]}}}
    helper = container("helper", {"cpu": "500m", "memory": "1Gi"})
    once = spec_of(
        policies, space, pod_object("compute-xlarge", container("main"), helper, affinity=affinity)
    )
    parts = ("affinity", "tolerations", "schedulingGates")
    again = pod_object("compute-xlarge", *once["containers"], **{key: once[key] for key in parts})
    for each in again["spec"]["containers"]:
        del each["volumeMounts"]
    twice = spec_of(policies, space, again)
    assert {key: twice[key] for key in parts} == {key: once[key] for key in parts}
    assert resources_of(twice) == resources_of(once)


# -- which container, and what it gets -----------------------------------------------------------


def test_defect_4_the_named_container_gets_the_unit(policies: Cluster, space: str) -> None:
    containers = [container("first"), container("second", {"cpu": "7"})]
    labels = {INJECTING_CONTAINER: "second"}
    spec = spec_of(policies, space, pod_object("compute-xlarge", *containers, labels=labels))
    assert resources_of(spec, 1) == XLARGE
    assert "limits" not in spec["containers"][0]["resources"]


def test_inconsistency_3_both_labels_name_the_container(policies: Cluster, space: str) -> None:
    containers = [container("first"), container("second")]
    labels = {INJECTING_CONTAINER_ALIAS: "second"}
    spec = spec_of(policies, space, pod_object("compute-xlarge", *containers, labels=labels))
    assert resources_of(spec, 1) == XLARGE
    labels |= {INJECTING_CONTAINER: "first"}
    spec = spec_of(policies, space, pod_object("compute-xlarge", *containers, labels=labels))
    assert resources_of(spec, 0) == XLARGE


def test_what_the_container_asked_for_itself_is_overwritten_or_kept(
    policies: Cluster, space: str
) -> None:
    """Overwritten is what a unit has; the rest is the container's own affair."""
    own = {"cpu": "1", "nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"}
    asking = container("main", resources={"limits": own})
    spec = spec_of(policies, space, pod_object("compute-xlarge", asking))
    assert resources_of(spec) == {**XLARGE, "ephemeral-storage": "1Gi"}
    spec = spec_of(policies, space, pod_object("plain", asking))
    assert resources_of(spec) == {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "1Gi"}


def test_letter_l_the_container_gets_the_unit_less_what_the_others_request(
    policies: Cluster, space: str
) -> None:
    helper = container("helper", {"cpu": "1500m", "memory": "512Mi"})
    limited = container("limited", resources={"limits": {"cpu": "100m", "nvidia.com/gpu": "1"}})
    sidecar = container("sidecar", {"cpu": "0.4", "memory": "1G"}, restartPolicy="Always")
    starts = container("starts", {"cpu": "40", "memory": "1Gi"})
    pod = pod_object(
        "compute-xlarge", container("main"), helper, limited, initContainers=[starts, sidecar]
    )
    assert resources_of(spec_of(policies, space, pod)) == {
        "cpu": "38",
        "memory": str((128 * 1024 - 512) * 2**20 - 10**9),
        "nvidia.com/gpu": "1",
    }


def test_overhead_is_part_of_the_unit(policies: Cluster, space: str) -> None:
    sandboxed = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandboxed"},
        "handler": "any",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "1Gi"}},
    }
    policies.apply(sandboxed)
    pod = pod_object(runtimeClassName="sandboxed")
    try:
        policies.await_that(lambda: not refusal(policies, space, pod), "runtime class")
        expected = {"cpu": "39750m", "memory": "127Gi", "nvidia.com/gpu": "2"}
        assert resources_of(spec_of(policies, space, pod)) == expected
    finally:
        policies.kubectl("delete", "runtimeclass", "sandboxed")


def sidecar_injection(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Another policy, which gives guests a container: after ours, by its name."""
    patch = """!object.spec.containers.exists(c, c.name == 'proxy') ? [JSONPatch{op: 'add',
        path: '/spec/containers/-', value: Object.spec.containers{name: 'proxy', image: 'any',
        resources: Object.spec.containers.resources{requests: {'cpu': '2'}}}}] : []"""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    api = "admissionregistration.k8s.io/v1"
    meta = {"name": name}
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    selected = {"matchLabels": {"kubernetes.io/metadata.name": name.partition(".")[2]}}
    binding = {"policyName": name, "matchResources": {"namespaceSelector": selected}}
    return (
        {"apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": policy},
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": meta,
            "spec": binding,
        },
    )


def test_a_container_that_another_admission_adds_takes_its_part(
    policies: Cluster, space: str
) -> None:
    name = f"zz-proxies.{space}"
    policies.apply(*sidecar_injection(name))
    try:
        policies.await_that(
            lambda: "proxy" in str(made(policies, space, pod_object())), "container"
        )
        spec = spec_of(policies, space, pod_object())
        assert resources_of(spec) == {**XLARGE, "cpu": "38"}
        assert [each["name"] for each in spec["containers"]] == ["main", "proxy"]
    finally:
        for kind in ("mutatingadmissionpolicy", "mutatingadmissionpolicybinding"):
            policies.kubectl("delete", kind, name)


# -- who is a guest ------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [MACHINE_GROUP, MACHINE_TYPE, POD_ROLE])
def test_a_pod_that_lacks_one_of_the_labels_is_no_guest(
    policies: Cluster, space: str, missing: str
) -> None:
    pod = pod_object()
    del pod["metadata"]["labels"][missing]
    spec = spec_of(policies, space, pod)
    assert "schedulingGates" not in spec
    assert "affinity" not in spec
    assert spec["containers"][0]["resources"] == {}


def test_namespaces_that_are_not_opted_in_are_left_alone(policies: Cluster, namespace: str) -> None:
    for pod in (pod_object(), pod_object("no-such-type"), pod_object(nodeName="n0")):
        spec = spec_of(policies, namespace, pod)
        assert "schedulingGates" not in spec
        assert spec["containers"][0]["resources"] == {}
    policies.kubectl("create", "-n", namespace, "-f", "-", given=pod_object(meta={"name": "own"}))
    changing = ("label", "pod", "own", "-n", namespace, "--overwrite")
    assert "labeled" in policies.kubectl(*changing, f"{MACHINE_TYPE}=other")


def test_inconsistency_2_the_label_without_a_letter_opts_in_too_with_a_warning(
    policies: Cluster, namespace: str
) -> None:
    labelling = ("label", "namespace", namespace, f"{INJECT_RESOURCE_ALIAS}=enabled")
    assert "imperator.tenzen-y.io/inject-resource, which is the right one" in policies.kubectl(
        *labelling, check=False
    )
    policies.await_that(
        lambda: UNIT_GATE in str(made(policies, namespace, pod_object())), "injection"
    )


def test_inconsistency_12_a_label_that_counts_on_pods_only_is_warned_of(
    policies: Cluster, space: str
) -> None:
    labels = pod_object()["metadata"]["labels"]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "guest", "labels": {**labels, INJECTING_CONTAINER: "main"}},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_object()["spec"]},
        },
    }
    creating = ("create", "-n", space, "--dry-run=server", "-f", "-")
    said = policies.kubectl(*creating, given=deployment, check=False)
    assert "created" in said
    assert "give it to spec.template.metadata.labels" in said


def test_letter_o_a_dry_run_leaves_nothing_behind(policies: Cluster, space: str) -> None:
    assert made(policies, space, pod_object())["metadata"]["name"].startswith("guest-")
    assert policies.kubectl("get", "pods", "-n", space) == ""
