"""Evaluator of device selectors in CEL, as Kubernetes has it: the check on translations of classes.

A domain nobody uses is an empty map; an id that is missing from a domain is an error, which `&&`
and `||` outweigh if one of their sides decides by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dovetail.core import quantity
from dovetail.core.errors import DovetailError
from dovetail.devices.classes.cel.syntax import (
    Binary,
    CallExpression,
    Chain,
    Index,
    Items,
    Literal,
    Name,
    Node,
    Not,
    Select,
)

SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


class CelError(DovetailError):
    """An evaluation that has no result; Kubernetes gives up the allocation."""

    def __init__(self, at: int, message: str) -> None:
        self.at = at
        super().__init__(f"at character {at + 1}: {message}")


class Quantity(msgspec.Struct, frozen=True, order=True):
    nanos: int

    @classmethod
    def of(cls, text: str) -> Quantity:
        return cls(quantity.nanos(text))


class Semver(msgspec.Struct, frozen=True, order=True):
    numbers: tuple[int, int, int]
    released: bool
    before: tuple[tuple[bool, int, str], ...]
    """Fields of a pre-release: numbers go before text."""

    @classmethod
    def of(cls, text: str) -> Semver | None:
        found = SEMVER.fullmatch(text)
        if not found:
            return None
        fields = found[4].split(".") if found[4] else []
        order = tuple(
            (False, int(each), "") if each.isdigit() else (True, 0, each) for each in fields
        )
        return cls((int(found[1]), int(found[2]), int(found[3])), not fields, order)


Scalar = str | int | bool | Quantity | Semver
Value = Scalar | Sequence["Value"] | Mapping[str, "Value"]


class CelDevice(msgspec.Struct, frozen=True):
    """A device as drivers publish it; attributes and capacity by domain, then id."""

    driver: str = ""
    attributes: Mapping[str, Mapping[str, str | int | bool | Semver]] = {}
    capacity: Mapping[str, Mapping[str, Quantity]] = {}


def matches(node: Node, device: CelDevice) -> bool:
    """Raises CelError where Kubernetes would fail."""
    value = _Evaluation(device).value(node)
    if not isinstance(value, bool):
        raise CelError(node.at, "the expression is neither true nor false")
    return value


class _Evaluation:
    def __init__(self, device: CelDevice) -> None:
        self._domains = {"attributes": device.attributes, "capacity": device.capacity}
        self._driver = device.driver

    def value(self, node: Node) -> Value:
        match node:
            case Literal(value):
                return value
            case Items(items):
                return [self.value(each) for each in items]
            case Not(operand):
                return not self._truth(operand)
            case Chain():
                return self._connective(node)
            case Binary():
                return self._relation(node)
            case CallExpression():
                return self._call(node)
            case Select(Name("device"), field):
                return self._field(field, node.at)
            case Select(operand, field):
                return self._entry(operand, field, node.at)
            case Index(operand, key):
                return self._entry(operand, self._text(key), node.at)
            case Name(name):
                raise CelError(node.at, f"there is no {name}")

    def _field(self, field: str, at: int) -> Value:
        if field == "driver":
            return self._driver
        if field in self._domains:
            return self._domains[field]
        raise CelError(at, f"a device has no {field}")

    def _entry(self, operand: Node, key: str, at: int) -> Value:
        entries = self.value(operand)
        if not isinstance(entries, Mapping):
            raise CelError(at, "this has no fields")
        if entries is self._domains["attributes"] or entries is self._domains["capacity"]:
            return entries.get(key, {})
        if key not in entries:
            raise CelError(at, f"no such key: {key}")
        return entries[key]

    def _truth(self, node: Node) -> bool:
        value = self.value(node)
        if not isinstance(value, bool):
            raise CelError(node.at, "true or false is expected")
        return value

    def _text(self, node: Node) -> str:
        value = self.value(node)
        if not isinstance(value, str):
            raise CelError(node.at, "text is expected")
        return value

    def _connective(self, node: Chain) -> bool:
        """The side that decides does so even if the other fails."""
        deciding = node.operator == "||"
        failure: CelError | None = None
        for side in node.operands:
            try:
                if self._truth(side) is deciding:
                    return deciding
            except CelError as error:
                failure = failure or error
        if failure:
            raise failure
        return not deciding

    def _relation(self, node: Binary) -> bool:
        left, right = self.value(node.left), self.value(node.right)
        match node.operator:
            case "==":
                return equal(left, right)
            case "!=":
                return not equal(left, right)
            case "in":
                return self._is_contained(left, right, node.at)
        alike = type(left) is type(right) and isinstance(left, str | int)
        if not alike or isinstance(left, bool):
            raise CelError(node.at, f"{node.operator} does not compare these")
        return COMPARED[node.operator](left, right)

    def _is_contained(self, value: Value, holder: Value, at: int) -> bool:
        if isinstance(holder, Mapping):
            return isinstance(value, str) and value in holder
        if isinstance(holder, list):
            return any(equal(value, each) for each in holder)
        raise CelError(at, "`in` looks into lists and maps")

    def _call(self, node: CallExpression) -> Value:
        if node.target is not None:
            return self._method(node, self.value(node.target))
        if node.function == "has":
            return self._has(node)
        if node.function not in MADE or len(node.arguments) != 1:
            raise CelError(node.at, f"there is no {node.function} of {len(node.arguments)} values")
        made = MADE[node.function](self._text(node.arguments[0]))
        if made is None:
            raise CelError(node.at, f"this is no {node.function}")
        return made

    def _has(self, node: CallExpression) -> bool:
        match node.arguments:
            case (Select(operand, field),):
                entries = self.value(operand)
                return isinstance(entries, Mapping) and field in entries
        raise CelError(node.at, "has() takes a field such as a.b")

    def _method(self, node: CallExpression, target: Value) -> Value:
        arguments = [self.value(each) for each in node.arguments]
        one = arguments[0] if len(arguments) == 1 else None
        if type(one) is not type(target) or not isinstance(target, Quantity | Semver):
            raise CelError(node.at, f"there is no {node.function} for these")
        assert isinstance(one, Quantity | Semver)
        more, less = target > one, target < one  # type: ignore[operator]
        match node.function:
            case "compareTo":
                return int(more) - int(less)
            case "isGreaterThan":
                return bool(more)
            case "isLessThan":
                return bool(less)
        raise CelError(node.at, f"there is no {node.function} for these")


COMPARED: Mapping[str, Callable[[Value, Value], bool]] = {
    "<": lambda left, right: left < right,  # type: ignore[operator]
    "<=": lambda left, right: left <= right,  # type: ignore[operator]
    ">": lambda left, right: left > right,  # type: ignore[operator]
    ">=": lambda left, right: left >= right,  # type: ignore[operator]
}


def equal(left: Value, right: Value) -> bool:
    """What differs in type is not equal; Python takes True for 1."""
    return type(left) is type(right) and left == right


def _quantity(text: str) -> Quantity | None:
    try:
        return Quantity.of(text)
    except quantity.BadQuantity:
        return None


MADE: Mapping[str, Callable[[str], Value | None]] = {
    "quantity": _quantity,
    "isQuantity": lambda text: _quantity(text) is not None,
    "semver": Semver.of,
    "isSemver": lambda text: Semver.of(text) is not None,
}
