"""From a device class to Kubernetes' DeviceClass: one CEL expression that no missing key breaks."""

from __future__ import annotations

from typing import Any

from dovetail.core.selectors import amount
from dovetail.core.selectors.amount import Dimension
from dovetail.core.selectors.selector import ORDERED, SETS, Expression, Operator
from dovetail.devices.classes.cel.tokens import LONGEST, quote
from dovetail.devices.classes.documents import DeviceClass, Problem
from dovetail.devices.classes.dra.convention import (
    Inexpressible,
    PublishedAt,
    Untranslatable,
    place_of,
    quantity_text,
    semver_text,
)

SIGNS = {
    Operator.EQ: "==",
    Operator.GT: ">",
    Operator.GT_EQ: ">=",
    Operator.LT: "<",
    Operator.LT_EQ: "<=",
}
WORDS = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
"""Names that CEL keeps for itself."""


def to_device_class(cls: DeviceClass) -> dict[str, Any]:
    """Raises Untranslatable with everything that has no counterpart."""
    problems = _foreign(cls)
    branches = []
    for index, branch in enumerate(cls.selector):
        terms = []
        for at, each in enumerate(branch):
            try:
                terms.append(_written(each))
            except Inexpressible as error:
                path = f"spec.resourceSelector[{index}].matchExpressions[{at}]"
                problems.append(Problem(path, str(error)))
        if terms:
            branches.append(terms)
    expression = _any_branch(branches)
    if len(expression) > LONGEST:
        message = f"as CEL this has {len(expression)} characters: at most {LONGEST} are possible"
        problems.append(Problem("spec.resourceSelector", message))
    if problems:
        raise Untranslatable(cls.name, problems)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": cls.name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _foreign(cls: DeviceClass) -> list[Problem]:
    found = []
    if cls.members:
        found.append(Problem("spec.members", "a DeviceClass is not made of others"))
    if cls.single_device:
        message = "a DeviceClass hands out whole devices, so units of one device cannot be asked"
        found.append(Problem("spec.singleDevice", message))
    return found


def _any_branch(branches: list[list[str]]) -> str:
    if len(branches) == 1:
        return " && ".join(branches[0])
    return " ||\n".join(f"({' && '.join(terms)})" for terms in branches) or "false"


def _written(expression: Expression) -> str:
    kind = expression.operator
    if kind in ORDERED:
        return _comparison(expression)
    if kind is Operator.EQ:
        wanted = amount.read(expression.values[0])
        if wanted and wanted.has_unit:
            return _comparison(expression)
    place = place_of(expression.key, None)
    if kind is Operator.EXISTS:
        return _there(place)
    if kind is Operator.DOES_NOT_EXIST:
        return f"!({_there(place)})"
    among = _among(place, expression)
    if kind is Operator.NOT_IN:
        return f"!({_guarded_test(place, among)})"
    return _guarded_test(place, among)


def _among(place: PublishedAt, expression: Expression) -> str:
    """Text is one of the values."""
    if place.holder == "driver" and "" in expression.values:
        raise Inexpressible("a driver's name is never empty")
    if len(expression.values) == 1:
        return f"{_value(place)} == {quote(expression.values[0])}"
    assert expression.operator in SETS
    return f"{_value(place)} in [{', '.join(map(quote, expression.values))}]"


def _comparison(expression: Expression) -> str:
    text = expression.values[0]
    wanted = amount.read(text)
    assert wanted is not None
    place = place_of(expression.key, wanted.dimension)
    if wanted.dimension is Dimension.VERSION:
        made = f"semver({quote(semver_text(wanted, text))})"
    else:
        made = f"quantity({quote(quantity_text(wanted, text))})"
    sign = SIGNS[expression.operator]
    return _guarded_test(place, f"{_value(place)}.compareTo({made}) {sign} 0")


def _guarded_test(place: PublishedAt, test: str) -> str:
    """What is missing would be an error, and that would end the whole allocation."""
    return test if place.holder == "driver" else f"{_there(place)} && {test}"


def _there(place: PublishedAt) -> str:
    if place.holder == "driver":
        return 'device.driver != ""'
    return f"{quote(place.id)} in device.{place.holder}[{quote(place.domain)}]"


def _value(place: PublishedAt) -> str:
    if place.holder == "driver":
        return "device.driver"
    domain = f"device.{place.holder}[{quote(place.domain)}]"
    return f"{domain}[{quote(place.id)}]" if place.id in WORDS else f"{domain}.{place.id}"
