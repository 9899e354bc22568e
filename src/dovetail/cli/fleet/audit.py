"""`dovetail audit`: looks for faults in the ledger, through the server or in the database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from dovetail.cli.support import exits
from dovetail.cli.support.client import ServerClient, talks_to_server
from dovetail.cli.support.output import count_text, output_option, paint, printable, show


@click.command()
@click.option("--fix", is_flag=True, help="Heal what can be healed without losing anything.")
@click.option("--database", metavar="URL", help="Examine this database itself; no server is asked.")
@output_option
@talks_to_server(600.0)
def audit(server: ServerClient, fix: bool, database: str | None, form: str) -> None:
    """Look for faults in the ledger.

    Consumers that hold nothing, claims on what is gone, more used than there is, wrong counts,
    broken trees. Changes nothing unless told to --fix. Exits with 1 if faults are left.
    """
    if database is None:
        answer = server.call("POST" if fix else "GET", "/dovetail/v1/audit")
    else:
        answer = offline(database, fix=fix)
    show(form, answer, lambda: lines(answer))
    if answer["faults"]:
        sys.exit(exits.NO)


def offline(database: str, *, fix: bool) -> Any:
    """The same answer, from the database."""
    import msgspec

    from dovetail.core.errors import DovetailError
    from dovetail.ledger import LedgerBusy, open_ledger
    from dovetail.ledger.bulk import audit as examination
    from dovetail.ledger.database import opening

    try:
        if opening.revision(database) != opening.HEAD:
            raise click.UsageError(
                f"--database {database}: no ledger of this version (see `dovetail db check`)"
            )
        ledger = open_ledger(database)
    except LedgerBusy as error:
        raise exits.LocalFailure(str(error)) from error
    except DovetailError as error:
        raise click.UsageError(f"--database {database}: {error}") from error
    try:
        if not fix:
            return msgspec.to_builtins(ledger.read(examination.examine).result())
        healed, found = ledger.write(examination.heal).result()
        return msgspec.to_builtins({"healed": healed, **msgspec.structs.asdict(found)})
    except DovetailError as error:
        raise exits.LocalFailure(str(error)) from error
    finally:
        ledger.close()


def lines(answer: dict[str, Any]) -> Iterator[str]:
    counts = (f"{count:,} {table}" for table, count in answer["checked"].items())
    yield f"Checked {', '.join(counts)}."
    for fault in answer.get("healed", ()):
        yield f"{paint('healed', 'green')}  {fault['kind']}: {printable(fault['words'])}"
    for fault in answer["faults"]:
        hint = " (--fix heals this)" if fault["healable"] else ""
        yield f"{paint('fault', 'red')}   {fault['kind']}: {printable(fault['words'])}{hint}"
    found = len(answer["faults"])
    yield f"{count_text(found, 'fault')}." if found else "No faults."
