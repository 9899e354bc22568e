"""HPA intents, resource consumers and resource requirements, in the specification's spelling and
in EMCO's: what hardware the microservices of an app need.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dovetail.devices.classes.documents import BadClass
from dovetail.devices.classes.documents import read as read_class
from dovetail.intents.documents.common import app_member, named_document
from dovetail.intents.documents.shapes import (
    BooleanShape,
    DocumentFindings,
    IntegerShape,
    Json,
    ListShape,
    ObjectShape,
    RecordMember,
    RecordShape,
    TextShape,
    plain,
)
from dovetail.intents.group import HIGHEST_WEIGHT
from dovetail.intents.manifests.quantities import BadAmount, amount_of

LABEL_PREFIX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_KEY = TextShape(longest=317, pattern=f"^({LABEL_PREFIX}/)?{LABEL_NAME}$")
LABEL_VALUE = re.compile(f"({LABEL_NAME})?")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
ALLOCATABLE = ("name", "requests", "limits", "units", "class", "selector")
LABELLED = ("key", "value", "operator", "values")
ONE_OF = "Must validate one and only one schema (oneOf)"
SELECTOR_NAME = "selector"
"""Of a class that a requirement brings along."""


class AmountShape(msgspec.Struct, frozen=True):
    """A number, or a quantity as Kubernetes writes them; by EMCO's rules a whole number."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> int | float | str:
        allowed = int if findings.is_emco else int | float | str
        if not isinstance(value, allowed) or isinstance(value, bool):
            findings.mistyped(field, "an amount", value)
            return 1
        if isinstance(value, str) and len(value) > 100:
            findings.broken(field, "at most 100 characters")
            return 1
        if findings.is_emco and value < 1:
            findings.broken(field, "at least 1", "Must be greater than or equal to 1")
            return 1
        found: int | float | str = value
        return found

    def schema(self) -> Json:
        number: Json = {"type": "number", "exclusiveMinimum": 0}
        return {"anyOf": [number, {"type": "string", "maxLength": 100}]}


def flat_consumer(spec: Json) -> Json:
    """The specification has a level `consumer` in it."""
    for key, inner in spec.items():
        if plain(key) == "consumer" and isinstance(inner, dict):
            return {**{name: each for name, each in spec.items() if name != key}, **inner}
    return spec


def nested_requirement(spec: Json) -> Json:
    """The specification has what is under `resource` beside it."""
    if any(plain(key) == "resource" for key in spec):
        return spec
    outer = ("allocatable", "mandatory", "weight")
    found = {key: value for key, value in spec.items() if plain(key) in outer}
    return {**found, "resource": {key: spec[key] for key in spec if key not in found}}


# -- rules ---------------------------------------------------------------------------------------


def check_requirement(spec: Json, field: str, findings: DocumentFindings) -> None:
    allocatable, resource = spec.get("allocatable"), spec.get("resource")
    if allocatable is None or resource is None:
        return
    at = f"{field}.resource"
    if findings.is_emco and not _is_ours(resource):
        _check_emco(resource, at, findings)
        return
    if not allocatable and "name" in resource and "key" not in resource:
        # The specification calls a label's key its name.
        spec["resource"] = resource = {"key": resource.pop("name"), **resource}
    foreign = [key for key in (LABELLED if allocatable else ALLOCATABLE) if key in resource]
    if foreign:
        what = "an allocatable" if allocatable else "a non-allocatable"
        findings.broken(f"{at}.{foreign[0]}", f"is not for {what} resource")
        return
    if allocatable:
        _check_allocatable(resource, at, findings)
    else:
        _check_label(resource, at, findings)


def _is_ours(resource: Json) -> bool:
    return any(key in resource for key in ("class", "selector", "operator", "values"))


def _check_emco(resource: Json, field: str, findings: DocumentFindings) -> None:
    by_amount = {"name", "requests"} <= resource.keys()
    by_label = {"key", "value"} <= resource.keys()
    if by_amount == by_label:
        findings.broken(field, "either name and requests, or key and value", ONE_OF)
        form = ("key", "value") if "key" in resource else ("name", "requests")
        for key in form if not by_amount else ():
            if key not in resource:
                findings.broken(f"{field}.{key}", "is required", f"{key} is required")


