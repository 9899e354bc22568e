"""Conditions of a status, for controllers that write one: what holds, since when, and for which
generation it was found."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from dovetail.podfit.objects import Condition


def timestamp(at: datetime | None = None) -> str:
    """A time as the API writes it: UTC, to the second."""
    return (at or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: bool | None,
    reason: str,
    message: str,
    *,
    generation: int,
    now: str,
) -> tuple[Condition, ...]:
    """`conditions` with this one as found now; None: it cannot be told.

    The time is that of the last change of status: finding the same again does not change it, and
    neither do new words for it.
    """
    word = {True: "True", False: "False", None: "Unknown"}[status]
    result = list(conditions)
    at = next((n for n, each in enumerate(result) if each.type == type_), len(result))
    old = result[at] if at < len(result) else None
    since = old.last_transition_time if old is not None and old.status == word else None
    result[at : at + 1] = [
        Condition(
            type=type_,
            status=word,
            reason=reason,
            message=message,
            observed_generation=generation,
            last_transition_time=since or now,
        )
    ]
    return tuple(result)


def as_documents(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """As they go out."""
    return [msgspec.to_builtins(each) for each in conditions]
