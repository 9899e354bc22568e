"""`dovetail scheduler` as a process: what is set becomes parts that run until they are stopped."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from dovetail.classes.strategies import Strategy
from dovetail.core.errors import DovetailError
from dovetail.kube.client import connect
from dovetail.kube.election import Election, Timing
from dovetail.kube.events import Recorder
from dovetail.kube.extender.app import application
from dovetail.kube.extender.extender import Extender
from dovetail.kube.port import KubeApi
from dovetail.kube.scheduler.scheduler import Scheduler
from dovetail.kube.scheduler.settings import LeaseSettings, Settings
from dovetail.kube.serving import listen, monitoring, serve, tls_of
from dovetail.ledger import Ledger, open_ledger
from dovetail.service.devices import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - probes and collectors come from elsewhere


class BadSettings(DovetailError):
    """Settings that are good by themselves and cannot be used."""


async def run(
    settings: Settings, stop: asyncio.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Until `stop` is set. Raises DovetailError if it cannot start."""
    strategy = Strategy(settings.strategy)
    extender = settings.extender
    tls = tls_of(extender.cert, extender.key, extender.client_ca)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    with opened(settings.database) as ledger:
        async with connect(settings.kubeconfig, agent="dovetail-scheduler") as api:
            scheduler = Scheduler(
                api,
                DeviceLedger(ledger, settings.cluster),
                Recorder(api, "dovetail-scheduler", identity),
                name=settings.name,
                strategy=strategy,
                election=election_of(settings, api, identity) if settings.leader_elect else None,
            )
            servers = []
            if settings.metrics_port is not None:
                bound = listen(ALL_ADDRESSES, settings.metrics_port)
                servers.append(serve(monitoring(lambda: scheduler.is_ready), bound))
            if extender.listen is not None:
                app = application(Extender(api, scheduler, strategy))
                servers.append(serve(app, listen(*address_of(extender.listen)), tls))
            serving = [asyncio.create_task(each) for each in servers]
            try:
                await scheduler.run(stop, ready)
            finally:
                for task in serving:
                    task.cancel()
                await asyncio.gather(*serving, return_exceptions=True)


@contextmanager
def opened(database: str) -> Iterator[Ledger]:
    ledger = open_ledger(database)
    try:
        yield ledger
    finally:
        ledger.close()


def election_of(settings: Settings, api: KubeApi, identity: str) -> Election:
    lease = settings.lease
    return Election(
        api, lease.namespace, f"{settings.name}-scheduler", identity, timing=timing_of(lease)
    )


def timing_of(lease: LeaseSettings) -> Timing:
    """In the proportions that Kubernetes' own components have."""
    return Timing(lease=lease.seconds, renew=lease.seconds * 2 / 3, retry=lease.seconds * 2 / 15)


def address_of(text: str) -> tuple[str, int]:
    """Of `HOST:PORT`, or `[ADDRESS]:PORT`. Raises BadSettings."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise BadSettings(f"--extender-listen: {text!r} is not HOST:PORT, such as 127.0.0.1:8888")
    return host.strip("[]"), int(port)
