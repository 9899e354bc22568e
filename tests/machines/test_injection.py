"""Injection: what a guest is given, what it keeps, and which guests cannot be a unit."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.machines.injection import InjectionRefused, inject, patch_of
from dovetail.machines.names import CREATOR, GPU_TYPE, UNIT_GATE
from dovetail.machines.placement_rules import expressions_of, tolerations_of
from dovetail.podfit.objects import PodSpec
from dovetail.podfit.pod_sum import pod_requests, units
from tests.machines.building import shape

GROUP, CREATED_BY = "general-machine", "mei"
XLARGE = shape("compute-xlarge")
"""40 CPUs, 128Gi, 2 GPUs."""
PLAIN = shape(
    "plain",
    {"machineTypes": [{"name": "plain", "spec": {"cpu": 4, "memory": "8Gi"}, "available": 1}]},
)
WHOLE = {"cpu": "40000m", "memory": "128Gi", "nvidia.com/gpu": "2"}
EXPRESSIONS = expressions_of(XLARGE, GROUP)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def container(name: str = "main", **requests: Any) -> dict[str, Any]:
    gpus = {GPU_TYPE: requests.pop("gpu")} if "gpu" in requests else {}
    found: dict[str, Any] = {"name": name, "image": "trainer"}
    if requests or gpus:
        found["resources"] = {"requests": {**requests, **gpus}}
    return found


def sidecar(name: str = "proxy", **requests: Any) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


def pod(*containers: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> Any:
    return {
        "metadata": {"generateName": "train-", "labels": labels or {}},
        "spec": {"containers": list(containers or [container()]), **spec},
    }


def injected(written: dict[str, Any], to: Any = XLARGE) -> Any:
    return inject(written, to, GROUP, CREATED_BY)


def resources_of(written: dict[str, Any], position: int = 0) -> Any:
    return injected(written)["spec"]["containers"][position]["resources"]


def refusal(written: dict[str, Any], to: Any = XLARGE) -> tuple[str, str]:
    with pytest.raises(InjectionRefused) as caught:
        injected(written, to)
    return caught.value.path, caught.value.message


def test_a_guest_gets_resources_affinity_tolerations_gate_and_creator() -> None:
    found = injected(pod())
    assert found == {
        "metadata": {
            "generateName": "train-",
            "labels": {},
            "annotations": {CREATOR: CREATED_BY},
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "trainer",
                    "resources": {"requests": WHOLE, "limits": WHOLE},
                }
            ],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": EXPRESSIONS}]}
                }
            },
            "tolerations": tolerations_of(XLARGE, GROUP),
            "schedulingGates": [{"name": UNIT_GATE}],
        },
    }


def test_the_pod_that_was_given_is_left_alone() -> None:
    given_pod = pod(container(cpu=1), affinity={"nodeAffinity": {REQUIRED: zone("a")}})
    before = deepcopy(given_pod)
    injected(given_pod)
    assert given_pod == before


@pytest.mark.parametrize("key", ["injecting-container", "inject-resource"])
def test_inconsistency_3_the_container_is_named_by_either_label(key: str) -> None:
    labels = {f"imperator.tenzen-y.io/{key}": "second"}
    found = injected(pod(container("first"), container("second"), labels=labels))
    first, second = found["spec"]["containers"]
    assert "resources" not in first
    assert second["resources"] == {"requests": WHOLE, "limits": WHOLE}


def test_inconsistency_3_of_both_labels_the_examples_wins() -> None:
    labels = {
        "imperator.tenzen-y.io/inject-resource": "first",
        "imperator.tenzen-y.io/injecting-container": "second",
    }
    found = injected(pod(container("first"), container("second"), labels=labels))
    assert "resources" not in found["spec"]["containers"][0]


def test_defect_4_an_unknown_container_is_refused() -> None:
    labels = {"imperator.tenzen-y.io/injecting-container": "third"}
    written = pod(container("first"), container("second"), labels=labels)
    written["spec"]["initContainers"] = [container("third")]
    assert refusal(written) == (
        "metadata.labels[imperator.tenzen-y.io/injecting-container]",
        "the pod has no container 'third': it has first, second",
    )


def test_letter_l_the_container_gets_the_shape_less_the_others() -> None:
    written = pod(
        container(),
        container("logs", cpu="1500m", memory="1Gi"),
        initContainers=[sidecar(cpu=2, gpu=1)],
        overhead={"cpu": "250m", "memory": "120Mi"},
    )
    left = {"cpu": "36250m", "memory": str((127 * 1024 - 120) * 2**20), "nvidia.com/gpu": "1"}
    assert resources_of(written) == {"requests": left, "limits": left}


def test_letter_l_limits_stand_for_requests_that_are_left_out() -> None:
    logs = {**container("logs"), "resources": {"limits": {"cpu": 3}, "requests": {"memory": "1Gi"}}}
    assert resources_of(pod(container(), logs))["requests"]["cpu"] == "37000m"


def test_letter_l_parts_of_a_thousandth_are_rounded_in_favour_of_the_unit() -> None:
    written = pod(container(), container("logs", cpu="100u"), container("more", cpu="100u"))
    assert resources_of(written)["requests"]["cpu"] == "39999m"


def test_letter_l_what_the_container_asked_for_gives_way_to_the_unit() -> None:
    asked = {"requests": {"cpu": 99, "nvidia.com/gpu": 8}, "limits": {"cpu": 99}, "claims": []}
    found = injected(pod({**container(), "resources": asked}), PLAIN)
    unit = {"cpu": "4", "memory": "8Gi"}
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": unit,
        "limits": unit,
        "claims": [],
    }


def test_resources_that_units_are_not_made_of_stay() -> None:
    storage = {"ephemeral-storage": "10Gi", "example.com/nic": 1}
    found = resources_of(pod({**container(), "resources": {"requests": storage}}))
    assert found == {"requests": {**WHOLE, **storage}, "limits": WHOLE}


TARGET = "spec.containers[0].resources.requests"


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            {"initContainers": [sidecar(cpu=40)]},
            f"{TARGET}[cpu]",
            (
                "a unit of compute-xlarge has 40000m cpu, and nothing is left of it for container"
                " main: sidecar proxy 40"
            ),
        ),
        (
            {"initContainers": [sidecar(cpu=30)], "overhead": {"cpu": "10500m"}},
            f"{TARGET}[cpu]",
            (
                "a unit of compute-xlarge has 40000m cpu, and nothing is left of it for container"
                " main: sidecar proxy 30 + overhead 10500m = 40500m"
            ),
        ),
        (
            {"initContainers": [sidecar(gpu=2)]},
            f"{TARGET}[nvidia.com/gpu]",
            (
                "a unit of compute-xlarge has 2 nvidia.com/gpu, and nothing is left of it for"
                " container main: sidecar proxy 2"
            ),
        ),
        (
            {"initContainers": [container("fetch", memory="129Gi")]},
            "spec.initContainers[0].resources.requests[memory]",
            "a unit of compute-xlarge has 128Gi memory, less than init container fetch 129Gi",
        ),
        (
            {"initContainers": [sidecar(cpu=10), container("fetch", cpu=31)]},
            "spec.initContainers[1].resources.requests[cpu]",
            (
                "a unit of compute-xlarge has 40000m cpu, less than init container fetch 31"
                " + sidecar proxy 10 = 41"
            ),
        ),
        (
            {"resources": {"requests": {"cpu": "41"}}},
            "spec.resources.requests[cpu]",
            "a unit of compute-xlarge has 40000m cpu, and the pod as a whole 41",
        ),
        (
            {"resources": {"limits": {"cpu": "40"}}, "overhead": {"cpu": "1"}},
            "spec.resources.limits[cpu]",
            "a unit of compute-xlarge has 40000m cpu less overhead 1, and the pod as a whole 40",
        ),
        ({"nodeName": "michiru"}, "spec.nodeName", "a guest goes where its unit is: leave it out"),
        (
            {"initContainers": [sidecar(cpu="two")]},
            "spec.initContainers[0].resources.requests[cpu]",
            None,
        ),
    ],
)
def test_letter_l_a_pod_that_is_larger_than_its_unit_is_refused_with_the_sum(
    spec: dict[str, Any], path: str, message: str | None
) -> None:
    found = refusal(pod(**spec))
    assert found[0] == path
    assert message is None or found[1] == message


def test_letter_l_an_init_container_may_be_as_large_as_the_unit() -> None:
    """It is over before the sidecar behind it, and the containers, start."""
    fetch = container("fetch", cpu=40, memory="128Gi", gpu=2)
    found = resources_of(pod(initContainers=[fetch, sidecar(cpu=1)]))
    assert found["requests"]["cpu"] == "39000m"


def test_letter_l_the_pod_as_a_whole_may_be_the_unit() -> None:
    whole = {"requests": {"cpu": "39", "memory": "128Gi"}, "limits": {"cpu": "39"}}
    written = pod(resources=whole, overhead={"cpu": "1"})
    assert resources_of(written)["requests"]["cpu"] == "39000m"


def test_a_unit_without_gpus_comes_without_gpus() -> None:
    """Else a sidecar would take one that nobody sold."""
    path, message = refusal(pod(container(), container("other", gpu=1)), PLAIN)
    assert path == "spec.containers[0].resources.requests[nvidia.com/gpu]"
    assert "has 0 nvidia.com/gpu" in message
    path, _ = refusal(pod(initContainers=[container("fetch", gpu=1)]), PLAIN)
    assert path == "spec.initContainers[0].resources.requests[nvidia.com/gpu]"


def zone(*names: str) -> dict[str, Any]:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}
        for name in names
    ]
    return {"nodeSelectorTerms": terms}


def terms_of(written: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = injected(written)["spec"]["affinity"]["nodeAffinity"][REQUIRED][
        "nodeSelectorTerms"
    ]
    return found


def test_defect_1_the_affinity_is_anded_into_every_term() -> None:
    """Terms are ORed: one more beside those of the guest would let it run outside the pool."""
    written = pod(affinity={"nodeAffinity": {REQUIRED: zone("a", "b")}})
    before = zone("a", "b")["nodeSelectorTerms"]
    assert terms_of(written) == [
        {"matchExpressions": [*term["matchExpressions"], *EXPRESSIONS]} for term in before
    ]


@pytest.mark.parametrize(
    "affinity",
    [
        None,
        {},
        {"podAffinity": {}},
        {"nodeAffinity": None},
        {"nodeAffinity": {}},
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        {"nodeAffinity": {REQUIRED: None}},
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
    ],
)
def test_defect_2_affinity_without_terms_gets_one(affinity: Any) -> None:
    assert terms_of(pod(affinity=affinity)) == [{"matchExpressions": EXPRESSIONS}]


def test_defect_2_expressions_without_values_are_no_trouble() -> None:
    exists = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [exists]}
    assert terms_of(pod(affinity={"nodeAffinity": {REQUIRED: required}})) == [
        {"matchExpressions": [*exists["matchExpressions"], *EXPRESSIONS]}
    ]


def test_a_term_by_fields_is_anded_and_one_that_demands_nothing_stays_unmet() -> None:
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["michiru"]}]}
    required = {"nodeSelectorTerms": [fields, {}]}
    assert terms_of(pod(affinity={"nodeAffinity": {REQUIRED: required}})) == [
        {**fields, "matchExpressions": EXPRESSIONS},
        {},
    ]


def test_tolerations_and_gates_of_the_guest_stay() -> None:
    tolerations = [
        {"key": "mine", "operator": "Exists"},
        tolerations_of(XLARGE, GROUP)[1],
    ]
    gates = [{"name": "example.com/mine"}]
    found = injected(pod(tolerations=tolerations, schedulingGates=gates))["spec"]
    assert found["tolerations"] == [*tolerations, tolerations_of(XLARGE, GROUP)[0]]
    assert found["schedulingGates"] == [*gates, {"name": UNIT_GATE}]


def test_nobody_says_himself_who_created_the_pod() -> None:
    written = pod()
    written["metadata"]["annotations"] = {CREATOR: "somebody-else", "other": "stays"}
    assert injected(written)["metadata"]["annotations"] == {CREATOR: CREATED_BY, "other": "stays"}


cpus = st.sampled_from([None, 1, "250m", 0.5])
memories = st.sampled_from([None, "1Gi", "512M", 1024])


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    requests = {
        "cpu": draw(cpus),
        "memory": draw(memories),
        GPU_TYPE: draw(st.sampled_from([None, 1])),
    }
    amounts = {name: amount for name, amount in requests.items() if amount is not None}
    field = draw(st.sampled_from(["requests", "limits"]))
    return {"name": "c", "unknown": {"kept": 1}, "resources": {field: amounts}}


expressions = st.fixed_dictionaries(
    {"key": st.sampled_from(["zone", "disk"]), "operator": st.sampled_from(["In", "NotIn"])},
    optional={"values": st.lists(st.sampled_from(["a", "b"]), min_size=1)},
) | st.sampled_from(EXPRESSIONS)
terms = st.fixed_dictionaries({"matchExpressions": st.lists(expressions, min_size=1, max_size=3)})
affinities = st.none() | st.lists(terms, max_size=3).map(
    lambda each: {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": each}}, "podAffinity": {}}
)
guests = st.builds(
    lambda main, others, sidecars, inits, affinity, overhead: pod(
        main,
        *others,
        initContainers=[*({**each, "restartPolicy": "Always"} for each in sidecars), *inits],
        affinity=affinity,
        overhead=overhead,
        tolerations=[{"operator": "Exists"}],
        unknown={"kept": [1]},
    ),
    containers(),
    st.lists(containers(), max_size=1),
    st.lists(containers(), max_size=2),
    st.lists(containers(), max_size=2),
    affinities,
    st.sampled_from([None, {"cpu": "100m", "memory": "1Mi"}]),
)


def outcome(written: dict[str, Any]) -> Any:
    try:
        return injected(written)
    except InjectionRefused:
        return None


@given(guests)
def test_what_was_injected_is_not_injected_again(written: dict[str, Any]) -> None:
    once = outcome(written)
    if once is not None:
        assert injected(once) == once
        assert patch_of(once, injected(once)) == []


def defaulted(spec: dict[str, Any]) -> PodSpec:
    """As the API server completes it: limits stand for requests that are left out."""
    copy = {**deepcopy(spec), "overhead": spec["overhead"] or {}}
    for each in copy["containers"] + copy["initContainers"]:
        resources = each["resources"]
        resources["requests"] = {**resources.get("limits", {}), **resources.get("requests", {})}
    return msgspec.convert(copy, PodSpec)


def staying_gpus(spec: dict[str, Any]) -> int:
    """Requested by what runs beside the container that is injected."""
    sidecars = [each for each in spec["initContainers"] if "restartPolicy" in each]
    return sum(GPU_TYPE in str(each["resources"]) for each in spec["containers"][1:] + sidecars)


@given(guests)
def test_the_pod_requests_what_the_unit_has(written: dict[str, Any]) -> None:
    """By the formula that nodes are charged by; refused only where others take all GPUs."""
    found = outcome(written)
    assert (found is None) == (staying_gpus(written["spec"]) >= XLARGE.gpus)
    if found is not None:
        spec = defaulted(found["spec"])
        total = pod_requests(spec.containers, spec.init_containers, None, spec.overhead)
        amounts = {name: units(name, amount) for name, amount in total.items()}
        assert amounts == XLARGE.amounts


@given(guests)
def test_every_term_demands_what_the_unit_demands_and_what_it_did_before(
    written: dict[str, Any],
) -> None:
    found = outcome(written)
    if found is not None:
        affinity = written["spec"]["affinity"] or {"nodeAffinity": {REQUIRED: {}}}
        before = affinity["nodeAffinity"][REQUIRED].get("nodeSelectorTerms") or [{}]
        after = terms_of(written)
        assert len(after) == len(before)
        for old, new in zip(before, after, strict=True):
            demanded = new["matchExpressions"]
            assert demanded[: len(old.get("matchExpressions", []))] == old.get(
                "matchExpressions", []
            )
            assert all(each in demanded for each in EXPRESSIONS)


def without(value: Any, *keys: str) -> Any:
    return {key: each for key, each in value.items() if key not in keys}


@given(guests)
def test_nothing_else_is_changed(written: dict[str, Any]) -> None:
    found = outcome(written)
    if found is not None:
        ours = ("containers", "affinity", "tolerations", "schedulingGates")
        assert without(found["spec"], *ours) == without(written["spec"], *ours)
        assert without(found["metadata"], "annotations") == written["metadata"]
        first, *others = found["spec"]["containers"]
        assert others == written["spec"]["containers"][1:]
        assert without(first, "resources") == without(written["spec"]["containers"][0], "resources")


def patched(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902, as far as it is used."""
    found = deepcopy(document)
    for operation in operations:
        *steps, last = (
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        )
        at = found
        for step in steps:
            at = at[int(step)] if isinstance(at, list) else at[step]
        if operation["op"] == "remove":
            del at[last]
        elif isinstance(at, list) and last == "-":
            at.append(operation["value"])
        else:
            assert isinstance(at, list) or (last in at) == (operation["op"] == "replace")
            at[int(last) if isinstance(at, list) else last] = operation["value"]
    return found


@given(guests)
def test_the_patch_makes_the_guest_of_the_pod(written: dict[str, Any]) -> None:
    found = outcome(written)
    if found is not None:
        assert patched(written, patch_of(written, found)) == found


values = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["a", "~/"]),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from("a/~"), each),
)


@given(
    st.dictionaries(st.sampled_from("ab/~"), values),
    st.dictionaries(st.sampled_from("ab/~"), values),
)
def test_a_patch_makes_one_document_of_another(before: Any, after: Any) -> None:
    assert patched(before, patch_of(before, after)) == after
