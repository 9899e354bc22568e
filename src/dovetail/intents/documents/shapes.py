"""Shapes of values in documents: each reads any spelling into the canonical form.

The readers of kinds are put together from them, and so is the OpenAPI description: what is read and
what is described cannot differ. A member is found whatever its spelling (`container`, `Container`,
`container-name` if that is an alias). Members that no shape knows are dropped, as EMCO drops them;
null is as if it were not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dovetail.intents.documents.errors import BadDocument, MistypedDocument, Violation

Json = dict[str, Any]

NAME_PATTERN = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
LONGEST_NAME = 128
LARGEST_INTEGER = 2**63 - 1
MOST_ITEMS = 1000
"""Of a list or a map: more clusters than a fleet has, in one intent."""


class DocumentFindings:
    """What is wrong with a document, gathered while it is read."""

    def __init__(self, *, is_emco: bool = False) -> None:
        self.is_emco = is_emco
        """Whether EMCO's own rules count, not ours."""
        self._mistyped: list[Violation] = []
        self._broken: list[Violation] = []

    def mistyped(self, field: str, expected: str, value: object) -> None:
        given = _type_name(value)
        self._mistyped.append(
            Violation(
                field=field,
                message=f"{expected} is expected, not {given}",
                emco=f"json: cannot unmarshal {given} into Go struct field .{field}",
            )
        )

    def broken(self, field: str, message: str, emco: str | None = None) -> None:
        self._broken.append(Violation(field=field, message=message, emco=emco or message))

    def raise_any(self) -> None:
        if self._mistyped:
            raise MistypedDocument(self._mistyped)
        if self._broken:
            raise BadDocument(self._broken)


class DocumentShape(Protocol):
    def read(self, value: Any, field: str, findings: DocumentFindings) -> Any:
        """The canonical form; what is wrong is added to the findings."""
        ...

    def schema(self) -> Json:
        """As JSON Schema, of what may be sent in the canonical spelling."""
        ...


class TextShape(msgspec.Struct, frozen=True, kw_only=True):
    longest: int = 253
    shortest: int = 0
    pattern: str = ""
    choices: tuple[str, ...] = ()

    def read(self, value: Any, field: str, findings: DocumentFindings) -> str:
        if not isinstance(value, str):
            findings.mistyped(field, "text", value)
            return ""
        if len(value) > self.longest:
            findings.broken(
                field,
                f"at most {self.longest} characters",
                f"String length must be less than or equal to {self.longest}",
            )
        elif len(value) < self.shortest:
            findings.broken(
                field,
                "may not be empty" if self.shortest == 1 else f"at least {self.shortest}",
                f"String length must be greater than or equal to {self.shortest}",
            )
        elif self.pattern and not re.search(self.pattern.removesuffix("$") + r"\Z", value):
            findings.broken(field, f"{value!r} is not as {self.pattern}", _no_match(self.pattern))
        elif self.choices and value not in self.choices:
            allowed = ", ".join(f'"{each}"' for each in self.choices)
            findings.broken(
                field,
                f"{value!r} is none of {', '.join(self.choices)}",
                f"{field} must be one of the following: {allowed}",
            )
        return value

    def schema(self) -> Json:
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        found: Json = {"type": "string", "maxLength": self.longest}
        if self.shortest:
            found["minLength"] = self.shortest
        return {**found, "pattern": self.pattern} if self.pattern else found


NAME = TextShape(longest=LONGEST_NAME, pattern=NAME_PATTERN)


class IntegerShape(msgspec.Struct, frozen=True, kw_only=True):
    """A whole number."""

    least: int = 0
    most: int = LARGEST_INTEGER
    emco_most: int | None = None
    """By EMCO's rules, where they differ."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            findings.mistyped(field, "a whole number", value)
            return self.least
        most = self.most if self.emco_most is None or not findings.is_emco else self.emco_most
        if value < self.least:
            findings.broken(
                field,
                f"{value}: at least {self.least}",
                f"Must be greater than or equal to {self.least}",
            )
        elif value > most:
            findings.broken(
                field, f"{value}: at most {most}", f"Must be less than or equal to {most}"
            )
        return value

    def schema(self) -> Json:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class BooleanShape(msgspec.Struct, frozen=True):
    def read(self, value: Any, field: str, findings: DocumentFindings) -> bool:
        if not isinstance(value, bool):
            findings.mistyped(field, "true or false", value)
            return False
        return value

    def schema(self) -> Json:
        return {"type": "boolean"}


class NumberShape(msgspec.Struct, frozen=True, kw_only=True):
    above: float
    most: float

    def read(self, value: Any, field: str, findings: DocumentFindings) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            findings.mistyped(field, "a number", value)
            return 0
        if not self.above < value <= self.most:
            findings.broken(field, f"{value}: above {self.above:g}, at most {self.most:g}")
        return value

    def schema(self) -> Json:
        return {"type": "number", "exclusiveMinimum": self.above, "maximum": self.most}


class ListShape(msgspec.Struct, frozen=True, kw_only=True):
    items: DocumentShape
    most: int = MOST_ITEMS
    least: int = 0

    def read(self, value: Any, field: str, findings: DocumentFindings) -> list[Any]:
        if not isinstance(value, list):
            findings.mistyped(field, "a list", value)
            return []
        if not self.least <= len(value) <= self.most:
            findings.broken(field, f"{self.least} to {self.most} items, not {len(value)}")
            return []
        return [
            self.items.read(each, f"{field}[{number}]", findings)
            for number, each in enumerate(value)
        ]

    def schema(self) -> Json:
        found: Json = {"type": "array", "items": self.items.schema(), "maxItems": self.most}
        return {**found, "minItems": self.least} if self.least else found


class MapShape(msgspec.Struct, frozen=True, kw_only=True):
    values: DocumentShape
    most: int = MOST_ITEMS
    longest_key: int = 253

    def read(self, value: Any, field: str, findings: DocumentFindings) -> Json:
        if not isinstance(value, dict):
            findings.mistyped(field, "an object", value)
            return {}
        if len(value) > self.most:
            findings.broken(field, f"at most {self.most} members, not {len(value)}")
            return {}
        if any(len(key) > self.longest_key for key in value):
            findings.broken(field, f"keys have at most {self.longest_key} characters")
        return {
            key: self.values.read(each, f"{field}.{key}", findings) for key, each in value.items()
        }

    def schema(self) -> Json:
        return {
            "type": "object",
            "additionalProperties": self.values.schema(),
            "maxProperties": self.most,
            "propertyNames": {"maxLength": self.longest_key},
        }


class AnyShape(msgspec.Struct, frozen=True):
    """Kept as it is."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> Any:  # noqa: ARG002
        return value

    def schema(self) -> Json:
        return {}


