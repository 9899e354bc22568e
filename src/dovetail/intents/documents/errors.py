"""What is wrong with a document that a user sent: wrong types, or rules that it breaks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.core.errors import Malformed


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    field: str
    """Path of the member, as `spec.resource.requests`."""
    message: str
    emco: str
    """As EMCO's answers say it, which have no paths."""


class BadDocument(Malformed):
    """A document that breaks rules of its kind."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("; ".join(f"{each.field}: {each.message}" for each in self.violations))

    @property
    def field(self) -> str:
        return self.violations[0].field


class MistypedDocument(BadDocument):
    """What was sent is no document of its kind at all: text where a number belongs, say."""


class UnmetDependency(BadDocument):
    """A document that others, which it depends on, do not go with."""


def unmet(field: str, message: str, emco: str) -> UnmetDependency:
    return UnmetDependency([Violation(field=field, message=message, emco=emco)])


def broken_rule(field: str, message: str, emco: str | None = None) -> BadDocument:
    return BadDocument([Violation(field=field, message=message, emco=emco or message)])
