"""`dovetail traits`: lists traits, of one provider or of all."""

from __future__ import annotations

from urllib.parse import urlencode

import click

from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.names import is_uuid, uuid_of
from dovetail.cli.support.output import output_option, printable, show


@click.command()
@click.argument("provider", required=False)
@click.option("--prefix", metavar="TEXT", help="Only those that begin so, as CUSTOM_.")
@click.option("--all", "everything", is_flag=True, help="Also those that no provider has.")
@output_option
@talks_to_server()
def traits(
    server: ServerClient, provider: str | None, prefix: str | None, everything: bool, form: str
) -> None:
    """List traits.

    Those that any provider has; with PROVIDER, a name or a UUID, those of that one.
    """
    if provider is not None:
        uuid = provider if is_uuid(provider) else uuid_of(server, provider)
        found = server.get(f"/resource_providers/{segment(uuid)}/traits")["traits"]
        found = [name for name in found if name.startswith(prefix or "")]
    else:
        asked = [] if everything else [("associated", "true")]
        asked += [("name", f"startswith:{prefix}")] if prefix else []
        found = server.get(f"/traits?{urlencode(asked)}")["traits"]
    found = sorted(found)
    show(form, {"traits": found}, lambda: map(printable, found))
