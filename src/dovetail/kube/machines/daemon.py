"""The daemon behind `dovetail operator`: settings become a replica and servers, until stopped.

The command (cli/run/operator) calls `run`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable

from dovetail.aio.supervise import run_together
from dovetail.kube.api.client import connect
from dovetail.kube.machines.operator import OperatorReplica
from dovetail.kube.machines.settings import OperatorSettings
from dovetail.kube.machines.webhook.replica import WebhookReplica
from dovetail.kube.runtime.events import Recorder
from dovetail.kube.runtime.leader import Election, LeaseTiming
from dovetail.kube.runtime.serving import ALL_ADDRESSES, listen, monitoring, serve
from dovetail.ledger import opened
from dovetail.machines.snapshot import StockSettings
from dovetail.service.machine_units import MachineLedger


async def run(
    settings: OperatorSettings, stop: asyncio.Event, ready: Callable[[], None] = lambda: None
) -> None:
    """Until `stop` is set. Raises DovetailError if it cannot start."""
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    with opened(settings.database, settings.ledger) as ledger:
        # The lease has connections of its own: it must not wait behind thousands of sales.
        async with (
            connect(settings.kubeconfig, agent="dovetail-operator") as api,
            connect(settings.kubeconfig, agent="dovetail-operator") as lease_api,
        ):
            election = Election(
                lease_api,
                settings.namespace,
                "dovetail-operator",
                identity,
                timing=LeaseTiming.in_proportion(settings.lease.seconds),
            )
            operator = OperatorReplica(
                api,
                MachineLedger(ledger, settings.cluster),
                Recorder(api, "dovetail-operator", identity),
                StockSettings(namespace=settings.namespace, image=settings.image),
                election if settings.leader_elect else None,
            )
            webhook = None
            if settings.webhook.listen is not None:
                webhook = WebhookReplica(api, operator, settings.webhook)
            servers = []
            if settings.metrics_port is not None:
                bound = listen(ALL_ADDRESSES, settings.metrics_port)
                servers.append(serve(monitoring(lambda: (webhook or operator).is_ready), bound))
            if webhook is not None:
                servers.append(webhook.run())

            async def until_stopped() -> None:
                await operator.run(stop, ready)
                if webhook is not None:
                    await webhook.linger()

            await run_together(*servers, until_stopped())
