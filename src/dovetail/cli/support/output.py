"""Prints answers: as tables for people, as JSON or YAML for programs.

Colour goes to terminals only, never says anything by itself, and NO_COLOR turns it off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from dovetail.cli.support.exits import LocalFailure

FORMATS = ("table", "json", "yaml")
Cell = str | int | None

output_option = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="For people, or for programs.",
)


def show(form: str, document: Any, lines: Callable[[], Iterable[str]]) -> None:
    """Print the document, or the lines that show it to a person."""
    shown = text(form, document, lines)
    with printing():
        for line in shown:
            click.echo(line)


def text(form: str, document: Any, lines: Callable[[], Iterable[str]]) -> Iterable[str]:
    if form == "json":
        import orjson

        return [orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()]
    if form == "yaml":
        from dovetail.cli.support import yaml_text

        return [yaml_text.dumps(document)]
    return lines()


@contextmanager
def printing() -> Iterator[None]:
    """What goes wrong while writing to standard output is told in a line."""
    try:
        yield
    except BrokenPipeError:
        # Whoever read has seen enough; click ends the command without a word.
        raise
    except OSError as error:
        raise LocalFailure(f"standard output: {error.strerror}") from error


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Aligned columns; those that hold only numbers to the right."""
    cells = [[*map(cell_text, row)] for row in rows]
    right = [
        bool(cells) and all(row[at].replace(",", "").isdecimal() or not row[at] for row in cells)
        for at in range(len(headers))
    ]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    head = paint(aligned_row(headers, widths, right), bold=True)
    return [head, *(aligned_row(row, widths, right) for row in cells)]


def aligned_row(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        text.rjust(width) if rightwards else text.ljust(width)
        for text, width, rightwards in zip(row, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def cell_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else printable(cell)


def printable(text: str) -> str:
    """Names come from others: what could steer a terminal is written out instead."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def paint(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Text for a terminal; `click.echo` takes the colour out for everything else."""
    if os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=colour, bold=bold or None)


def amounts(resources: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{amount}" for name, amount in resources.items())


def count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