def _check_allocatable(resource: Json, field: str, findings: DocumentFindings) -> None:
    kinds = [key for key in ("name", "class", "selector") if key in resource]
    if len(kinds) != 1:
        told = f"one of name, class and selector, not {' and '.join(kinds) or 'none'}"
        findings.broken(f"{field}.name", told, "name is required")
        return
    if "requests" not in resource and "limits" not in resource:
        findings.broken(f"{field}.requests", "requests or limits are required")
        return
    if "selector" in resource:
        _check_selector(resource["selector"], f"{field}.selector", findings)
    name = resource.get("name", "device")
    amounts = {}
    for key in ("requests", "limits"):
        if key in resource:
            try:
                amounts[key] = amount_of(
                    name,
                    resource[key],
                    resource.get("units", ""),
                    field=f"{field}.{key}",
                    units_field=f"{field}.units",
                )
            except BadAmount as error:
                findings.broken(error.field, error.message)
    if len(amounts) == 2 and amounts["requests"] > amounts["limits"]:
        findings.broken(f"{field}.requests", "is more than limits")


def _check_selector(selector: Json, field: str, findings: DocumentFindings) -> None:
    try:
        read_class(SELECTOR_NAME, selector)
    except BadClass as error:
        for problem in error.problems:
            path = problem.path.removeprefix("spec").removeprefix(".")
            findings.broken(f"{field}.{path}" if path else field, problem.message)


def _check_label(resource: Json, field: str, findings: DocumentFindings) -> None:
    if "key" not in resource:
        findings.broken(f"{field}.key", "is required")
        return
    operator = resource.get("operator")
    if "value" in resource:
        if operator not in (None, "In") or "values" in resource:
            findings.broken(f"{field}.value", "stands alone, without operator and values")
        _check_label_values([resource["value"]], f"{field}.value", findings)
        return
    if operator is None:
        findings.broken(f"{field}.value", "value or operator is required", "value is required")
        return
    values = resource.get("values", [])
    wanted = {"In": "some", "NotIn": "some", "Gt": "one number", "Lt": "one number"}.get(operator)
    is_right = {
        None: not values,
        "some": bool(values),
        "one number": len(values) == 1 and re.fullmatch(r"-?[0-9]{1,18}", values[0]) is not None,
    }[wanted]
    if not is_right:
        findings.broken(f"{field}.values", f"{operator} needs {wanted or 'none'}")
    elif wanted == "some":
        _check_label_values(values, f"{field}.values", findings)


def _check_label_values(values: list[str], field: str, findings: DocumentFindings) -> None:
    for value in values:
        if not LABEL_VALUE.fullmatch(value):
            findings.broken(field, f"{value[:80]!r} cannot be the value of a label")


# -- shapes --------------------------------------------------------------------------------------

INTENT = named_document(RecordShape(members=(app_member(),)))

_FREE = TextShape(longest=253, shortest=1)

CONSUMER = named_document(
    RecordShape(
        rewrite=flat_consumer,
        members=(
            RecordMember(name="apiVersion", shape=_FREE, zero_is_absent=True),
            RecordMember(name="kind", shape=_FREE, zero_is_absent=True),
            RecordMember(
                name="replicas",
                shape=IntegerShape(least=1, most=100_000, emco_most=2**63 - 1),
                zero_is_absent=True,
            ),
            RecordMember(name="name", shape=_FREE, required=True, zero_is_absent=True),
            RecordMember(
                name="container", shape=_FREE, aliases=("containerName",), zero_is_absent=True
            ),
            RecordMember(name="withinOne", shape=LABEL_KEY),
        ),
    )
)

RESOURCE = RecordShape(
    members=(
        RecordMember(name="name", shape=_FREE, zero_is_absent=True),
        RecordMember(name="requests", shape=AmountShape(), zero_is_absent=True),
        RecordMember(name="limits", shape=AmountShape(), zero_is_absent=True),
        RecordMember(name="units", shape=TextShape(longest=16), zero_is_absent=True),
        RecordMember(name="key", shape=LABEL_KEY, zero_is_absent=True),
        RecordMember(name="value", shape=TextShape(longest=63), zero_is_absent=True),
        RecordMember(name="operator", shape=TextShape(choices=OPERATORS)),
        RecordMember(name="values", shape=ListShape(items=TextShape(longest=63), most=100)),
        RecordMember(name="class", shape=_FREE, aliases=("className",)),
        RecordMember(name="selector", shape=ObjectShape()),
    )
)

REQUIREMENT = named_document(
    RecordShape(
        rewrite=nested_requirement,
        members=(
            RecordMember(name="allocatable", shape=BooleanShape(), required=True),
            RecordMember(name="mandatory", shape=BooleanShape()),
            RecordMember(
                name="weight",
                shape=IntegerShape(least=1, most=HIGHEST_WEIGHT, emco_most=2**31 - 1),
                zero_is_absent=True,
            ),
            RecordMember(name="resource", shape=RESOURCE, required=True),
        ),
        rules=(check_requirement,),
    )
)
