"""Device classes: named selections of devices, read from and written as documents.

REST, the CLI, the ledger's definitions and the class controller read them here. On the wire and in
Kubernetes the kind is called ResourceClass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from dovetail.core.errors import Malformed
from dovetail.core.selectors.selector import Expression, Operator, Selector, problems_of

LONGEST_NAME = 52
"""An annotation's name has 63 characters: resClass_<class>_<device> leaves 53 for both names."""

LONGEST_KEY = 63
MOST_MEMBERS = 1024
"""Units of one class in a unit of another: more devices than a node has."""

DNS_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
DNS_SUBDOMAIN = re.compile(rf"{DNS_LABEL}(?:\.{DNS_LABEL})*", re.ASCII)

SPEC = ("resourceSelector", "members", "same", "singleDevice")
BRANCH = ("matchExpressions",)
EXPRESSION = ("key", "operator", "values")
MEMBER = ("class", "count")
OPERATORS = {str(each): each for each in Operator}

T = TypeVar("T")


class Member(msgspec.Struct, frozen=True):
    """So many units of the class `name` are part of one unit of a nested class."""

    name: str
    count: int = 1


class DeviceClass(msgspec.Struct, frozen=True):
    """Selects devices, or is made of other classes; never both."""

    name: str
    selector: Selector = ()
    members: tuple[Member, ...] = ()
    same: tuple[str, ...] = ()
    """The devices that make one unit of a nested class have equal values for these keys."""
    single_device: bool = False
    """All units of one request come from one device."""


class Problem(msgspec.Struct, frozen=True):
    """What is wrong at the field `path`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BadClass(Malformed):
    """A document that is no device class."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"resource class {name!r}: " + "; ".join(map(str, self.problems)))


def read(name: str, spec: Mapping[str, object]) -> DeviceClass:
    """Raises BadClass with everything that is wrong, not just the first."""
    reader = _SpecReader()
    reader.name("metadata.name", name)
    found = reader.spec(name, spec)
    if reader.problems:
        raise BadClass(name, reader.problems)
    return found


def write(cls: DeviceClass) -> dict[str, Any]:
    """The `spec` that reads as this class."""
    spec: dict[str, Any] = {}
    if cls.selector or not cls.members:
        spec["resourceSelector"] = [
            {"matchExpressions": [_expression_document(each) for each in branch]}
            for branch in cls.selector
        ]
    if cls.members:
        spec["members"] = [{"class": each.name, "count": each.count} for each in cls.members]
    if cls.same:
        spec["same"] = list(cls.same)
    if cls.single_device:
        spec["singleDevice"] = True
    return spec


def _expression_document(expression: Expression) -> dict[str, Any]:
    written: dict[str, Any] = {"key": expression.key, "operator": str(expression.operator)}
    if expression.values:
        written["values"] = list(expression.values)
    return written


