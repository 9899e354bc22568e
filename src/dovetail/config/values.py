"""Checks of single values: a setting's text becomes a value, and a wrong one is refused in words.

`layers` calls these for every value that a file, a variable or a flag gives.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from dovetail.config.declaration import Setting
from dovetail.core.errors import DovetailError


class BadSettings(DovetailError):
    """Settings that are wrong by themselves, together, or on this machine."""


def value_of_text(setting: Setting, given: Any, where: str) -> Any:
    """What a flag or a variable says: text by the setting's type, lists and maps with commas."""
    if not isinstance(given, str):
        return given
    if setting.is_map:
        return pairs(given, where)
    if setting.is_list:
        return [part.strip() for part in given.split(",")]
    try:
        return msgspec.convert(given, setting.type, strict=False)
    except msgspec.ValidationError:
        return given


def pairs(text: str, where: str) -> dict[str, Any]:
    """Of `a=b,c=d`. Raises BadSettings."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not (equals and key.strip() and value.strip()):
            raise BadSettings(f"{where}: {part!r} is not of the form KEY=VALUE")
        if key.strip() in found:
            raise BadSettings(f"{where}: {key.strip()} is given twice")
        found[key.strip()] = {"true": True, "false": False}.get(value.strip(), value.strip())
    return found


def checked(setting: Setting, value: Any, where: str) -> Any:
    """The value, if it is one that the setting can have. Raises BadSettings."""
    try:
        good = msgspec.convert(value, setting.type)
    except msgspec.ValidationError as error:
        if setting.is_map:
            # Its own words name the place inside the map.
            raise BadSettings(f"{where}: {error}") from error
        shown = setting.shown(value)
        raise BadSettings(f"{where}: {shown!r} is not {expected(setting.kind)}") from error
    return msgspec.to_builtins(good) if setting.is_map else good


def expected(kind: inspect.Type) -> str:
    """What would be right, in words."""
    match kind:
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(str(value) for value in values)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            return f"a {'whole ' if isinstance(kind, inspect.IntType) else ''}number{bounds(kind)}"
        case inspect.UnionType(types=types):
            return expected(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return f"a list, each {expected(item)}"
        case inspect.Metadata(type=inner):
            return expected(inner)
        case inspect.StrType(pattern=pattern) if pattern:
            return f"text of the form {pattern}"
        case _:
            return "text"


def bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    words = [
        f"{words} {bound}"
        for words, bound in (
            ("at least", kind.ge),
            ("more than", kind.gt),
            ("at most", kind.le),
            ("less than", kind.lt),
        )
        if bound is not None
    ]
    return f", {' and '.join(words)}" if words else ""
