"""Settings as options of commands: every flag follows from the declared configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec import inspect

from dovetail.cli.run.config import Setting, settings
from dovetail.cli.run.config_layers import FILE_VARIABLE, Loaded, load
from dovetail.core.errors import DovetailError

Command = TypeVar("Command", bound=Callable[..., Any])

CONFIG_FILE = click.option(
    "--config", "config_file", metavar="FILE", help=f"Configuration (TOML). [env: {FILE_VARIABLE}]"
)


def configured(*keys: str) -> Callable[[Command], Command]:
    """Adds `--config` and the flags of these settings (of all, if none is named)."""
    chosen = [setting for setting in settings() if not keys or setting.key in keys]

    def decorate(command: Command) -> Command:
        for setting in reversed(chosen):
            command = option(setting)(command)
        return CONFIG_FILE(command)

    return decorate


def option(setting: Setting) -> Callable[[Command], Command]:
    if setting.is_switch:
        names = f"{setting.flag}/--no-{setting.flag[2:]}", setting.argument
        return click.option(*names, default=None, help=help_text(setting))
    # Taken as text: the layers convert it, and refuse it in the same words wherever it stands.
    names, metavar = (setting.flag, setting.argument), placeholder(setting.kind)
    return click.option(*names, default=None, metavar=metavar, help=help_text(setting))


def placeholder(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return "NUMBER"
        case inspect.LiteralType(values=values):
            return "|".join(map(str, values))
        case inspect.UnionType(types=types):
            return placeholder(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return f"{placeholder(item)},..."
        case _:
            return "TEXT"


def help_text(setting: Setting) -> str:
    given = setting.default
    shown = ",".join(map(str, given)) if isinstance(given, tuple) else given
    default = "" if shown in {None, False, ""} else f"default: {shown}; "
    return f"{setting.description.replace('`', '')} [{default}env: {setting.variable}]"


def resolve(config_file: str | None, flags: dict[str, Any]) -> Loaded:
    """The configuration in force for a command with these flags."""
    try:
        return load(config_file, os.environ, flags)
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
