"""Resource requirements: every spelling reads as one form, and every fault names its field."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.intents.documents.errors import BadDocument, MistypedDocument
from dovetail.intents.documents.hpa import CONSUMER, INTENT, REQUIREMENT
from dovetail.intents.documents.shapes import DocumentFindings, RecordShape

Json = dict[str, Any]


def read(shape: RecordShape, spec: Any, *, is_emco: bool = False) -> Json:
    findings = DocumentFindings(is_emco=is_emco)
    document = shape.read({"metadata": {"name": "n"}, "spec": spec}, "", findings)
    findings.raise_any()
    found: Json = document["spec"]
    return found


def faults(shape: RecordShape, spec: Any, *, is_emco: bool = False) -> list[str]:
    """The fields that are wrong."""
    with pytest.raises(BadDocument) as caught:
        read(shape, spec, is_emco=is_emco)
    return [each.field for each in caught.value.violations]


@pytest.mark.parametrize("word", ["app", "appName", "app-name", "App"])
def test_an_intent_names_its_app_in_any_spelling(word: str) -> None:
    assert read(INTENT, {word: "fwall"}) == {"app": "fwall"}


@pytest.mark.parametrize(
    "spec",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "container": "x"},
        {"api-version": "apps/v1", "kind": "Deployment", "name": "d", "container-name": "x"},
        {
            "consumer": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": "d",
                "container-name": "x",
            }
        },
    ],
)
def test_a_consumer_is_flat_whatever_its_spelling(spec: Json) -> None:
    assert read(CONSUMER, spec) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "d",
        "container": "x",
    }


FORMS = [
    ({"name": "cpu", "requests": 4, "limits": 4}, True),
    ({"name": "memory", "requests": 1000, "units": "MB"}, True),
    ({"name": "nvidia.com/gpu", "limits": 1}, True),
    ({"name": "cpu", "requests": "500m"}, True),
    ({"name": "cpu", "requests": 1.5}, True),
    ({"name": "memory", "requests": 2, "limits": 3, "units": "GiB"}, True),
    ({"class": "nvidia.high.mem", "requests": 1}, True),
    ({"key": "feature.node.kubernetes.io/intel_qat", "value": "true"}, False),
    ({"key": "cores", "operator": "Gt", "values": ["8"]}, False),
    ({"key": "zone", "operator": "NotIn", "values": ["a", "b"]}, False),
    ({"key": "gpu", "operator": "Exists"}, False),
]


@pytest.mark.parametrize(("resource", "allocatable"), FORMS)
def test_a_requirement_has_its_resource_on_a_level_of_its_own(
    resource: Json, allocatable: bool
) -> None:
    nested = {"allocatable": allocatable, "mandatory": False, "weight": 9, "resource": resource}
    flat = {"allocatable": allocatable, "mandatory": False, "weight": 9, **resource}
    assert read(REQUIREMENT, nested) == read(REQUIREMENT, flat) == nested


def test_the_specification_calls_the_key_of_a_label_its_name() -> None:
    flat = {"allocatable": False, "name": "avx512", "value": "true"}
    assert read(REQUIREMENT, flat)["resource"] == {"key": "avx512", "value": "true"}


def test_devices_may_be_selected_by_a_class_that_the_requirement_brings() -> None:
    selector = {
        "resourceSelector": [
            {"matchExpressions": [{"key": "memory", "operator": "GtEq", "values": ["40G"]}]}
        ]
    }
    spec = {"allocatable": True, "resource": {"selector": selector, "requests": 2}}
    assert read(REQUIREMENT, spec) == spec


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"resource": {"name": "cpu", "requests": 1}}, ["spec.allocatable"]),
        ({"allocatable": True}, ["spec.resource.name"]),
        ({"allocatable": True, "resource": {"name": "cpu"}}, ["spec.resource.requests"]),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": 0}},
            ["spec.resource.requests"],
        ),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": -1}},
            ["spec.resource.requests"],
        ),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": 1, "limits": 0}},
            ["spec.resource.limits"],
        ),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": 2, "limits": 1}},
            ["spec.resource.requests"],
        ),
        (
            {"allocatable": True, "resource": {"name": "memory", "requests": 2, "units": "GO"}},
            ["spec.resource.units"],
        ),
        (
            {"allocatable": True, "resource": {"name": "nvidia.com/gpu", "requests": 1.5}},
            ["spec.resource.requests"],
        ),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": "lots"}},
            ["spec.resource.requests"],
        ),
        (
            {"allocatable": True, "resource": {"name": "cpu", "class": "c", "requests": 1}},
            ["spec.resource.name"],
        ),
        (
            {"allocatable": True, "resource": {"key": "k", "value": "v"}},
            ["spec.resource.key"],
        ),
        (
            {"allocatable": False, "resource": {"key": "k", "requests": 1}},
            ["spec.resource.requests"],
        ),
        ({"allocatable": False, "resource": {"key": "k"}}, ["spec.resource.value"]),
        ({"allocatable": False, "resource": {"value": "v"}}, ["spec.resource.key"]),
        (
            {"allocatable": False, "resource": {"key": "k", "operator": "In"}},
            ["spec.resource.values"],
        ),
        (
            {"allocatable": False, "resource": {"key": "k", "operator": "Gt", "values": ["x"]}},
            ["spec.resource.values"],
        ),
        (
            {"allocatable": False, "resource": {"key": "a b", "value": "v"}},
            ["spec.resource.key"],
        ),
        (
            {"allocatable": True, "weight": 11, "resource": {"name": "cpu", "requests": 1}},
            ["spec.weight"],
        ),
        (
            {"allocatable": True, "weight": 0, "resource": {"name": "cpu", "requests": 1}},
            ["spec.weight"],
        ),
        (
            {"allocatable": True, "resource": {"selector": {"members": 1}, "requests": 1}},
            ["spec.resource.selector.members"],
        ),
    ],
)
def test_a_fault_names_its_field(spec: Json, fields: list[str]) -> None:
    assert faults(REQUIREMENT, spec)[: len(fields)] == fields


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"allocatable": "yes", "resource": {"name": "cpu", "requests": 1}}, "spec.allocatable"),
        ({"allocatable": True, "resource": []}, "spec.resource"),
        ({"allocatable": True, "resource": {"name": 4, "requests": 1}}, "spec.resource.name"),
        (
            {"allocatable": True, "resource": {"name": "cpu", "requests": [1]}},
            "spec.resource.requests",
        ),
        ({"allocatable": True, "weight": "9", "resource": {}}, "spec.weight"),
        ([], "spec"),
        ("spec", "spec"),
    ],
)
def test_what_is_of_another_type_is_told_apart(spec: Any, field: str) -> None:
    with pytest.raises(MistypedDocument) as caught:
        read(REQUIREMENT, spec)
    assert caught.value.field == field


def test_null_is_as_if_it_were_not_there() -> None:
    spec = {"allocatable": True, "weight": None, "resource": {"name": "cpu", "requests": 1}}
    assert "weight" not in read(REQUIREMENT, spec)


def test_what_nobody_knows_is_dropped() -> None:
    spec = {"allocatable": True, "colour": 1, "resource": {"name": "cpu", "requests": 1, "x": 2}}
    assert read(REQUIREMENT, spec) == {
        "allocatable": True,
        "resource": {"name": "cpu", "requests": 1},
    }


# -- by EMCO's rules -----------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [1.5, "500m", "1"])
def test_emco_knows_whole_numbers_only(amount: Any) -> None:
    spec = {"allocatable": True, "resource": {"name": "cpu", "requests": amount}}
    with pytest.raises(MistypedDocument):
        read(REQUIREMENT, spec, is_emco=True)


def test_emco_takes_nought_as_absent() -> None:
    spec = {"allocatable": True, "weight": 0, "resource": {"name": "cpu", "requests": 1}}
    assert "weight" not in read(REQUIREMENT, spec, is_emco=True)
    spec = {"allocatable": True, "resource": {"name": "cpu", "requests": 0}}
    assert faults(REQUIREMENT, spec, is_emco=True)[0] == "spec.resource"


def test_emco_wants_requests_where_limits_would_do() -> None:
    spec = {"allocatable": True, "resource": {"name": "nvidia.com/gpu", "limits": 1}}
    with pytest.raises(BadDocument) as caught:
        read(REQUIREMENT, spec, is_emco=True)
    assert [each.emco for each in caught.value.violations] == [
        "Must validate one and only one schema (oneOf)",
        "requests is required",
    ]


def test_emco_has_no_highest_weight() -> None:
    spec = {"allocatable": True, "weight": 99, "resource": {"name": "cpu", "requests": 1}}
    assert read(REQUIREMENT, spec, is_emco=True)["weight"] == 99