class ObjectShape(msgspec.Struct, frozen=True):
    """An object that is kept as it is."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> Json:
        if not isinstance(value, dict):
            findings.mistyped(field, "an object", value)
            return {}
        return value

    def schema(self) -> Json:
        return {"type": "object"}


class RecordMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a record."""

    name: str
    """As it is answered."""
    shape: DocumentShape
    required: bool = False
    emco_required: bool = False
    """Required by EMCO's rules, not by ours."""
    aliases: tuple[str, ...] = ()
    """Other words for it; case and dashes never matter."""
    is_secret: bool = False
    """Taken, but never answered."""
    zero_is_absent: bool = False
    """By EMCO's rules."""
    emco_blank: bool = False
    """EMCO has it as empty text where it is absent, so that a pattern is what is broken."""


Rule = Callable[[Json, str, DocumentFindings], None]
"""Looks at what was read as a whole; may change it."""
Rewrite = Callable[[Json], Json]
"""Brings another form of the same, as it was sent, into the one that is read."""


class RecordShape(msgspec.Struct, frozen=True, kw_only=True):
    members: tuple[RecordMember, ...]
    rules: tuple[Rule, ...] = ()
    rewrite: Rewrite | None = None
    is_open: bool = False
    """What is not among the members is kept as it is."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Of these sets of members one has to be there; only described, rules see to it."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> Json:
        if not isinstance(value, dict):
            findings.mistyped(field or "the document", "an object", value)
            return {}
        sent = self.rewrite(value) if self.rewrite else value
        spelled: dict[str, Any] = {}
        for key, each in sent.items():
            if each is not None:
                spelled.setdefault(plain(key), each)
        found = dict(self._unknown(sent)) if self.is_open else {}
        for member in self.members:
            self._read_member(member, spelled, found, field, findings)
        for rule in self.rules:
            rule(found, field, findings)
        return found

    def _read_member(
        self,
        member: RecordMember,
        spelled: Mapping[str, Any],
        found: Json,
        field: str,
        findings: DocumentFindings,
    ) -> None:
        path = f"{field}.{member.name}" if field else member.name
        value = next((spelled[key] for key in map(plain, words_of(member)) if key in spelled), None)
        if findings.is_emco and member.zero_is_absent and not isinstance(value, bool) and not value:
            value = None
        required = member.required or (findings.is_emco and member.emco_required)
        if value is None and required and isinstance(member.shape, RecordShape):
            # What it lacks is told of its own members, as if it were there and empty.
            value = {}
        if value is not None:
            found[member.name] = member.shape.read(value, path, findings)
        elif required:
            told = f"{member.name} is required"
            if member.emco_blank and isinstance(member.shape, TextShape) and member.shape.pattern:
                told = _no_match(member.shape.pattern)
            findings.broken(path, "is required", told)

    def _unknown(self, sent: Json) -> Json:
        known = {plain(word) for member in self.members for word in words_of(member)}
        return {key: each for key, each in sent.items() if plain(key) not in known}

    def schema(self) -> Json:
        found: Json = {
            "type": "object",
            "properties": {each.name: each.shape.schema() for each in self.members},
        }
        required = [each.name for each in self.members if each.required]
        if required:
            found["required"] = required
        if self.alternatives:
            found["oneOf"] = [{"required": list(names)} for names in self.alternatives]
        return found


def words_of(member: RecordMember) -> Sequence[str]:
    return (member.name, *member.aliases)


def plain(key: str) -> str:
    """Without what spellings differ in."""
    return key.replace("-", "").replace("_", "").lower()


def _no_match(pattern: str) -> str:
    return f"Does not match pattern '{pattern}'"


def _type_name(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    names: dict[type, str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
