"""`dovetail load`: sends a fleet file to the server, in pieces, with a progress bar."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Protocol

import click

from dovetail.cli.support.client import NDJSON, ServerClient, json_of, talks_to_server
from dovetail.cli.support.output import count_text, output_option, show

PATH = "/dovetail/v1/fleet"
PIECE = 64 * 2**10
LOAD_SECONDS = 3600.0
"""Writing a million providers takes its time."""


class Progress(Protocol):
    def update(self, n_steps: int) -> None: ...


@click.command()
@click.argument("file", type=click.File("rb"))
@output_option
@talks_to_server(LOAD_SECONDS)
def load(server: ServerClient, file: IO[bytes], form: str) -> None:
    """Add hosts and consumers of a fleet file.

    FILE has one JSON object a line (see docs/placement.md); - is standard input. All of it is
    added, or nothing if anything is wrong with it.
    """
    length = size(file)
    with progress(length) as bar:
        body = pieces(file, bar)
        answer = json_of(b"".join(server.stream("POST", PATH, body, NDJSON, length)))
    added = [
        count_text(answer["providers"], "provider"),
        count_text(answer["consumers"], "consumer"),
    ]
    show(form, answer, lambda: [f"Added {added[0]} and {added[1]}."])


def size(file: IO[bytes]) -> int | None:
    """None where that is not known before the end, as of a pipe."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def pieces(file: IO[bytes], bar: Progress) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        bar.update(len(piece))
        yield piece


class Silent:
    """For those who are no terminal."""

    def update(self, n_steps: int) -> None:
        """Say nothing."""


@contextmanager
def progress(length: int | None) -> Iterator[Progress]:
    if not sys.stderr.isatty() or length is None:
        yield Silent()
        return
    with click.progressbar(length=length, label="Sending", file=sys.stderr) as bar:
        yield bar
