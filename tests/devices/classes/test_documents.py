"""Documents of resource classes: read and written without loss, refused with the field's path."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.selectors.selector import Expression, Operator, Selector
from dovetail.devices.classes.documents import (
    LONGEST_NAME,
    BadClass,
    DeviceClass,
    Member,
    read,
    write,
)
from tests.devices.selectors import selectors


def spec(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSelector": [{"matchExpressions": list(expressions)}]}


def expression(operator: str, *values: str, key: str = "memory") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def problems(document: Any, name: str = "fast") -> dict[str, str]:
    with pytest.raises(BadClass) as caught:
        read(name, document)
    return {each.path: each.message for each in caught.value.problems}


FIRST = "spec.resourceSelector[0].matchExpressions[0]"


def test_a_class_that_selects() -> None:
    document = spec(expression("In", "gpu", key="Kind"), expression("GtEq", "30G"))
    assert read("big.gpu", {**document, "singleDevice": True}) == DeviceClass(
        "big.gpu",
        (
            (
                Expression("Kind", Operator.IN, ("gpu",)),
                Expression("memory", Operator.GT_EQ, ("30G",)),
            ),
        ),
        single_device=True,
    )


def test_a_class_made_of_classes() -> None:
    members = [{"class": "core", "count": 4}, {"class": "nic"}]
    assert read("numa-node", {"members": members, "same": ["numa"]}) == DeviceClass(
        "numa-node", members=(Member("core", 4), Member("nic", 1)), same=("numa",)
    )


@pytest.mark.parametrize("document", [{}, {"resourceSelector": None}, {"resourceSelector": []}])
def test_a_null_or_empty_selector_is_allowed(document: dict[str, Any]) -> None:
    assert read("nothing", document) == DeviceClass("nothing")


@settings(deadline=None)
@given(selectors(), st.booleans())
def test_what_is_written_is_read_as_the_same(selector: Selector, single: bool) -> None:
    cls = DeviceClass("any", selector, single_device=single)
    assert read("any", write(cls)) == cls


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b.c", "d-1"]), st.integers(1, 9), min_size=1))
def test_members_are_written_and_read_as_the_same(counts: dict[str, int]) -> None:
    members = tuple(Member(name, count) for name, count in counts.items())
    cls = DeviceClass("any", members=members, same=("numa",))
    assert read("any", write(cls)) == cls


def test_row_15_keys_are_case_sensitive_and_a_slip_is_no_error() -> None:
    cls = read("slip", spec(expression("In", "gpu", key="kind")))
    assert cls.selector[0][0].key == "kind"


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (expression("Equals", "1"), ".operator", "'Equals': one of In, NotIn, Eq, Exists"),
        (expression("gteq", "1"), ".operator", "'gteq': one of In"),
        ({"key": "memory"}, ".operator", "None: one of In"),
        (expression("In"), ".values", "In takes at least one value"),
        (expression("GtEq", "1", "2"), ".values", "GtEq takes exactly one value, not 2"),
        (expression("Exists", "1"), ".values", "Exists takes no values"),
        (expression("GtEq", "30 G"), ".values[0]", "'30 G' has no order: an amount such as 30G"),
        (expression("Lt", "40Gb/s"), ".values[0]", "'40Gb/s' has no order"),
        (expression("Exists", key=""), ".key", "has 0 characters: 1 to 63 are expected"),
        (expression("Exists", key="k" * 64), ".key", "has 64 characters"),
        ({"operator": "Exists"}, ".key", "is missing"),
        ({"key": 5, "operator": "Exists"}, ".key", "5: text is expected"),
        ({"key": "a", "operator": "In", "values": [1]}, ".values[0]", "1: text is expected"),
        ({"key": "a", "operator": "In", "values": "b"}, ".values", "'b': a list is expected"),
        ({**expression("Exists"), "value": "1"}, ".value", "no such field: there are key"),
        ("memory", "", "'memory': an object with key, operator, values is expected"),
    ],
)
def test_row_17_a_bad_expression_is_refused_at_its_field(
    given: Any, path: str, message: str
) -> None:
    found = problems(spec(given))
    assert list(found) == [FIRST + path]
    assert found[FIRST + path].startswith(message)


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({**spec(), "members": [{"class": "a"}]}, "spec.members", "not both"),
        ({"same": ["numa"]}, "spec.same", "there are none"),
        ({"members": [{"class": "a", "count": 0}]}, "spec.members[0].count", "from 1"),
        ({"members": [{"class": "a", "count": True}]}, "spec.members[0].count", "from 1"),
        ({"members": [{"class": "a", "count": 1.5}]}, "spec.members[0].count", "from 1"),
        ({"members": [{"class": "fast"}]}, "spec.members[0].class", "part of itself"),
        ({"members": [{"class": "A"}]}, "spec.members[0].class", "lower-case letters"),
        ({"members": [{"count": 1}]}, "spec.members[0].class", "is missing"),
        ({"members": [{"class": "a"}] * 2}, "spec.members[1].class", "is there already"),
        (
            {"members": [{"class": "a"}], "same": ["x", "x"]},
            "spec.same[1]",
            "is there already",
        ),
        ({"members": [{"class": "a"}], "singleDevice": True}, "spec.singleDevice", "several"),
        ({"singleDevice": "yes"}, "spec.singleDevice", "true or false"),
        ({"resourceSelectors": []}, "spec.resourceSelectors", "no such field"),
        ({"resourceSelector": {}}, "spec.resourceSelector", "a list is expected"),
        ({"members": ["a"]}, "spec.members[0]", "'a': an object with class, count"),
        ([], "spec", "an object with resourceSelector"),
    ],
)
def test_a_bad_class_is_refused_at_its_field(document: Any, path: str, message: str) -> None:
    found = problems(document)
    assert list(found) == [path]
    assert message in found[path]


def test_everything_wrong_is_told_at_once() -> None:
    document = spec(expression("Near", "1"), expression("Gt", "lots"), expression("Exists", "1"))
    assert list(problems(document, "Bad_Name")) == [
        "metadata.name",
        f"{FIRST}.operator",
        "spec.resourceSelector[0].matchExpressions[1].values[0]",
        "spec.resourceSelector[0].matchExpressions[2].values",
    ]


@pytest.mark.parametrize("name", ["", "A", "a_b", ".a", "a.", "-a", "a-", "a..b", "a b", "é"])
def test_names_are_dns_subdomains(name: str) -> None:
    assert "lower-case letters" in problems({}, name)["metadata.name"]


def test_row_13_a_name_leaves_room_for_a_device_in_the_annotation() -> None:
    assert len(f"resClass_{'c' * LONGEST_NAME}_d") == 63
    assert read("c" * LONGEST_NAME, {}).name == "c" * LONGEST_NAME
    message = problems({}, "c" * (LONGEST_NAME + 1))["metadata.name"]
    assert "has 53 characters, and at most 52 leave room for a device" in message


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["resourceSelector", "matchExpressions", "key", "operator", "values", "members"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_document_is_read_or_refused(document: Any) -> None:
    with contextlib.suppress(BadClass):
        assert read("any", document).name == "any"
