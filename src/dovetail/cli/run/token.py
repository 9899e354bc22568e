"""`dovetail token`: makes a token and the entry of the token file that knows it."""

from __future__ import annotations

import json
import secrets

import click

from dovetail.rest.auth.tokens import fingerprint


@click.command()
@click.argument("user")
@click.option("--role", "roles", multiple=True, help="A role of the token; may be repeated.")
@click.option("--project", help="The project the token is for.")
def token(user: str, roles: tuple[str, ...], project: str | None) -> None:
    """Make a token for USER: an entry to append to the token file, and the token itself.

    The file holds only a hash; the token is shown once, on standard error.
    """
    secret = secrets.token_urlsafe(32)
    click.echo("[[tokens]]")
    click.echo(f"user = {toml(user)}")
    if project is not None:
        click.echo(f"project = {toml(project)}")
    click.echo(f"roles = [{', '.join(toml(role) for role in roles)}]")
    click.echo(f'sha256 = "{fingerprint(secret)}"')
    click.echo(f"token of {user}: {secret}", err=True)


def toml(text: str) -> str:
    """A string of JSON is one of TOML as well."""
    return json.dumps(text, ensure_ascii=False)
