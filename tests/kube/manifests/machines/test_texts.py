"""The policies as text: what they repeat is the same everywhere, and the names are ours."""

from __future__ import annotations

from typing import Any

import yaml

from dovetail.kube import manifests
from dovetail.machines import names

ADMISSION = ("machines-injection", "machines-admission")


def objects(*parts: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifests.text(parts)))


def test_a_variable_that_two_policies_have_is_the_same_in_both() -> None:
    """A document cannot refer to another: the sums of injection and refusal are written twice."""
    found: dict[str, set[str]] = {}
    for each in objects(*ADMISSION):
        for variable in each.get("spec", {}).get("variables", []):
            found.setdefault(variable["name"], set()).add(variable["expression"])
    assert {"optedIn", "requests", "left", "fits", "demands"} <= found.keys()
    assert all(len(expressions) == 1 for expressions in found.values()), found


def test_every_policy_is_bound_and_refuses_when_it_cannot_tell() -> None:
    everything = objects(*ADMISSION, "machines-rules")
    bindings = {
        each["spec"]["policyName"]: each["spec"]
        for each in everything
        if each["kind"].endswith("Binding")
    }
    policies = {
        each["metadata"]["name"]: each["spec"]
        for each in everything
        if each["kind"].endswith("Policy")
    }
    assert bindings.keys() == policies.keys()
    for name, spec in policies.items():
        warns = bindings[name].get("validationActions") == ["Warn"]
        assert spec["failurePolicy"] == ("Ignore" if warns else "Fail")
        assert ("paramKind" in spec) == ("paramRef" in bindings[name])


def test_the_names_in_the_policies_are_those_of_the_code() -> None:
    text = manifests.text(ADMISSION)
    used = (
        *(names.MACHINE_GROUP, names.MACHINE_TYPE, names.POD_ROLE, names.INJECTING_CONTAINER),
        *(names.INJECT_RESOURCE, names.INJECT_RESOURCE_ALIAS, names.NODE_POOL, names.UNIT_GATE),
        *(names.STOCK_GATE, names.OPERATOR, names.CREATOR.replace("/", "~1")),
    )
    assert [name for name in used if name not in text] == []
