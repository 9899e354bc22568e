"""Selectors: conditions on attributes, an OR of ANDs.

A key that is missing meets NotIn and DoesNotExist and nothing else; it is never an error. In and
NotIn compare text, the ordered operators amounts of one dimension; Eq compares amounts where both
sides have a unit (30G is 30000M), else text (version 1.10 is not 1.1).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from dovetail.core.errors import Malformed
from dovetail.core.selectors import amount
from dovetail.core.selectors.amount import Amount


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EQ = "Eq"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    GT_EQ = "GtEq"
    LT = "Lt"
    LT_EQ = "LtEq"


class Expression(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.key, self.operator, ", ".join(self.values))).rstrip()


Selector = tuple[tuple[Expression, ...], ...]
"""Any of these has to have all of its expressions met. Empty, at either level: meets nothing."""

Condition = Callable[[str | None], bool]
"""Of the value of a key; None if the key is missing."""

ORDERED: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.GT: operator.gt,
    Operator.GT_EQ: operator.ge,
    Operator.LT: operator.lt,
    Operator.LT_EQ: operator.le,
}
SETS = frozenset((Operator.IN, Operator.NOT_IN))
PRESENCE = frozenset((Operator.EXISTS, Operator.DOES_NOT_EXIST))


class BadExpression(Malformed):
    """An expression that says nothing, and so can select nothing."""


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with an expression; `index` is the value's, None where it is their number."""

    index: int | None
    message: str


def problems_of(expression: Expression) -> tuple[Fault, ...]:
    """Why it cannot be evaluated; nothing if it can."""
    kind, values = expression.operator, expression.values
    if kind in PRESENCE:
        return (Fault(None, f"{kind} takes no values"),) if values else ()
    if kind in SETS:
        return () if values else (Fault(None, f"{kind} takes at least one value"),)
    if len(values) != 1:
        return (Fault(None, f"{kind} takes exactly one value, not {len(values)}"),)
    if kind in ORDERED and amount.read(values[0]) is None:
        return (Fault(0, f"{values[0]!r} has no order: an amount such as {amount.FORMS}"),)
    return ()


def compile_selector(selector: Selector) -> Callable[[Mapping[str, str]], bool]:
    """Tells of attributes whether they are selected. Raises BadExpression."""
    branches = tuple(
        tuple((each.key, condition(each)) for each in branch) for branch in selector if branch
    )

    def selects(attributes: Mapping[str, str]) -> bool:
        get = attributes.get
        for branch in branches:
            for key, met in branch:
                if not met(get(key)):
                    break
            else:
                return True
        return False

    return selects


def condition(expression: Expression) -> Condition:
    """Tells of the value of the key whether the expression is met. Raises BadExpression."""
    for fault in problems_of(expression):
        raise BadExpression(f"{expression}: {fault.message}")
    kind, values = expression.operator, expression.values
    if kind in ORDERED:
        return _order_condition(ORDERED[kind], values[0])
    if kind is Operator.EQ:
        return _equal(values[0])
    if kind in SETS:
        listed = frozenset(values)
        if kind is Operator.IN:
            return lambda value: value in listed
        return lambda value: value not in listed
    if kind is Operator.EXISTS:
        return lambda value: value is not None
    return lambda value: value is None


def _order_condition(compare: Callable[[Any, Any], Any], text: str) -> Condition:
    wanted = amount.read(text)
    assert wanted is not None
    dimension, size = wanted.dimension, wanted.size

    def met(value: str | None) -> bool:
        seen = amount.read(value) if value is not None else None
        return bool(seen and seen.dimension is dimension and compare(seen.size, size))

    return met


def _equal(text: str) -> Condition:
    wanted = amount.read(text)
    if wanted is None or not wanted.has_unit:
        return lambda value: value == text
    return lambda value: value is not None and amount.read(value) == wanted


class Mismatch(msgspec.Struct, frozen=True):
    """A comparison that cannot come out true because its sides have different dimensions."""

    expression: Expression
    seen: str

    def __str__(self) -> str:
        found, wanted = amount.read(self.seen), amount.read(self.expression.values[0])
        assert wanted is not None
        kind = found.dimension if found else "text"
        return (
            f"{self.expression.key} is {self.seen!r}, {kind}:"
            f" not comparable with {self.expression.values[0]!r}, {wanted.dimension}"
        )


def mismatches(selector: Selector, attributes: Mapping[str, str]) -> tuple[Mismatch, ...]:
    """Comparisons with these attributes that mean nothing: a slip in class or device.

    Only where everything else is met: the speed of a disk is nothing to a class of NICs.
    """
    return tuple(
        found
        for branch in selector
        for each in branch
        if (found := mismatch(each, attributes.get(each.key)))
        and _others_met(branch, each.key, attributes)
    )


def mismatch(expression: Expression, seen: str | None) -> Mismatch | None:
    if seen is None or _comparable(expression, amount.read(seen)):
        return None
    return Mismatch(expression, seen)


def _others_met(branch: tuple[Expression, ...], key: str, attributes: Mapping[str, str]) -> bool:
    return all(condition(each)(attributes.get(each.key)) for each in branch if each.key != key)


def _comparable(expression: Expression, seen: Amount | None) -> bool:
    ordered = expression.operator in ORDERED
    if not ordered and expression.operator is not Operator.EQ:
        return True
    wanted = amount.read(expression.values[0])
    if ordered:
        return wanted is None or (seen is not None and seen.dimension is wanted.dimension)
    # Equality with text is fair; of two amounts only those of one dimension can be equal.
    return not (wanted and seen and wanted.has_unit) or seen.dimension is wanted.dimension