class _SpecReader:
    """Recursive descent through a document; notes all that is wrong, and where."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def wrong(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def spec(self, name: str, given: object) -> DeviceClass:
        fields = self.mapping("spec", given, SPEC)
        selector = self.each("spec.resourceSelector", fields.get("resourceSelector"), self.branch)
        members = self.each("spec.members", fields.get("members"), self.member)
        same = self.each("spec.same", fields.get("same"), self.key)
        single = self.flag("spec.singleDevice", fields.get("singleDevice"))
        if selector and members:
            self.wrong("spec.members", "a class selects devices or has members, not both")
        if same and not members:
            self.wrong("spec.same", "says something about members, and there are none")
        if single and members:
            self.wrong("spec.singleDevice", "a unit with members is made of several devices")
        self.distinct("spec.same[{}]", same)
        self.distinct("spec.members[{}].class", [each.name for each in members])
        for index, each in enumerate(members):
            if each.name == name:
                self.wrong(f"spec.members[{index}].class", "a class cannot be part of itself")
        return DeviceClass(name, selector, members, same, single)

    def branch(self, path: str, given: object) -> tuple[Expression, ...]:
        fields = self.mapping(path, given, BRANCH)
        return self.each(
            f"{path}.matchExpressions", fields.get("matchExpressions"), self.expression
        )

    def expression(self, path: str, given: object) -> Expression:
        fields = self.mapping(path, given, EXPRESSION)
        if not isinstance(given, Mapping):
            return Expression("", Operator.EXISTS)
        before = len(self.problems)
        key = self.key(f"{path}.key", fields.get("key"))
        kind = self.operator(f"{path}.operator", fields.get("operator"))
        values = self.each(f"{path}.values", fields.get("values"), self.text)
        found = Expression(key, kind, values)
        if len(self.problems) == before:
            for fault in problems_of(found):
                index = "" if fault.index is None else f"[{fault.index}]"
                self.wrong(f"{path}.values{index}", fault.message)
        return found

    def member(self, path: str, given: object) -> Member:
        fields = self.mapping(path, given, MEMBER)
        if not isinstance(given, Mapping):
            return Member("")
        name = self.text(f"{path}.class", fields.get("class"))
        if isinstance(fields.get("class"), str):
            self.name(f"{path}.class", name)
        count = fields.get("count", 1)
        # True is an int to Python.
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_MEMBERS:
            self.wrong(
                f"{path}.count",
                f"{_shortened_repr(count)}: a whole number from 1 to {MOST_MEMBERS}",
            )
            return Member(name)
        return Member(name, count)

    def name(self, path: str, name: str) -> None:
        if len(name) > LONGEST_NAME:
            self.wrong(
                path,
                f"has {len(name)} characters, and at most {LONGEST_NAME} leave room for a device in"
                " the annotation resClass_<class>_<device>",
            )
        elif not DNS_SUBDOMAIN.fullmatch(name):
            self.wrong(
                path,
                f"{name!r}: lower-case letters, digits, '-' and '.' are expected, each part between"
                " dots starting and ending with a letter or digit",
            )

    def key(self, path: str, given: object) -> str:
        key = self.text(path, given)
        if isinstance(given, str) and not 1 <= len(key) <= LONGEST_KEY:
            self.wrong(path, f"has {len(key)} characters: 1 to {LONGEST_KEY} are expected")
        return key

    def operator(self, path: str, given: object) -> Operator:
        if isinstance(given, str) and given in OPERATORS:
            return OPERATORS[given]
        self.wrong(path, f"{_shortened_repr(given)}: one of {', '.join(Operator)} is expected")
        return Operator.EXISTS

    def distinct(self, path: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name in seen:
                self.wrong(path.format(index), f"{name!r} is there already")
            seen.add(name)

    def flag(self, path: str, given: object) -> bool:
        if given is None or isinstance(given, bool):
            return bool(given)
        self.wrong(path, f"{_shortened_repr(given)}: true or false is expected")
        return False

    def text(self, path: str, given: object) -> str:
        if isinstance(given, str):
            return given
        self.wrong(
            path, "is missing" if given is None else f"{_shortened_repr(given)}: text is expected"
        )
        return ""

    def each(self, path: str, given: object, one: Callable[[str, object], T]) -> tuple[T, ...]:
        if given is None:
            return ()
        if not isinstance(given, list | tuple):
            self.wrong(path, f"{_shortened_repr(given)}: a list is expected")
            return ()
        return tuple(one(f"{path}[{index}]", each) for index, each in enumerate(given))

    def mapping(self, path: str, given: object, known: tuple[str, ...]) -> Mapping[str, object]:
        if not isinstance(given, Mapping):
            self.wrong(
                path, f"{_shortened_repr(given)}: an object with {', '.join(known)} is expected"
            )
            return {}
        for field in self._unknown(given, known):
            self.wrong(f"{path}.{field}", f"no such field: there are {', '.join(known)}")
        return given

    @staticmethod
    def _unknown(given: Mapping[str, object], known: tuple[str, ...]) -> Iterator[str]:
        return (str(field) for field in given if field not in known)


def _shortened_repr(given: object) -> str:
    return repr(given) if len(repr(given)) <= LONGEST_KEY else f"a {type(given).__name__}"
