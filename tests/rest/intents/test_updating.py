"""Updates of groups that are deployed: clusters are kept, immutable objects replaced when asked.

The clusters are in memory, and a worker carries everything out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from dovetail.cli.run.intents import group_actions, hpa
from dovetail.intents.controllers import CallTerms
from dovetail.intents.deployment import DeploymentState
from dovetail.kube.mirror.snapshots import snapshot_of
from dovetail.ledger import Ledger
from dovetail.ledger.intents import deployments
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.doors import DOORS
from dovetail.rest.server.app import Application
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.intents.charges import ChargeFollower
from dovetail.service.intents.cluster_hook import ClusterHook
from dovetail.service.intents.controllers.emco import placement_callers
from dovetail.service.intents.controllers.fan_out import ControllerFanOut
from dovetail.service.intents.deploying.outbox import Outbox
from dovetail.service.intents.deploying.transitions import GroupHook
from dovetail.service.intents.deploying.worker import DeploymentWorker, WorkerTimings
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.settings import IntentSettings
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client
from tests.rest.intents.client import named
from tests.rest.intents.operator import Operator
from tests.support.intents import scenario
from tests.support.intents.fake_clusters import FakeClusters
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, C4, FWALL, Scenario
from tests.support.loops import eventually

Json = dict[str, Any]
TIMINGS = WorkerTimings(
    poll_seconds=0.02, observe_seconds=0.02, first_retry_seconds=0.01, longest_retry_seconds=0.05
)
BASE = scenario.base().group.name
CORE = f"{BASE}/hpa-intents/fwall-hpa-intent/hpa-resource-consumers/core-fwall"


class World:
    """A server over clusters in memory, with a worker that is run when it is needed."""

    def __init__(self, ledger: Ledger) -> None:
        settings = IntentSettings()
        self.clusters = FakeClusters(C1, C2, C3, C4)
        fleet = FleetKeeper(ledger)
        self.controllers = ControllerFanOut(ledger, hpa, placement_callers(None), CallTerms())
        self._follow = ChargeFollower(ledger, fleet).follow
        self._ledger = ledger
        backend = ServerBackend(
            ledger=ledger,
            keeper=SnapshotKeeper(ledger),
            authenticator=NoAuth(),
            rules=RULE_SETS["legacy"],
            intents=group_actions(
                ledger, settings, fleet, self.controllers, self.clusters, wake=lambda: None
            ),
            intent_hooks={
                "cluster": ClusterHook(snapshot_of),
                "deployment-intent-group": GroupHook(),
            },
        )
        self.client = Client(Application(backend, DOORS))
        self.operator = Operator(self.client)

    def carry_out(self, holds: Callable[[], bool]) -> None:
        async def work() -> None:
            worker = DeploymentWorker(Outbox(self._ledger), self.clusters, self._follow, TIMINGS)
            task = asyncio.create_task(worker.run())
            try:
                await eventually(holds, 30)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        self.client.run(work())

    def is_there(self, group: str) -> bool:
        found = self._ledger.read(lambda tx: deployments.current(tx, group)).result()
        return found is not None and found.state is DeploymentState.INSTANTIATED

    def deploy(self, wanted: Scenario) -> str:
        group = self.operator.make(wanted)
        self.operator.instantiate(group)
        self.carry_out(lambda: self.is_there(group))
        return group

    def found(self, cluster: str, kind: str, name: str) -> tuple[str, Json]:
        """Its uid, and what it says."""
        uid, _, manifest = self.clusters.objects[cluster][f"apps/v1/{kind}/default/{name}"]
        return uid, manifest

    def update(self, group: str, query: str = "") -> Any:
        return self.operator.post(f"{group}/update{query}", None)


@pytest.fixture
def world(ledger: Ledger) -> Iterator[World]:
    made = World(ledger)
    yield made
    made.client.close()
    made.controllers.close()


def clusters_of(answer: Json) -> dict[str, list[str]]:
    return {app: [each["cluster"] for each in of] for app, of in answer["apps"].items()}


def test_an_update_without_a_change_sends_nothing(world: World) -> None:
    group = world.deploy(scenario.base())
    before = dict(world.clusters.objects[C1])
    calls = len(world.clusters.calls)
    reply = world.update(group)
    assert reply.status_code == 202, reply.text
    assert reply.json()["state"] == "Instantiated"
    assert world.clusters.objects[C1] == before
    assert not [each for each in world.clusters.calls[calls:] if each[0] == "apply"]


def test_an_update_stays_though_others_would_be_better(world: World) -> None:
    """c4 becomes the better place for analytics; it stays on c3, and the score is the same."""
    group = world.deploy(scenario.base())
    rule = named("analytics-placement", app=ANALYTICS, intent=PREFERS_C4["intent"], **PREFERENCE)
    where = f"{group}/generic-placement-intents/my-generic/app-intents/analytics-placement"
    reply = world.operator.put(where, rule)
    assert reply.status_code == 200, reply.text
    assert clusters_of(world.update(group).json()) == {FWALL: [C1], ANALYTICS: [C3]}


EDGE = {"clusterProvider": "p1", "clusterLabel": "edge"}
PREFERS_C4: Json = {"intent": {"anyOf": [EDGE]}}
PREFERENCE: Json = {"preference": [{"clusterProvider": "p1", "cluster": "c4"}]}


def test_an_update_moves_only_what_has_to(world: World) -> None:
    """fwall may not stay on c1: it goes to c2, and analytics stays where it is."""
    group = world.deploy(scenario.base())
    terms = [{"clusterProvider": "p1", "cluster": each} for each in ("c2", "c3")]
    rule = named("fwall-placement", app=FWALL, intent={"anyOf": terms})
    where = f"{group}/generic-placement-intents/my-generic/app-intents/fwall-placement"
    assert world.operator.put(where, rule).status_code == 200
    reply = world.update(group)
    assert reply.status_code == 202, reply.text
    assert clusters_of(reply.json()) == {FWALL: [C2], ANALYTICS: [C3]}
    assert reply.json()["state"] == "Updating"
    world.carry_out(lambda: world.is_there(group))
    assert world.clusters.names(C1) == []
    assert "core-fwall" in world.clusters.names(C2)
    charged = {
        each["cluster"]
        for app in world.operator.status(group)["apps"]
        for each in app["clusters"]
        if each["charges"]
    }
    assert charged == {"c2", "c3"}


def test_what_is_its_own_is_no_obstacle(world: World) -> None:
    """A second replica fits beside what the group itself holds already: c1 takes two, not three."""
    group = world.deploy(scenario.base())
    assert replicas(world, 2).status_code == 200
    reply = world.update(group)
    assert reply.status_code == 202, reply.text
    assert clusters_of(reply.json())[FWALL] == [C1]
    world.carry_out(lambda: world.is_there(group))
    _, core = world.found(C1, "StatefulSet", "core-fwall")
    assert core["spec"]["replicas"] == 2


def replicas(world: World, count: int) -> Any:
    """Of core-fwall. A consumer that has requirements is settled: they go, and come again."""
    kept = []
    for each in world.operator.get(f"{CORE}/resource-requirements").json():
        kept.append(each)
        name = each["metadata"]["name"]
        assert world.operator.delete(f"{CORE}/resource-requirements/{name}").status_code == 204
    body = named(
        "core-fwall",
        apiVersion="apps/v1",
        kind="StatefulSet",
        name="core-fwall",
        container="palo-alto-e3000",
        replicas=count,
    )
    reply = world.operator.put(CORE, body)
    for each in kept:
        world.operator.made(f"{CORE}/resource-requirements", each)
    return reply


def test_an_infeasible_update_leaves_everything_as_it_is(world: World) -> None:
    group = world.deploy(scenario.base())
    before = dict(world.clusters.objects[C1])
    assert replicas(world, 50).status_code == 200
    reply = world.update(group)
    assert reply.status_code == 422, reply.text
    assert world.operator.status(group)["status"] == "Instantiated"
    assert world.clusters.objects[C1] == before


def test_what_cannot_be_changed_is_replaced_only_when_asked(world: World) -> None:
    group = world.deploy(scenario.base())
    uid, _ = world.found(C1, "StatefulSet", "core-fwall")
    change_service_name(world)
    (told,) = world.operator.plan(group)["replacements"]
    assert (told["object"], told["path"]) == ("StatefulSet core-fwall", "spec.serviceName")
    reply = world.update(group)
    assert reply.status_code == 409, reply.text
    assert "spec.serviceName" in reply.text
    assert world.found(C1, "StatefulSet", "core-fwall")[0] == uid
    assert world.update(group, "?replace=true").status_code == 202
    world.carry_out(lambda: world.is_there(group))
    after, core = world.found(C1, "StatefulSet", "core-fwall")
    assert after != uid
    assert core["spec"]["serviceName"] == "other"


def change_service_name(world: World) -> None:
    objects = scenario.base().objects[FWALL]
    for each in objects:
        if each["kind"] == "StatefulSet":
            each["spec"]["serviceName"] = "other"
    where = f"{BASE.rsplit('/', 2)[0]}/apps/{FWALL}"
    text = yaml.safe_dump_all(objects, sort_keys=False).encode()
    reply = world.operator.form("PUT", where, named(FWALL), text)
    assert reply.status_code == 200, reply.text
