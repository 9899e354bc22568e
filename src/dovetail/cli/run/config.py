"""`dovetail config` and `serve --print-config`: settings as a reference page, or in force."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import click

from dovetail.cli.run.settings import SERVER, ServerSettings
from dovetail.config.declaration import Setting
from dovetail.config.layers import Layers, LoadedSettings
from dovetail.config.values import expected

INTRODUCTION = """\
# Configuration

<!-- Made by `dovetail config reference`; edit the settings of each daemon instead. -->

Every setting of `dovetail serve` can be given as a flag, as an environment variable, or in a TOML
file named by `--config FILE` or `DOVETAIL_CONFIG`. A flag wins over the environment, that over the
file, the file over the default. Unknown keys and bad values are refused, with the place
they stand in and what would be right.

    dovetail serve --config /etc/dovetail/dovetail.toml --print-config

prints the configuration in force as such a file, with where each value came from, and starts
nothing. Passwords are masked. `dovetail db` reads its database from the same places.

Lists are written with commas in flags and variables, as arrays in the file. An empty variable is
as good as none. `dovetail scheduler` and `dovetail operator`, at the end of this page, are set the
same way.
"""


@click.group()
def config() -> None:
    """What can be configured."""


@config.command()
def reference() -> None:
    """Print the reference page of all settings (Markdown)."""
    click.echo(page(), nl=False)


def effective(loaded: LoadedSettings[ServerSettings]) -> str:
    """The configuration in force, as a file, with where each value came from."""
    return as_file(loaded.settings, lambda setting: f"  # {loaded.origins[setting.key]}")


def as_file(settings: ServerSettings, remark: Callable[[Setting], str]) -> str:
    lines: list[str] = []
    for section, members in SERVER.sections.items():
        if section:
            lines += ["", f"[{'.'.join(section)}]"]
        for setting in members:
            value = attrgetter(setting.key)(settings)
            name = setting.path[-1]
            if value is None:
                lines.append(f"# {name} is not set")
            else:
                lines.append(f"{name} = {toml(setting.shown(value))}{remark(setting)}")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The reference of all settings, as Markdown."""
    blocks = [INTRODUCTION]
    for section, members in SERVER.sections.items():
        title = f"## `[{'.'.join(section)}]`" if section else "## At the top of the file"
        blocks.append("\n".join([title, "", *rows(members)]) + "\n")
    return "\n".join(blocks) + "\n" + example() + "".join(map(daemon, other_daemons().items()))


def other_daemons() -> dict[str, Layers[Any]]:
    """Those whose settings have a table each, by their commands."""
    from dovetail.cli.run.operator import OPERATOR
    from dovetail.cli.run.scheduler import SCHEDULER

    return {"scheduler": SCHEDULER, "operator": OPERATOR}


def daemon(named: tuple[str, Layers[Any]]) -> str:
    name, layers = named
    words = (
        f"`{layers.file_variable}` names the file, if no flag does; a key with a dot stands under"
        " the section before it."
    )
    table = rows(list(layers.settings.values()), lambda setting: setting.key)
    return "\n".join(["", f"## `dovetail {name}`", "", words, "", *table]) + "\n"


def rows(
    members: list[Setting], key: Callable[[Setting], str] = lambda setting: setting.path[-1]
) -> Iterator[str]:
    yield "| key | flag | variable | default | what it is |"
    yield "|---|---|---|---|---|"
    for setting in members:
        default = "" if setting.default is None else f"`{toml(setting.default)}`"
        right = expected(setting.kind)
        takes = "" if right == "text" else f" Takes {right}.".replace("|", r"\|")
        yield (
            f"| `{key(setting)}` | `{flags(setting)}` | `{setting.variable}` | {default} "
            f"| {setting.description}{takes} |"
        )


def flags(setting: Setting) -> str:
    return setting.flag if not setting.is_switch else f"{setting.flag}/--no-{setting.flag[2:]}"


def example() -> str:
    """All defaults as a file to start from."""
    text = as_file(ServerSettings(), lambda _setting: "")
    return "## A file with all defaults\n\n" + textwrap.indent(text, "    ")


def toml(value: Any) -> str:
    if isinstance(value, list | tuple | frozenset):
        return f"[{', '.join(toml(item) for item in value)}]"
    # Strings, numbers and booleans are written in TOML as they are in JSON.
    return json.dumps(value, ensure_ascii=False)
