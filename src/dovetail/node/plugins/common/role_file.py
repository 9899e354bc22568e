"""Parser of the role file (TOML): what is wrong is told with line and place, and what would do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from dovetail.core import quantity
from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import BadCpuList, CpuSet
from dovetail.node.plugins.common.role_checks import RoleFault, faults, misfits
from dovetail.node.plugins.common.roles import (
    AdjusterRule,
    CpuPool,
    NicFacts,
    PodRole,
    ReservedResources,
    RoleBook,
    RoleTable,
)
from dovetail.node.topology import Machine

T = TypeVar("T", bound=RoleTable)


class BadRoles(DovetailError):
    """A file of roles that cannot be used, with the place in it."""


def read(path: Path, machine: Machine) -> RoleBook:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRoles(f"{path}: {error}") from None
    return parse(text, machine, str(path))


def parse(text: str, machine: Machine, name: str = "roles") -> RoleBook:
    try:
        book = _book(tomllib.loads(text))
        for fault in (*faults(book), *misfits(book, machine)):
            raise fault
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRoles(f"{name}: {error}") from None
    except RoleFault as fault:
        at = line_of(text, fault.where)
        place = f"{name}, line {at}" if at else name
        raise BadRoles(f"{place}: {'.'.join(fault.where)}: {fault.what}") from None
    return book


TABLES = ("pools", "roles", "reserved", "nics", "adjuster")


def _book(found: Mapping[str, Any]) -> RoleBook:
    for key in found:
        if key not in TABLES:
            raise RoleFault((key,), f"there is no such table; there are {', '.join(TABLES)}")
    reserved = dict(_table(found, "reserved"))
    if "memory" in reserved:
        reserved["memory"] = _amounts(reserved["memory"])
    return RoleBook(
        pools=_named(found, "pools", CpuPool),
        roles={
            name: msgspec.structs.replace(role, name=name)
            for name, role in _named(found, "roles", PodRole).items()
        },
        reserved=_converted(reserved, ReservedResources, ("reserved",)),
        nics=_named(found, "nics", NicFacts),
        adjuster=_converted(found["adjuster"], AdjusterRule, ("adjuster",))
        if "adjuster" in found
        else None,
    )


def _table(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = found.get(key, {})
    if not isinstance(table, dict):
        raise RoleFault((key,), f"is {table!r}, not a table [{key}]")
    return table


def _named(found: Mapping[str, Any], key: str, kind: type[T]) -> dict[str, T]:
    return {
        name: _converted(value, kind, (key, name)) for name, value in _table(found, key).items()
    }


def _converted(value: Any, kind: type[T], where: tuple[str, ...]) -> T:
    if isinstance(value, dict) and "name" in value:
        raise RoleFault((*where, "name"), "the name is that of the table: leave this out")
    try:
        return msgspec.convert(value, kind, dec_hook=_cpus, str_keys=True)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        inner = re.findall(r"\.(\w+)", path)
        if unknown := re.search("unknown field `(.+)`", what):
            words = f"there is no such key{_known(kind, inner)}"
            raise RoleFault((*where, *inner, unknown[1]), words) from None
        known = _known(kind, inner) if "enum" in what else ""
        raise RoleFault((*where, *inner), f"{what}{known}") from None


def _known(kind: Any, path: list[str]) -> str:
    """What may stand there: the keys of a table, or one of some words."""
    for name in path:
        tables = (kind, *get_args(kind))
        kind = get_type_hints(next(each for each in tables if hasattr(each, "__struct_fields__")))[
            name
        ]
    words: list[str] = []
    for each in (kind, *get_args(kind)):
        if hasattr(each, "__struct_fields__"):
            words += [field for field in each.__struct_fields__ if field != "name"]
        elif isinstance(each, type) and issubclass(each, StrEnum):
            words += each
        elif isinstance(each, str):
            words.append(each)
        else:
            words += [inner for inner in get_args(each) if isinstance(inner, str)]
    return f"; there are {', '.join(words)}"


def _cpus(_: type, value: Any) -> CpuSet:
    """Lists of CPUs are text, as "0-3,8"."""
    if not isinstance(value, str):
        raise ValueError(f'{value!r} is no list of CPUs such as "0-3,8"')
    try:
        return CpuSet.parse(value)
    except BadCpuList as error:
        raise ValueError(str(error)) from None


def _amounts(value: Any) -> Any:
    """Bytes by node, of text such as 500Mi."""
    if not isinstance(value, dict):
        return value
    found = {}
    for node, amount in value.items():
        try:
            found[node] = _bytes(amount)
        except quantity.BadQuantity as error:
            raise RoleFault(("reserved", "memory", node), str(error)) from None
    return found


def _bytes(value: Any) -> int:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise quantity.BadQuantity(f"{value!r} is no amount of bytes such as 500Mi or 2G")
    amount = quantity.parse(str(value))
    if amount < 0 or amount.denominator != 1:
        raise quantity.BadQuantity(f"{value!r} is no whole number of bytes")
    return int(amount)


def line_of(text: str, where: tuple[str, ...]) -> int | None:
    """The line of the longest part of the path that is written out: a key, or a table's head."""
    table: tuple[str, ...] = ()
    longest, found = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[+([^\]]+)\]", line):
            path = table = _keys(head[1])
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            path = (*table, *_keys(key[1]))
        else:
            continue
        same = min(len(path), len(where))
        if path[:same] == where[:same] and same > longest:
            longest, found = same, number
    return found


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(
        each.strip().strip("\"'") for each in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted)
    )
