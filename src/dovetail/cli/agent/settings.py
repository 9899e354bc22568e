"""The agent's settings as options and as a file. Each is named where it is declared.

Options that the specification or the kubelet call otherwise have that name, too.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import inspect

from dovetail.cli.run.config import Setting, declared
from dovetail.cli.run.config_layers import BadConfig, checked, written
from dovetail.cli.run.options import placeholder
from dovetail.node.agent.config import Config

FILE = "config_file"

ALIASES = {
    "reconcile_period": "--qos-resource-manager-reconcile-period",
    "plugins.names": "--qos-resource-manager-resource-names-map",
    "topology.policy": "--topology-manager-policy",
    "topology.scope": "--topology-manager-scope",
}

FILE_ONLY = {"roles"}
"""Tables that do not fit into an option."""


@cache
def settings() -> Mapping[str, Setting]:
    """By key."""
    return {each.key: each for each in declared(Config)}


@cache
def options() -> tuple[click.Option, ...]:
    file = click.Option(
        ["--config", FILE], metavar="FILE", help="Configuration (TOML); options win over it."
    )
    return file, *(option(each) for each in settings().values() if each.key not in FILE_ONLY)


def option(setting: Setting) -> click.Option:
    shown = setting.description.replace("`", "")
    if setting.is_switch:
        names = [f"{setting.flag}/--no-{setting.flag[2:]}", setting.argument]
        return click.Option(names, default=None, help=shown)
    names = [setting.flag, *filter(None, [ALIASES.get(setting.key)]), setting.argument]
    default = setting.default
    if isinstance(default, tuple):
        default = ",".join(default)
    if isinstance(default, str) and default:
        shown += f" [default: {default}]"
    metavar = "KEY=VALUE,..." if is_map(setting) else placeholder(setting.kind)
    return click.Option(names, default=None, metavar=metavar, help=shown)


def is_map(setting: Setting) -> bool:
    return isinstance(setting.kind, inspect.DictType)


def load(flags: Mapping[str, Any]) -> Config:
    """Options over the file over the defaults; raises BadConfig."""
    tree: dict[str, Any] = {}
    file = flags.get(FILE)
    for setting, value in (*(of_file(Path(file)) if file else ()), *of_options(flags)):
        place = tree
        for section in setting.path[:-1]:
            place = place.setdefault(section, {})
        place[setting.path[-1]] = value
    return msgspec.convert(tree, Config)


def of_options(flags: Mapping[str, Any]) -> Iterator[tuple[Setting, Any]]:
    for setting in settings().values():
        value = flags.get(setting.argument)
        if value is not None:
            if is_map(setting):
                value = pairs(setting, value)
            yield setting, good(setting, written(setting, value), setting.flag)


def pairs(setting: Setting, text: str) -> dict[str, Any]:
    """Of `a=b,c=d`."""
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not (equals and key.strip() and value.strip()):
            raise BadConfig(f"{setting.flag}: {part!r} is not of the form KEY=VALUE")
        if key.strip() in found:
            raise BadConfig(f"{setting.flag}: {key.strip()} is given twice")
        found[key.strip()] = {"true": True, "false": False}.get(value.strip(), value.strip())
    return found


def of_file(path: Path) -> Iterator[tuple[Setting, Any]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfig(f"configuration file {path}: {error}") from error
    sections = {each.path[:-1] for each in settings().values()} - {()}
    for keys, value in leaves(document, path, sections):
        setting = settings()[".".join(keys)]
        yield setting, good(setting, value, f"{path}: {setting.key}")


def leaves(
    table: Mapping[str, Any],
    path: Path,
    sections: set[tuple[str, ...]],
    under: tuple[str, ...] = (),
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        keys = (*under, name)
        key = ".".join(keys)
        if keys in sections:
            if not isinstance(value, dict):
                raise BadConfig(f"{path}: {key} is a section: write [{key}]")
            yield from leaves(value, path, sections, keys)
        elif key in settings():
            yield keys, value
        else:
            known = list(settings())
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise BadConfig(f"{path}: unknown key {key}; {hint}")


def good(setting: Setting, value: Any, where: str) -> Any:
    if not is_map(setting):
        return checked(setting, value, where)
    try:
        return msgspec.to_builtins(msgspec.convert(value, setting.type))
    except msgspec.ValidationError as error:
        # Their own words name the place inside the table.
        raise BadConfig(f"{where}: {error}") from error
