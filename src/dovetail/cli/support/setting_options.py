"""Options of commands from declared settings: `serve`, `db`, `scheduler` and `agent` take them.

An option takes text: the layers convert it, and refuse what is wrong in the same words wherever it
stands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import click
from msgspec import inspect

from dovetail.config.declaration import Setting, SettingsStruct
from dovetail.config.layers import Layers, LoadedSettings
from dovetail.core.errors import DovetailError

FILE_ARGUMENT = "config_file"

Command = TypeVar("Command", bound=Callable[..., Any])
Struct = TypeVar("Struct", bound=SettingsStruct)

OptionArguments = tuple[list[str], dict[str, Any]]
"""What `click.option` and `click.Option` are called with: names, and the rest by name."""


def with_settings(layers: Layers[Any], *keys: str) -> Callable[[Command], Command]:
    """Adds `--config` and the flags of these settings (of all, if none is named)."""

    def decorate(command: Command) -> Command:
        for names, attributes in reversed([*option_arguments(layers, *keys)]):
            command = click.option(*names, **attributes)(command)
        return command

    return decorate


def option_arguments(
    layers: Layers[Any], *keys: str, aliases: Mapping[str, str] | None = None
) -> Iterator[OptionArguments]:
    """Of `--config` and of these settings; aliases are further flags by key."""
    help_text = f"Configuration (TOML). [env: {layers.file_variable}]"
    yield ["--config", FILE_ARGUMENT], {"metavar": "FILE", "help": help_text}
    for setting in layers.settings.values():
        if not setting.is_only_in_files and (not keys or setting.key in keys):
            yield arguments_of(setting, *filter(None, [(aliases or {}).get(setting.key)]))


def arguments_of(setting: Setting, *aliases: str) -> OptionArguments:
    attributes = {"default": None, "help": help_of(setting)}
    if setting.is_switch:
        return [f"{setting.flag}/--no-{setting.flag[2:]}", setting.argument], attributes
    names = [setting.flag, *aliases, setting.argument]
    return names, {**attributes, "metavar": metavar_of(setting.kind)}


def metavar_of(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return "NUMBER"
        case inspect.LiteralType(values=values):
            return "|".join(map(str, values))
        case inspect.UnionType(types=types):
            return metavar_of(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return f"{metavar_of(item)},..."
        case inspect.DictType():
            return "KEY=VALUE,..."
        case _:
            return "TEXT"


def help_of(setting: Setting) -> str:
    value = setting.default
    shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
    default = f"default: {shown}; " if shown else ""
    return f"{setting.description.replace('`', '')} [{default}env: {setting.variable}]"


def load_settings(layers: Layers[Struct], flags: Mapping[str, Any]) -> LoadedSettings[Struct]:
    """The settings in force for a command with these flags, `--config` among them."""
    try:
        return layers.load(flags.get(FILE_ARGUMENT), os.environ, flags)
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
