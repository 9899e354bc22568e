"""The configuration in force: flags over environment over a file over the defaults.

Every value remembers where it came from. What is unknown or wrong is refused with the place it
stands in and what would be right there.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec
from msgspec import inspect

from dovetail.cli.run.config import Config, Setting, settings
from dovetail.core.errors import DovetailError

DEFAULT = "default"
FILE_VARIABLE = "DOVETAIL_CONFIG"


class BadConfig(DovetailError):
    """A configuration that cannot be used."""


class Given(NamedTuple):
    """A value and where it was found."""

    setting: Setting
    value: Any
    origin: str


class Loaded(NamedTuple):
    config: Config
    origins: Mapping[str, str]
    """Where each value came from, by key."""


def load(file: str | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Loaded:
    """The configuration that these layers make; later ones win."""
    given = layers(settings(), file or environment.get(FILE_VARIABLE), environment, flags)
    origins = {setting.key: DEFAULT for setting in settings()}
    origins |= {each.setting.key: each.origin for each in given}
    return Loaded(msgspec.convert(tree_of(given), Config), origins)


def layers(
    known: Collection[Setting],
    file: str | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Any],
) -> tuple[Given, ...]:
    """All that is given of these settings; later ones win."""
    return (
        *(of_file(Path(file), known) if file else ()),
        *of_environment(environment, known),
        *of_flags(flags, known),
    )


def tree_of(given: Iterable[Given]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for setting, value, _ in given:
        place = tree
        for section in setting.path[:-1]:
            place = place.setdefault(section, {})
        place[setting.path[-1]] = value
    return tree


def of_file(path: Path, known: Collection[Setting]) -> Iterator[Given]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfig(f"configuration file {path}: {error}") from error
    for keys, value in leaves(document, path, known):
        setting = next((one for one in known if one.path == keys), None)
        if setting is None:
            refuse_unknown(path, ".".join(keys), known)
        yield Given(setting, checked(setting, value, f"{path}: {setting.key}"), f"file {path}")


def leaves(
    table: Mapping[str, Any],
    path: Path,
    known: Collection[Setting],
    under: tuple[str, ...] = (),
) -> Iterator[tuple[tuple[str, ...], Any]]:
    sections = {setting.path[:-1] for setting in known}
    for name, value in table.items():
        keys = (*under, name)
        is_section = keys in sections
        if isinstance(value, dict) and not is_section:
            refuse_unknown(path, ".".join(keys), known)
        if is_section and not isinstance(value, dict):
            raise BadConfig(f"{path}: {'.'.join(keys)} is a section: write [{'.'.join(keys)}]")
        yield from leaves(value, path, known, keys) if is_section else [(keys, value)]


def of_environment(environment: Mapping[str, str], known: Collection[Setting]) -> Iterator[Given]:
    for setting in known:
        text = environment.get(setting.variable)
        if text:
            origin = f"environment {setting.variable}"
            yield Given(setting, checked(setting, written(setting, text), origin), origin)


def of_flags(flags: Mapping[str, Any], known: Collection[Setting]) -> Iterator[Given]:
    for setting in known:
        value = flags.get(setting.argument)
        if value is not None:
            origin = f"flag {setting.flag}"
            yield Given(setting, checked(setting, written(setting, value), setting.flag), origin)


def written(setting: Setting, value: Any) -> Any:
    """A value given as text: lists have commas, everything else is converted by its type."""
    if not isinstance(value, str):
        return value
    if is_list(setting.kind):
        return [part.strip() for part in value.split(",")]
    try:
        return msgspec.convert(value, setting.type, strict=False)
    except msgspec.ValidationError:
        return value


def is_list(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.FrozenSetType)


def checked(setting: Setting, value: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, setting.type)
    except msgspec.ValidationError as error:
        shown = setting.shown(value)
        raise BadConfig(f"{where}: {shown!r} is not {expected(setting.kind)}") from error


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


def refuse_unknown(path: Path, key: str, known: Collection[Setting]) -> NoReturn:
    names = [setting.key for setting in known]
    near = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
    raise BadConfig(f"{path}: unknown key {key}; {hint}")
