"""Hardware intents of one server process, put together for `worker`: actions, hooks, errands."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from dovetail.aio.supervise import run_together
from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError
from dovetail.intents.controllers import CallTerms
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import DeploymentGroup
from dovetail.intents.hpa.answer import HpaAnswer, hpa_answer
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.kube.deploy.port import KubeClusters
from dovetail.kube.mirror.mirror import Mirror
from dovetail.kube.mirror.snapshots import snapshot_of
from dovetail.kube.runtime.cluster_clients import ClusterClients, connect_to
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.intents import clusters, deployments
from dovetail.rest.server.backend import Errand
from dovetail.service.intents.actions import GroupActions
from dovetail.service.intents.charges import ChargeFollower
from dovetail.service.intents.cluster_hook import ClusterHook
from dovetail.service.intents.controllers.announcing import ClusterAnnouncer
from dovetail.service.intents.controllers.emco import placement_callers
from dovetail.service.intents.controllers.emco_actions import EmcoActions
from dovetail.service.intents.controllers.fan_out import ControllerFanOut
from dovetail.service.intents.deploying.acting import ActionControllers
from dovetail.service.intents.deploying.cluster_port import ClusterPort
from dovetail.service.intents.deploying.outbox import Outbox
from dovetail.service.intents.deploying.transitions import DeployedClusterHook, GroupHook
from dovetail.service.intents.deploying.worker import DeploymentWorker
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.planning import Planner
from dovetail.service.intents.ports import IntentActions, ObjectHook
from dovetail.service.intents.reading import GroupReader
from dovetail.service.intents.rendering import ChartRenderer, Helm
from dovetail.service.intents.settings import IntentSettings
from dovetail.service.intents.status import GroupStatus
from dovetail.service.leases import LedgerLease
from dovetail.wire.client import GrpcEndpoint

LOOK_SECONDS = 1.0
LEASE = "intents"
"""Who holds it mirrors all clusters and carries all deployments out."""


class IntentParts(msgspec.Struct, frozen=True):
    """What a server's backend gets of intents."""

    actions: IntentActions
    hooks: Mapping[str, ObjectHook]
    errands: tuple[Errand, ...]
    closers: tuple[Callable[[], None], ...]


def intent_parts(ledger: Ledger, settings: IntentSettings) -> IntentParts:
    directory = None if settings.kubeconfigs is None else Path(settings.kubeconfigs)
    clients = ClusterClients(ledger, directory=directory)
    port = KubeClusters(clients.client_of)
    fleet = FleetKeeper(ledger)
    worker = DeploymentWorker(Outbox(ledger), port, ChargeFollower(ledger, fleet).follow)
    controllers = ControllerFanOut(
        ledger, hpa, placement_callers(etcd_of(settings)), CallTerms(settings.controller_seconds)
    )
    errand = partial(carry_out, ledger, directory, worker)
    terms = CallTerms(settings.controller_seconds)
    registering = DeployedClusterHook(ClusterHook(snapshot_of))
    announcer = ClusterAnnouncer(registering, ledger, terms)
    return IntentParts(
        group_actions(ledger, settings, fleet, controllers, port, wake=worker.wake),
        {"cluster": announcer, "deployment-intent-group": GroupHook()},
        (announcer.run, *((errand,) if settings.mirror else ())),
        (controllers.close, clients.close),
    )


def group_actions(
    ledger: Ledger,
    settings: IntentSettings,
    fleet: FleetKeeper,
    controllers: ControllerFanOut[HpaAnswer],
    port: ClusterPort,
    *,
    wake: Callable[[], None],
) -> GroupActions:
    planner = Planner(
        GroupReader(ledger, ChartRenderer(Helm(settings.helm))),
        fleet,
        controllers,
        port,
        actions=action_controllers(settings),
        apply_seconds=settings.apply_seconds,
    )
    return GroupActions(ledger, planner, GroupStatus(ledger, fleet), settings, wake)


def hpa(group: DeploymentGroup, fleet: FleetSnapshot, check: Callable[[], None]) -> HpaAnswer:
    return hpa_answer(group, fleet, HpaBudget(check=check))


def action_controllers(settings: IntentSettings) -> ActionControllers:
    etcd = etcd_of(settings)
    terms = CallTerms(settings.controller_seconds)
    return ActionControllers(None if etcd is None else EmcoActions(etcd, None, terms))


def etcd_of(settings: IntentSettings) -> GrpcEndpoint | None:
    if settings.etcd is None:
        return None
    host, _, port = settings.etcd.rpartition(":")
    return GrpcEndpoint(host=host, port=int(port))


async def carry_out(ledger: Ledger, directory: Path | None, worker: DeploymentWorker) -> None:
    """Mirror and worker, while this process is the one of all to run them."""
    await until_needed(ledger)
    holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    lease = LedgerLease(ledger, LEASE, holder)
    mirror = Mirror(ledger, partial(connect_to, directory=directory), fence=lease.fenced)
    await lease.run_while_held(lambda: run_together(mirror.run(), worker.run()))


async def until_needed(ledger: Ledger) -> None:
    """A server that has nothing to do with intents leaves its ledger alone."""

    def is_needed(tx: Transaction) -> bool:
        return bool(clusters.mirrored(tx) or deployments.watched(tx))

    while True:
        with suppress(DovetailError):
            if await result_of(ledger.read(is_needed)):
                return
        await asyncio.sleep(LOOK_SECONDS)
