"""Whether the guard of a cluster is what was shipped, or stricter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dovetail.kube import manifests
from dovetail.kube.api.client import connect
from dovetail.kube.classes.guard import (
    AdmissionPolicy,
    AdmissionPolicyBinding,
    shipped_parts,
    why_not_guarded,
)
from tests.support.kube.cluster import Cluster
from tests.support.kube.memory import MemoryApi

NAME = "allocation.resourceclasses.dovetail.dev"
KINDS = {each.API.kind: each for each in (AdmissionPolicy, AdmissionPolicyBinding)}

Parts = dict[str, Any]
Edit = Callable[[Parts, Parts], Any]
"""Of the policy's spec, and of its binding's."""


async def why_not(edit: Edit = lambda _policy, _binding: None) -> str | None:
    parts = copy.deepcopy(shipped_parts())
    edit(*(parts[kind]["spec"] for kind in KINDS))
    api = MemoryApi()
    for kind, each in parts.items():
        await api.create(KINDS[kind], each)
    return await why_not_guarded(api)


async def test_as_it_is_shipped_it_will_do() -> None:
    assert await why_not() is None


STRICTER: tuple[Edit, ...] = (
    lambda policy, _: policy["validations"].append({"expression": "false"}),
    lambda policy, _: policy["validations"][0].update(message="other words"),
    lambda policy, _: policy["matchConstraints"]["resourceRules"].append({"resources": ["nodes"]}),
    lambda policy, _: policy["matchConstraints"].update(namespaceSelector={}, objectSelector={}),
    lambda policy, _: policy["matchConstraints"]["resourceRules"][0].update(scope="*"),
    lambda _, binding: binding.update(validationActions=["Audit", "Deny"]),
    lambda _, binding: binding.update(matchResources={"namespaceSelector": {}}),
)
LAXER: tuple[tuple[Edit, str], ...] = (
    (lambda policy, _: policy.update(failurePolicy="Ignore"), "failurePolicy"),
    (lambda policy, _: policy.update(matchConditions=[{"expression": "false"}]), "matchCond"),
    (lambda policy, _: policy["validations"].clear(), "validations"),
    (lambda policy, _: policy["validations"][0].update(expression="true"), "validations"),
    (lambda policy, _: policy["variables"][0].update(expression="''"), "variables"),
    (lambda policy, _: policy["matchConstraints"]["resourceRules"].pop(), "lacks bindings"),
    (
        lambda policy, _: policy["matchConstraints"]["resourceRules"][0].update(resources=["pods"]),
        "lacks pods, pods/*",
    ),
    (
        lambda policy, _: policy["matchConstraints"].update(
            namespaceSelector={"matchLabels": {"a": "b"}}
        ),
        "namespaceSelector",
    ),
    (
        lambda policy, _: policy["matchConstraints"].update(excludeResourceRules=[{}]),
        "excludeResourceRules",
    ),
    (lambda _, binding: binding.update(policyName="other"), "policyName"),
    (lambda _, binding: binding.update(validationActions=["Warn"]), "lacks Deny"),
    (
        lambda _, binding: binding.update(matchResources={"objectSelector": {"matchLabels": {}}}),
        "objectSelector",
    ),
    (
        lambda _, binding: binding.update(matchResources={"resourceRules": [{}]}),
        "resourceRules",
    ),
)


@pytest.mark.parametrize("edit", STRICTER)
async def test_more_may_be_refused(edit: Edit) -> None:
    assert await why_not(edit) is None


@pytest.mark.parametrize(("edit", "what"), LAXER)
async def test_but_not_less(edit: Edit, what: str) -> None:
    said = await why_not(edit)
    assert said is not None
    assert "is not as it is shipped" in said
    assert what in said


@pytest.fixture
def agent(cluster: Cluster) -> Iterator[str]:
    """The kubeconfig of the node agents' account."""
    cluster.kubectl("create", "namespace", "dovetail")
    given = manifests.text(["agent"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
    yield str(cluster.user("system:serviceaccount:dovetail:dovetail-agent"))
    cluster.kubectl("delete", "-f", "-", given=given)
    cluster.drop_namespace("dovetail")


async def test_of_a_real_cluster_the_agents_account_can_tell(cluster: Cluster, agent: str) -> None:
    given = manifests.text(["guard"])
    async with connect(agent) as api:
        assert await why_not_guarded(api) == f"there is no ValidatingAdmissionPolicy {NAME}"
        cluster.kubectl("apply", "--server-side", "-f", "-", given=given)
        try:
            assert await why_not_guarded(api) is None
            binding = ("validatingadmissionpolicybinding", NAME)
            cluster.kubectl("delete", *binding)
            kind = "ValidatingAdmissionPolicyBinding"
            assert await why_not_guarded(api) == f"there is no {kind} {NAME}"
        finally:
            cluster.kubectl("delete", "--ignore-not-found", "-f", "-", given=given)
