"""`dovetail serve`: the HTTP server."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any

import click
import uvicorn
from uvicorn.supervisors import Multiprocess

from dovetail.cli import demo as demo_fleet
from dovetail.cli.db import DATABASE
from dovetail.cli.settings import Settings
from dovetail.core.errors import DovetailError
from dovetail.ledger import open_ledger
from dovetail.rest.backend import Limits
from dovetail.rest.policy import RULE_SETS

DRAIN_SECONDS = 20


@click.command(context_settings={"auto_envvar_prefix": "DOVETAIL"})
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8778, show_default=True, help="Port to listen on; 0 for any.")
@DATABASE
@click.option(
    "--auth",
    type=click.Choice(["tokens", "noauth2"]),
    default="tokens",
    show_default=True,
    help="tokens: those of --tokens. noauth2: believe every caller (for tests and loopback).",
)
@click.option("--tokens", type=click.Path(exists=True, dir_okay=False), help="Token file (TOML).")
@click.option(
    "--policy",
    type=click.Choice(list(RULE_SETS)),
    default="secure",
    show_default=True,
    help="Which roles may do what.",
)
@click.option("--workers", default=1, show_default=True, help="Server processes.")
@click.option("--cors-origin", help="Origin whose pages may use the API from a browser.")
@click.option("--max-body-bytes", default=Limits().body_bytes, show_default=True)
@click.option("--max-fleet-bytes", default=Limits().fleet_bytes, show_default=True)
@click.option("--max-query-bytes", default=Limits().query_bytes, show_default=True)
@click.option("--max-search-seconds", default=Limits().search_seconds, show_default=True)
@click.option("--log-level", default="info", show_default=True)
@click.option("--noauth2-beyond-loopback", is_flag=True, help="Needed to serve noauth2 to others.")
@click.option("--demo", is_flag=True, help="Fill an empty ledger with a demo fleet.")
def serve(host: str, port: int, workers: int, demo: bool, **options: Any) -> None:
    """Serve the Placement API (and Dovetail's own) over HTTP."""
    settings = settings_of(host, options)
    try:
        settings.authenticator()
        prepare(settings, demo=demo)
    except DovetailError as error:
        raise click.ClickException(str(error)) from error
    settings.hand_over()
    config = uvicorn.Config(
        "dovetail.cli.settings:application",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        http="httptools",
        loop="uvloop",
        lifespan="on",
        access_log=False,
        server_header=False,
        log_config=None,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=75,
        # A worker that is still starting on a busy machine is not a worker that hangs.
        timeout_worker_healthcheck=60,
    )
    bound = config.bind_socket()
    announce(bound, demo=demo)
    if workers > 1:
        Multiprocess(config, sockets=[bound]).run()
    else:
        uvicorn.Server(config).run(sockets=[bound])


def settings_of(host: str, options: dict[str, Any]) -> Settings:
    if options["auth"] == "tokens" and options["tokens"] is None:
        raise click.UsageError("--auth tokens needs --tokens FILE (see `dovetail token`)")
    if (
        options["auth"] == "noauth2"
        and not is_loopback(host)
        and not options["noauth2_beyond_loopback"]
    ):
        raise click.UsageError(
            f"noauth2 believes every caller, and {host} can be reached from other machines; "
            "add --noauth2-beyond-loopback if that is what you want"
        )
    return Settings(
        database=options["database"],
        auth=options["auth"],
        tokens=options["tokens"],
        policy=options["policy"],
        cors_origin=options["cors_origin"],
        limits=Limits(
            body_bytes=options["max_body_bytes"],
            fleet_bytes=options["max_fleet_bytes"],
            query_bytes=options["max_query_bytes"],
            search_seconds=options["max_search_seconds"],
        ),
        log_level=options["log_level"],
    )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def prepare(settings: Settings, *, demo: bool) -> None:
    """Make the tables before workers start, so that they need not race to do it."""
    ledger = open_ledger(settings.database)
    try:
        if demo:
            ledger.write(demo_fleet.fill_if_empty).result()
    finally:
        ledger.close()


def announce(bound: socket.socket, *, demo: bool) -> None:
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if demo:
        click.echo(demo_fleet.welcome(address))
    else:
        click.echo(f"Dovetail listens on {address}", err=True)
    sys.stdout.flush()
