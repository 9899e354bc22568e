"""Documents that the API server has not seen: wrong types and unknown fields, by path."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.machines.validation.decoding import decoded
from tests.machines.building import changed


def faults(changes: dict[str, Any]) -> list[tuple[str, str]]:
    _, found = decoded({"metadata": {"name": "m"}, "spec": changed(changes)})
    return [(each.path, each.message) for each in found]


def test_the_specifications_example_is_read() -> None:
    machine, found = decoded({"metadata": {"name": "m"}, "spec": changed({})})
    assert found == ()
    assert machine is not None
    assert machine.spec.machine_types[0].name == "compute-medium"


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {"machineTypes[0].available": "four"},
            "spec.machineTypes[0].available",
            "Expected `int`, got `str`",
        ),
        (
            {"machineTypes[1].spec": {"memory": "1Gi"}},
            "spec.machineTypes[1].spec",
            "Object missing required field `cpu`",
        ),
        ({"nodePools": []}, "spec.nodePools", "there is no such field; there are nodePool, "),
        (
            {"machineTypes[2].spec.gpu.count": 2},
            "spec.machineTypes[2].spec.gpu.count",
            "there is no such field; there are type, num, ",
        ),
    ],
)
def test_what_is_wrong_by_its_form(changes: dict[str, Any], path: str, words: str) -> None:
    ((found, message),) = faults(changes)
    assert found == path
    assert message.startswith(words)


def test_labels_of_selectors_are_no_fields() -> None:
    buyers = {"namespaceSelector": {"matchLabels": {"team": "vision"}}}
    assert faults({"buyers": buyers}) == []


def test_a_document_that_is_none() -> None:
    machine, (found,) = decoded({"spec": []})
    assert machine is None
    assert found.path == "spec"
