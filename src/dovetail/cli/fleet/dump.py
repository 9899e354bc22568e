"""`dovetail dump`: writes the ledger as a fleet file (JSON lines)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import click

from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.output import printing


@click.command()
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option(
    "-f",
    "--file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Where to write it, by default to standard output; replaced only when it is complete.",
)
@talks_to_server(600.0)
def dump(server: ServerClient, hosts: tuple[str, ...], file: Path | None) -> None:
    """Write the ledger as a fleet file.

    One line for each host and each consumer, as of one moment; `dovetail load` takes it back. With
    HOST, a name or a UUID, only those hosts and what is held there.
    """
    query = "&".join(f"tree={segment(host)}" for host in hosts)
    with target(file) as out:
        for piece in server.stream("GET", f"/dovetail/v1/fleet?{query}"):
            out.write(piece)


@contextmanager
def target(file: Path | None) -> Iterator[BinaryIO]:
    if file is None:
        with printing():
            yield sys.stdout.buffer
            sys.stdout.flush()
        return
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") as out:
            yield out
        part.replace(file)
    except OSError as error:
        raise LocalFailure(f"--file {file}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()
