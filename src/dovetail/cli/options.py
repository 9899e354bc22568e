"""Settings as options of commands: every flag follows from the declared configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dovetail.cli.config import Setting, settings
from dovetail.cli.layers import FILE_VARIABLE, Loaded, load
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
    names = [setting.flag, setting.argument]
    if setting.is_switch:
        names[0] += f"/--no-{setting.flag[2:]}"
    return click.option(*names, default=None, type=None, help=help_text(setting))


def help_text(setting: Setting) -> str:
    default = "" if setting.default in {None, False} else f"default: {setting.default}; "
    return f"{setting.description.replace('`', '')} [{default}env: {setting.variable}]"


def resolve(config_file: str | None, flags: dict[str, Any]) -> Loaded:
    """The configuration in force for a command with these flags."""
    try:
        return load(config_file, os.environ, flags)
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
