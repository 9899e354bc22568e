"""Guard: whether a cluster reserves the devices written on pods to those who may allocate them.

The node agent asks, before it gives pods what is written on them. The policy of the manifests (part
`guard`) must be there and bound, and be at least as strict as it is shipped: who edits it may add
rules and conditions to what is refused, and change words, but take nothing away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import msgspec
import yaml

from dovetail.kube import manifests
from dovetail.kube.api.port import ApiNotFound, KubeApi
from dovetail.podfit.objects import ApiResource, KubeObject

PART = "guard"
GROUP, VERSION = "admissionregistration.k8s.io", "v1"
EVERYTHING: tuple[Mapping[str, Any] | None, ...] = ({}, None)
"""Selectors that leave nothing out."""


class AdmissionPolicy(KubeObject, frozen=True, kw_only=True):
    API: ClassVar[ApiResource] = ApiResource(
        GROUP, VERSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
    )
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class AdmissionPolicyBinding(KubeObject, frozen=True, kw_only=True):
    API: ClassVar[ApiResource] = ApiResource(
        GROUP,
        VERSION,
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
    )
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


Gaps = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[str]]
"""Of what is shipped, and of what is found."""
Kinds = tuple[tuple[type[AdmissionPolicy] | type[AdmissionPolicyBinding], Gaps], ...]


async def why_not_guarded(api: KubeApi) -> str | None:
    """What is missing; None if nothing is. Raises ApiError, ApiUnreachable."""
    shipped = shipped_parts()
    name = shipped[AdmissionPolicy.API.kind]["metadata"]["name"]
    kinds: Kinds = ((AdmissionPolicy, policy_gaps), (AdmissionPolicyBinding, binding_gaps))
    for kind, gaps_of in kinds:
        try:
            found = await api.get(kind, name)
        except ApiNotFound:
            return f"there is no {kind.API.kind} {name}"
        if found.metadata.deletion_timestamp is not None:
            return f"{kind.API.kind} {name} is being deleted"
        gap = next(gaps_of(shipped[kind.API.kind]["spec"], found.spec), None)
        if gap is not None:
            return f"{kind.API.kind} {name} is not as it is shipped: {gap}"
    return None


@cache
def shipped_parts() -> dict[str, dict[str, Any]]:
    """By kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(manifests.text([PART]))}


def policy_gaps(shipped: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """What a policy lets through that the shipped one does not."""
    if found.get("failurePolicy", "Fail") != "Fail":
        yield "spec.failurePolicy is not Fail"
    for key in ("matchConditions", "paramKind"):
        if found.get(key):
            yield f"spec.{key} is set"
    constraints = found.get("matchConstraints") or {}
    yield from selector_gaps("spec.matchConstraints", constraints)
    rules = [rule_of(each) for each in listed(constraints, "resourceRules")]
    for each in shipped["matchConstraints"]["resourceRules"]:
        if rule_of(each) not in rules:
            yield f"spec.matchConstraints.resourceRules lacks {', '.join(each['resources'])}"
    for key, of in (("variables", ("name", "expression")), ("validations", ("expression",))):
        there = [tuple(each.get(part) for part in of) for each in listed(found, key)]
        for each in shipped[key]:
            if tuple(each[part] for part in of) not in there:
                yield f"spec.{key} has another expression, or lacks one"


def binding_gaps(shipped: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    if found.get("policyName") != shipped["policyName"]:
        yield "spec.policyName is another"
    if "Deny" not in (found.get("validationActions") or ()):
        yield "spec.validationActions lacks Deny"
    if found.get("paramRef"):
        yield "spec.paramRef is set"
    narrowed = found.get("matchResources") or {}
    if narrowed.get("resourceRules"):
        yield "spec.matchResources.resourceRules is set"
    yield from selector_gaps("spec.matchResources", narrowed)


def selector_gaps(place: str, constraints: Mapping[str, Any]) -> Iterator[str]:
    """By which something is left out; empty selectors are what the API server writes itself."""
    for key in ("namespaceSelector", "objectSelector"):
        if constraints.get(key) not in EVERYTHING:
            yield f"{place}.{key} is set"
    if constraints.get("excludeResourceRules"):
        yield f"{place}.excludeResourceRules is set"


def rule_of(written: Mapping[str, Any]) -> tuple[frozenset[str], ...]:
    parts = ("apiGroups", "apiVersions", "operations", "resources", "resourceNames")
    scope = frozenset((str(written.get("scope") or "*"),))
    return (*(frozenset(written.get(part) or ()) for part in parts), scope)


def listed(within: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    found = within.get(key)
    return found if isinstance(found, list) else ()
