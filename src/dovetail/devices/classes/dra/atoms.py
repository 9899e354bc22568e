"""Atoms of CEL: single tests on one attribute, read as expressions of device classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import msgspec

from dovetail.core import quantity
from dovetail.core.selectors import amount
from dovetail.core.selectors.amount import Dimension
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.cel.evaluate import Semver
from dovetail.devices.classes.cel.syntax import (
    BadCel,
    Binary,
    CallExpression,
    Index,
    Items,
    Literal,
    Name,
    Node,
    Select,
)
from dovetail.devices.classes.dra.convention import DIMENSIONS, DRIVER, PublishedAt


class Atom(msgspec.Struct, frozen=True):
    """A test of what is at the place. Without an expression: just that something is there."""

    place: PublishedAt
    expression: Expression | None
    at: int


ORDER = {
    ">": Operator.GT,
    ">=": Operator.GT_EQ,
    "<": Operator.LT,
    "<=": Operator.LT_EQ,
}
OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "==": "!=", "!=": "=="}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}
METHODS = {"isGreaterThan": ">", "isLessThan": "<"}

Found = Sequence[tuple[Atom, ...]]


def atoms(node: Node, wanted: bool) -> Found:
    """The alternatives that say that the test comes out as wanted. Raises BadCel."""
    match node:
        case CallExpression("has", None, (argument,)) if place := place_at(argument):
            return _there(place, wanted, node.at)
        case Binary("in", Literal(str(identifier)), Index() as holder) if place := place_at(
            Select(holder, identifier, node.at)
        ):
            return _there(place, wanted, node.at)
        case Binary("in", left, Items(items)) if place := place_at(left):
            return _read_list(place, [_text(place, each) for each in items], wanted, node.at)
        case Binary(sign, left, right) if sign in OPPOSITE:
            if place_at(left) or _comparison(left):
                return _read_relation(left, sign, right, wanted, node.at)
            return _read_relation(right, MIRRORED[sign], left, wanted, node.at)
        case CallExpression(method, Select() | Index() as target, (argument,)) if (
            method in METHODS and (place := place_at(target))
        ):
            return _read_order(place, METHODS[method], argument, wanted, node.at)
    if (place := place_at(node)) and place.holder == "attributes" and not place.ours:
        return _read_list(place, ["true" if wanted else "false"], True, node.at)
    raise BadCel(node.at, "this cannot be said by a resource class")


def place_at(node: Node) -> PublishedAt | None:
    """The attribute or capacity that the node is, if it is one."""
    match node:
        case Select(Name("device"), "driver"):
            return PublishedAt("driver", "", "")
        case Select(
            Index(Select(Name("device"), holder), Literal(str(domain))), identifier
        ) | Index(
            Index(Select(Name("device"), holder), Literal(str(domain))),
            Literal(str(identifier)),
        ) if holder in ("attributes", "capacity"):
            return PublishedAt(holder, domain, identifier, DIMENSIONS.get((holder, domain)))
    return None


def _there(place: PublishedAt, wanted: bool, at: int) -> Found:
    if wanted:
        return [(Atom(place, None, at),)]
    if place.ours and place.dimension is not None:
        message = f"that {place.key} is not {place.dimension} cannot be said by a class"
        raise BadCel(at, message)
    return [(Atom(place, Expression(place.key, Operator.DOES_NOT_EXIST), at),)]


def _read_relation(left: Node, sign: str, right: Node, wanted: bool, at: int) -> Found:
    if (inner := _comparison(left)) and _is_whole(right) and right.value == 0:
        return _read_order(inner[0], sign, inner[1], wanted, at)
    place = place_at(left)
    if place is None:
        raise BadCel(at, "an attribute or a capacity of the device is expected on one side")
    if place.holder == "driver" and right == Literal("", right.at) and sign in ("==", "!="):
        return _there(place, wanted is (sign == "!="), at)
    if isinstance(right, CallExpression) and sign in ("==", "!="):
        return _read_order(place, sign, right, wanted, at)
    if sign in ("==", "!="):
        return _read_list(place, [_text(place, right)], wanted is (sign == "=="), at)
    sign = sign if wanted else OPPOSITE[sign]
    if place.holder != "attributes" or place.ours or not _is_whole(right):
        raise BadCel(at, f"{sign} is understood for whole numbers of drivers' attributes only")
    return [(_atom(place, ORDER[sign], _text(place, right), at=at),)]


def _is_whole(node: Node) -> TypeGuard[Literal]:
    # True is an int to Python.
    return isinstance(node, Literal) and type(node.value) is int


def _comparison(node: Node) -> tuple[PublishedAt, Node] | None:
    """place.compareTo(argument)"""
    match node:
        case CallExpression("compareTo", Select() | Index() as target, (argument,)):
            place = place_at(target)
            return (place, argument) if place else None
    return None


def _read_list(place: PublishedAt, values: list[str], wanted: bool, at: int) -> Found:
    if place.holder == "capacity" or (place.ours and place.dimension is not None):
        raise BadCel(at, f"{place.key} is compared as text, and it is none there")
    if not values:
        return [] if wanted else [()]
    if wanted:
        return [(_atom(place, Operator.IN, *values, at=at),)]
    differs = Atom(place, Expression(place.key, Operator.NOT_IN, tuple(values)), at)
    # A driver's name is always there.
    return [(differs,)] if place.holder == "driver" else [(Atom(place, None, at), differs)]


def _read_order(place: PublishedAt, sign: str, argument: Node, wanted: bool, at: int) -> Found:
    text = _amount(place, argument)
    sign = sign if wanted else OPPOSITE[sign]
    if sign == "==":
        return [
            (_atom(place, Operator.GT_EQ, text, at=at), _atom(place, Operator.LT_EQ, text, at=at))
        ]
    if sign == "!=":
        return [
            (_atom(place, Operator.LT, text, at=at),),
            (_atom(place, Operator.GT, text, at=at),),
        ]
    return [(_atom(place, ORDER[sign], text, at=at),)]


def _atom(place: PublishedAt, kind: Operator, *values: str, at: int) -> Atom:
    return Atom(place, Expression(place.key, kind, values), at)


def _text(place: PublishedAt, node: Node) -> str:
    match node:
        case Literal(str(value)):
            if value or place.key != DRIVER:
                return value
        case Literal(bool(value)) if not place.ours:
            return "true" if value else "false"
        case Literal(int(value)) if not place.ours:
            return str(value)
    raise BadCel(node.at, f"a value that {place.key} can have is expected")


def _amount(place: PublishedAt, node: Node) -> str:
    """The amount as values of the place are written."""
    match node:
        case CallExpression("quantity", None, (Literal(str(text)),)) if place.holder == "capacity":
            return _quantity(place, text, node.at)
        case CallExpression("semver", None, (Literal(str(text)),)) if (
            place.holder == "attributes" and place.dimension in (None, Dimension.VERSION)
        ):
            found = Semver.of(text)
            if found is None or not found.released or (place.ours and not place.dimension):
                raise BadCel(node.at, f"a version of three numbers is expected at {place.key}")
            return ".".join(map(str, found.numbers))
    raise BadCel(node.at, f"quantity(...) or semver(...) is expected, as {place.key} is")


def _quantity(place: PublishedAt, text: str, at: int) -> str:
    try:
        nanos = quantity.nanos(text)
    except quantity.BadQuantity as error:
        raise BadCel(at, str(error)) from error
    found = amount.read(text)
    if not place.ours or (found and found.dimension is place.dimension):
        return text
    written = decimal(nanos) + UNITS[place.dimension]
    if amount.read(written) is None:
        raise BadCel(at, f"{text!r} is too large")
    return written


UNITS = {
    Dimension.SIZE: "B",
    Dimension.RATE: "bps",
    Dimension.NUMBER: "",
    None: "",
    Dimension.VERSION: "",
}


def decimal(nanos: int) -> str:
    whole, part = divmod(abs(nanos), quantity.ONE)
    digits = f"{whole}.{part:09}".rstrip("0").rstrip(".")
    return f"-{digits}" if nanos < 0 else digits
