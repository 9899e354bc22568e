"""The daemon behind `dovetail scheduler`: settings become a replica and servers, run until stopped.

The command (cli/run/scheduler) calls `run`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable

import structlog

from dovetail.aio.supervise import run_together
from dovetail.config.listening import host_and_port, is_loopback
from dovetail.config.values import BadSettings
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.api.client import connect
from dovetail.kube.api.port import KubeApi
from dovetail.kube.extender.app import application
from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.tls import ExtenderTls
from dovetail.kube.replica import Replica
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.leader import Election, LeaseTiming
from dovetail.kube.runtime.serving import ALL_ADDRESSES, listen, monitoring, serve
from dovetail.kube.scheduler.settings import ExtenderSettings, SchedulerSettings
from dovetail.ledger import opened
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")


async def run(
    settings: SchedulerSettings, stop: asyncio.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Until `stop` is set. Raises DovetailError if it cannot start."""
    # 1. What is set wrongly is told before anything runs.
    strategy = Strategy(settings.strategy)
    extender = settings.extender
    address = address_of(extender)
    tls = ExtenderTls.of(extender)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    # 2. The ledger and the API server.
    with opened(settings.database, settings.ledger) as ledger:
        async with connect(settings.kubeconfig, agent="dovetail-scheduler") as api:
            # 3. The replica: class controller and scheduler.
            replica = Replica(
                api,
                DeviceLedger(ledger, settings.cluster),
                Recorder(api, "dovetail-scheduler", identity),
                name=settings.name,
                strategy=strategy,
                election=election_of(settings, api, identity) if settings.leader_elect else None,
            )
            # 4. Metrics and the extender, served beside it.
            servers = []
            if settings.metrics_port is not None:
                bound = listen(ALL_ADDRESSES, settings.metrics_port)
                servers.append(serve(monitoring(lambda: replica.is_ready), bound))
            if address is not None:
                app = application(Extender(replica.extender_parts()))
                servers.append(serve(app, listen(*address), tls.context if tls else None))
                servers += [tls.follow()] if tls else []
            # 5. A server that fails ends the replica; on the way out, the replica ends first.
            await run_together(*servers, replica.run(stop, ready))


def election_of(settings: SchedulerSettings, api: KubeApi, identity: str) -> Election:
    lease = settings.lease
    return Election(
        api,
        lease.namespace,
        f"{settings.name}-scheduler",
        identity,
        timing=LeaseTiming.in_proportion(lease.seconds),
    )


def address_of(extender: ExtenderSettings) -> tuple[str, int] | None:
    """Of `HOST:PORT`, or `[ADDRESS]:PORT`. Raises BadSettings."""
    if extender.listen is None:
        return None
    address = host_and_port(extender.listen)
    if address is None:
        raise BadSettings(
            f"--extender-listen: {extender.listen!r} is not HOST:PORT, such as 127.0.0.1:8888"
        )
    host, _ = address
    if extender.client_ca is None and not (is_loopback(host) or extender.open_beyond_loopback):
        raise BadSettings(
            f"--extender-listen: {host} is not loopback, and whoever can ask can bind pods: "
            "--extender-client-ca says whose certificates are believed (or set "
            "--extender-open-beyond-loopback)"
        )
    return address
