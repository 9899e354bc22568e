"""`dovetail release`: deletes all allocations of consumers."""

from __future__ import annotations

import click

from dovetail.cli.support.client import ServerClient, segment, talks_to_server


@click.command()
@click.argument("consumers", nargs=-1, required=True, metavar="CONSUMER...")
@talks_to_server()
def release(server: ServerClient, consumers: tuple[str, ...]) -> None:
    """Give back all that consumers hold.

    CONSUMER is a UUID. Stops at the first that holds nothing.
    """
    for consumer in consumers:
        server.call("DELETE", f"/allocations/{segment(consumer)}")
        click.echo(f"Released all that {consumer} held.")
