"""`dovetail serve`: checks the settings, binds the socket and runs uvicorn on it."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from contextlib import suppress
from typing import Any

import click
import uvicorn

from dovetail.cli.run import demo as demo_fleet
from dovetail.cli.run.config import effective
from dovetail.cli.run.readiness import NotifyingServer, NotifyingWorkers
from dovetail.cli.run.settings import SERVER, ServerSettings
from dovetail.cli.run.worker import audit_log, authenticator, hand_over, typical_requests
from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.setting_options import load_settings, with_settings
from dovetail.config.listening import bound_socket, is_loopback
from dovetail.core.errors import DovetailError
from dovetail.ledger import open_ledger
from dovetail.rest.server.listening.http_protocol import HEAD_BYTES
from dovetail.rest.server.listening.tls import tls_factory
from dovetail.telemetry.metrics import SHARED_FOLDER

DRAIN_SECONDS = 20


@click.command()
@with_settings(SERVER)
@click.option("--print-config", is_flag=True, help="Print the configuration in force and end.")
def serve(print_config: bool, **flags: Any) -> None:
    """Serve the Placement API (and Dovetail's own) over HTTP."""
    loaded = load_settings(SERVER, flags)
    if print_config:
        click.echo(effective(loaded), nl=False)
        return
    settings = loaded.settings
    check(settings)
    try:
        check_access(settings)
        prepare(settings)
        bound = listening_socket(settings.host, settings.port)
        hand_over(settings)
        # Ctrl-C is how a server at a terminal is meant to end: nothing was aborted.
        with suppress(KeyboardInterrupt):
            run(settings, bound)
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


def listening_socket(host: str, port: int) -> socket.socket:
    """Bound to the address, for this process or for its workers."""
    try:
        bound = bound_socket(host, port)
    except OSError as error:
        raise LocalFailure(
            f"cannot listen on {host}, port {port}: {error.strerror}; "
            "choose others with --host and --port"
        ) from error
    bound.set_inheritable(True)
    return bound


def run(settings: ServerSettings, bound: socket.socket) -> None:
    web = uvicorn.Config(
        "dovetail.cli.run.worker:application",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        http="dovetail.rest.server.listening.http_protocol:BoundedHttpProtocol",
        h11_max_incomplete_event_size=settings.max.query_bytes + HEAD_BYTES,
        ssl_context_factory=tls_factory(settings.tls),
        loop="uvloop",
        lifespan="on",
        ws="none",
        access_log=False,
        server_header=False,
        log_config=None,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=75,
        # A worker that is still starting on a busy machine is not a worker that hangs.
        timeout_worker_healthcheck=60,
    )
    announce(bound, "https" if web.is_ssl else "http", demo=settings.demo)
    if settings.workers == 1:
        NotifyingServer(web).run(sockets=[bound])
        return
    with tempfile.TemporaryDirectory(prefix="dovetail-metrics-") as folder:
        os.environ.setdefault(SHARED_FOLDER, folder)
        NotifyingWorkers(web, sockets=[bound]).run()


def check(settings: ServerSettings) -> None:
    """Refuse settings that are good by themselves and bad together."""
    if (
        "noauth2" in settings.auth
        and not is_loopback(settings.host)
        and not settings.noauth2_beyond_loopback
    ):
        raise click.UsageError(
            f"noauth2 believes every caller, and {settings.host} can be reached from other "
            "machines; add --noauth2-beyond-loopback if that is what you want"
        )


def check_access(settings: ServerSettings) -> None:
    """What workers would trip over, told before they start."""
    authenticator(settings)
    typical_requests(settings)
    tls_factory(settings.tls)
    opened = audit_log(settings)
    if opened is not None:
        opened.close()


def prepare(settings: ServerSettings) -> None:
    """Make the tables before workers start, so that they need not race to do it."""
    ledger = open_ledger(settings.database, settings.ledger)
    try:
        if settings.demo:
            ledger.write(demo_fleet.fill_if_empty).result()
    finally:
        ledger.close()


def announce(bound: socket.socket, scheme: str, *, demo: bool) -> None:
    host, port = bound.getsockname()[:2]
    address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    if demo:
        click.echo(demo_fleet.welcome(address))
    else:
        click.echo(f"Dovetail listens on {address}", err=True)
    sys.stdout.flush()
