"""One remedy: what changes, in words and for programs, and the case as it would be then."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dovetail.core.explanation import ConstraintChange, Reason
from dovetail.machines.explaining.cases import GuestCase

Supposition = Callable[[GuestCase], GuestCase]


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    reason: Reason
    old: str
    new: str | None
    """Nothing: it is dropped."""
    words: str
    """What follows an `if`."""
    query: str = ""
    """The label or field that changes; nothing where somebody else, or time, has to do it."""
    suppose: Supposition

    @property
    def change(self) -> ConstraintChange:
        return ConstraintChange(reason=self.reason, group=None, old=self.old, new=self.new)
