"""Manual pages, one for each command, from the same words as `--help`.

`python -m dovetail.cli.manual FOLDER` writes them; `make man` does that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from dovetail import __version__
from dovetail.cli.main import main
from dovetail.cli.support import exits


def pages(
    command: click.Command, name: str, above: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """File name and text of the page of a command, and of those below it."""
    with click.Context(command, info_name=name, parent=above) as ctx:
        yield f"{title(ctx)}.1", "\n".join(page(ctx)) + "\n"
        for child, found in commands(ctx):
            yield from pages(found, child, ctx)


def title(ctx: click.Context) -> str:
    return ctx.command_path.replace(" ", "-")


def commands(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            found = ctx.command.get_command(ctx, name)
            if found is not None and not found.hidden:
                yield name, found


def page(ctx: click.Context) -> Iterator[str]:
    command = ctx.command
    first, *more = paragraphs(command)
    yield f'.TH "{title(ctx).upper()}" "1" "" "dovetail {__version__}" "Dovetail"'
    yield from (".SH NAME", f"{escaped(title(ctx))} \\- {escaped(' '.join(first.split()))}")
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield from (".SH SYNOPSIS", f".B {escaped(ctx.command_path)}", escaped(usage))
    if more:
        yield ".SH DESCRIPTION"
        for paragraph in more:
            yield from (".PP", *set_text(paragraph))
    yield ".SH OPTIONS"
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and record[1]:
            yield from (".TP", f"\\fB{escaped(record[0])}\\fP", escaped(record[1]))
    yield from listed(ctx)
    yield ".SH EXIT STATUS"
    for code, meaning in exits.TABLE:
        yield from (".TP", f".B {code}", escaped(meaning))


def listed(ctx: click.Context) -> Iterator[str]:
    """The commands of a group; of any other, the one it belongs to."""
    below = list(commands(ctx))
    if below:
        yield ".SH COMMANDS"
    for name, found in below:
        summary = " ".join(paragraphs(found)[0].split())
        yield from (".TP", f".BR {escaped(title(ctx))}\\-{escaped(name)} (1)", escaped(summary))
    if ctx.parent is not None:
        yield from (".SH SEE ALSO", f".BR {escaped(title(ctx.parent))} (1)")


def paragraphs(command: click.Command) -> list[str]:
    return cleandoc(command.help or "").split("\n\n")


def set_text(paragraph: str) -> list[str]:
    """Words that flow, or lines that stay as they are."""
    if paragraph.startswith("\b\n"):
        return [".nf", *map(escaped, paragraph.splitlines()[1:]), ".fi"]
    return [escaped(" ".join(paragraph.split()))]


def escaped(text: str) -> str:
    """Text in which the formatter finds no requests of its own."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def write(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    found = dict(pages(main, "dovetail"))
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(found)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print(f"{write(target)} manual pages in {target}")
