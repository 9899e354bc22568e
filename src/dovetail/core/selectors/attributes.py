"""Attributes of a provider: texts by key, which selectors look at, and what is allowed in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from dovetail.core.errors import Malformed

LONGEST_KEY = 255
LONGEST_VALUE = 1024
MOST_ATTRIBUTES = 256
"""Of one provider."""

Key = Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)]
Value = Annotated[str, Meta(max_length=LONGEST_VALUE)]
Attributes = Annotated[dict[Key, Value], Meta(max_length=MOST_ATTRIBUTES)]


class BadAttribute(Malformed):
    """A key or a value that no provider can have."""


def refuse_bad(attributes: Mapping[str, str], where: str) -> None:
    """Raises BadAttribute; `where` says whose they are."""
    if len(attributes) > MOST_ATTRIBUTES:
        raise BadAttribute(
            f"{where}: {len(attributes)} attributes, at most {MOST_ATTRIBUTES} are kept"
        )
    for key, value in attributes.items():
        if not 1 <= len(key) <= LONGEST_KEY or "\0" in key:
            raise BadAttribute(
                f"{where}: the key {key[:40]!r} has {len(key)} characters; "
                f"1 to {LONGEST_KEY} are expected, none of them NUL"
            )
        if len(value) > LONGEST_VALUE or "\0" in value:
            raise BadAttribute(
                f"{where}: the value of {key!r} has {len(value)} characters; "
                f"at most {LONGEST_VALUE} are expected, none of them NUL"
            )
