"""The API server refuses classes that cannot work, with the path of the field."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.selectors import amount
from dovetail.devices.classes.documents import LONGEST_NAME, BadClass, read
from dovetail.kube import manifests
from tests.kube.demo import CLASSES
from tests.support.kube.cluster import Cluster

ONE = "spec.resourceSelector[0].matchExpressions[0]"


def expression(operator: str, *values: str, key: str = "memory") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def selecting(*expressions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"resourceSelector": [{"matchExpressions": list(expressions)}], **more}


def made_of(**counts: int) -> dict[str, Any]:
    return {"members": [{"class": name, "count": count} for name, count in counts.items()]}


def document(spec: dict[str, Any], name: str = "tried") -> dict[str, Any]:
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "ResourceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


BAD = {
    "unknown operator": (selecting(expression("Near", "1G")), f"{ONE}.operator"),
    "no operator": (selecting({"key": "memory", "values": ["1G"]}), f"{ONE}.operator"),
    "no value to be in": (selecting(expression("In")), f"{ONE}.values"),
    "two values to equal": (selecting(expression("Eq", "a", "b")), f"{ONE}.values"),
    "no value to exceed": (selecting(expression("Gt")), f"{ONE}.values"),
    "values to exist": (selecting(expression("Exists", "a")), f"{ONE}.values"),
    "an amount that is none": (selecting(expression("GtEq", "lots")), f"{ONE}.values"),
    "a unit that is none": (selecting(expression("GtEq", "30 GB")), f"{ONE}.values"),
    "an empty key": (selecting(expression("Exists", key="")), f"{ONE}.key"),
    "a long key": (selecting(expression("Exists", key="k" * 64)), f"{ONE}.key"),
    "members beside a selector": (
        {**selecting(expression("Exists")), **made_of(other=1)},
        "spec.members",
    ),
    "none of a member": (made_of(other=0), "spec.members[0].count"),
    "itself as a member": (made_of(tried=1), "spec.members"),
    "the same of nothing": (selecting(expression("Exists"), same=["numa"]), "spec.same"),
    "one device for members": (
        {**made_of(other=2), "singleDevice": True},
        "spec.singleDevice",
    ),
}


@pytest.fixture(scope="module")
def classes(cluster: Cluster) -> Cluster:
    cluster.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(["crds"]))
    established = "--for=condition=Established"
    cluster.kubectl("wait", established, "crd/resourceclasses.dovetail.dev", "--timeout=20s")
    return cluster


def create(cluster: Cluster, *documents: dict[str, Any]) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": documents}
    # Without kubectl looking at it first: what counts is what the API server says.
    dry = ("create", "--dry-run=server", "--validate=false", "-f", "-")
    return cluster.kubectl(*dry, given=listed, check=False)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_class_is_refused_with_the_path_of_the_field(classes: Cluster, case: str) -> None:
    spec, path = BAD[case]
    said = create(classes, document(spec))
    assert "is invalid" in said
    assert re.search(rf"(^|\s){re.escape(path)}(\[\d+\])?:", said), said


@pytest.mark.parametrize("case", BAD)
def test_whoever_reads_the_class_elsewhere_says_the_same(case: str) -> None:
    spec, path = BAD[case]
    with pytest.raises(BadClass) as refused:
        read("tried", spec)
    assert any(problem.path.startswith(path) for problem in refused.value.problems)


def test_a_name_too_long_for_the_annotation_is_refused(classes: Cluster) -> None:
    spec = selecting(expression("Exists"))
    longest = create(classes, document(spec, "n" * LONGEST_NAME))
    assert "created" in longest
    assert "metadata.name: at most 52 characters" in create(classes, document(spec, "n" * 53))


def test_a_class_that_selects_nothing_may_be_there(classes: Cluster) -> None:
    said = create(classes, document({}, "a"), document({"resourceSelector": [{}]}, "b"))
    assert said.count("created") == 2


def test_row_14_the_examples_are_classes_once_they_have_a_group_and_a_version(
    classes: Cluster,
) -> None:
    said = create(classes, *yaml.safe_load_all(CLASSES))
    assert said.count("created") == 3


def test_row_24_the_spec_never_changes_but_labels_do(classes: Cluster) -> None:
    made = document(selecting(expression("GtEq", "30G")), "immutable")
    classes.kubectl("create", "-f", "-", given=made)
    try:
        classes.kubectl("label", "resourceclass", "immutable", "team=a")
        wanted = '{"spec": {"singleDevice": true}}'
        changing = ("patch", "resourceclass", "immutable", "--type=merge", "-p", wanted)
        assert "spec: Invalid value: a class never changes" in re.sub(
            r"Invalid value: [\"{].*?[\"}]: ",
            "Invalid value: ",
            classes.kubectl(*changing, check=False),
        )
    finally:
        classes.kubectl("delete", "resourceclass", "immutable")


def test_kubectl_shows_the_numbers(classes: Cluster) -> None:
    classes.kubectl("create", "-f", "-", given=document({}, "counted"))
    try:
        numbers = '{"status": {"allocatable": 8, "requested": 3, "available": 5}}'
        patching = ("patch", "resourceclass", "counted", "--subresource=status", "--type=merge")
        classes.kubectl(*patching, "-p", numbers)
        header, row = classes.kubectl("get", "rescls", "counted").splitlines()
        assert header.split() == ["NAME", "ALLOCATABLE", "REQUESTED", "AVAILABLE", "AGE"]
        assert row.split()[:4] == ["counted", "8", "3", "5"]
    finally:
        classes.kubectl("delete", "resourceclass", "counted")


AMOUNTS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}[a-zA-Z/]{0,4}", fullmatch=True),
    st.from_regex(r"v?[0-9]{1,3}(\.[0-9]{1,3}){0,3}", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}([kKmMgGtTpPeEnu]i?B?|[kmgtKMGT]?[bB][pP][sS]|[eE][+-]?[0-9]{1,2})"),
    st.text(max_size=8),
)


@settings(max_examples=300, deadline=None)
@given(AMOUNTS)
def test_the_definition_knows_the_same_amounts_as_the_code(text: str) -> None:
    assert bool(re.fullmatch(amount_form(), text, re.ASCII)) == (amount.read(text) is not None)


@cache
def amount_form() -> str:
    """The expression in the definition, without its anchors: RE2 and Python read it alike."""
    crd = yaml.safe_load(manifests.text(["crds"]))
    found = re.search(r"matches\(r'\^(.*)\$'\)", _rules_of(crd))
    assert found
    return found[1]


def _rules_of(crd: dict[str, Any]) -> str:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    branch = schema["properties"]["spec"]["properties"]["resourceSelector"]["items"]
    rules = branch["properties"]["matchExpressions"]["items"]["x-kubernetes-validations"]
    return "\n".join(rule["rule"] for rule in rules)
