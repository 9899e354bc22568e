"""The worker of deployments: objects arrive, or nothing stays, wherever it is interrupted."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import msgspec
import pytest

from dovetail.core.claim import Claim
from dovetail.core.inventory import Inventory
from dovetail.intents.deployment import (
    AppOnCluster,
    DeploymentDocument,
    DeploymentRecord,
    DeploymentState,
    ObjectKey,
    ObjectState,
    OutboxObject,
    leaving,
)
from dovetail.ledger import Ledger, Transaction, claims, inventories, providers
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.intents import deployments
from dovetail.ledger.intents.node_names import consumer_uuid
from dovetail.service.intents.deploying.cluster_port import DeployedPod, ObjectRefused
from dovetail.service.intents.deploying.outbox import Outbox, settle
from dovetail.service.intents.deploying.worker import DeploymentWorker, WorkerTimings
from tests.support.intents.fake_clusters import Call, Crash, FakeClusters
from tests.support.loops import eventually

EAST, WEST = "p+east", "p+west"
TIMINGS = WorkerTimings(
    poll_seconds=0.01,
    observe_seconds=0.01,
    first_retry_seconds=0.001,
    longest_retry_seconds=0.01,
)
LONG = 10**6


class MortalOutbox(Outbox):
    """Of a process that can be killed: nothing of it is written any more."""

    is_dead = False

    async def _write(self, operation: Operation[T]) -> T:
        if self.is_dead:
            raise Crash
        return await super()._write(operation)


class World:
    """A deployment on two clusters that holds a unit of each."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.clusters = FakeClusters(EAST, WEST)
        self.outbox = MortalOutbox(ledger)
        self.id = str(uuid.uuid4())
        self.followed: list[DeploymentState] = []
        self.provider = ledger.write(a_provider).result()

    def instantiate(self, seconds: int = LONG) -> None:
        objects = [
            wanted(cluster, position, kind, name)
            for cluster in (EAST, WEST)
            for position, (kind, name) in enumerate((("Deployment", "web"), ("ConfigMap", "cm")))
        ]

        def write(tx: Transaction) -> None:
            placements = tuple(AppOnCluster(app="app", cluster=each) for each in (EAST, WEST))
            document = DeploymentDocument(placements=placements, deadline=tx.now + seconds)
            record = DeploymentRecord(
                id=self.id,
                group="projects/p/g",
                revision=1,
                state=DeploymentState.INSTANTIATING,
                document=document,
                created_at=tx.now,
                changed_at=tx.now,
            )
            deployments.put(tx, record)
            deployments.set_objects(tx, self.id, objects)
            claims.replace(tx, [self._claim(each) for each in (EAST, WEST)])

        self.ledger.write(write).result()

    def _claim(self, cluster: str) -> Claim:
        return Claim(
            consumer=consumer_uuid(self.id, "app", cluster),
            project="p",
            user="u",
            allocations={self.provider: {"VCPU": 1}},
        )

    def terminate(self) -> None:
        def write(tx: Transaction) -> None:
            record = deployments.find(tx, self.id, lock=True)
            assert record is not None
            objects = deployments.objects(tx, self.id)
            moved = record.moved(DeploymentState.TERMINATING, tx.now)
            deployments.put(tx, moved)
            deployments.put_objects(tx, self.id, [left(each) for each in objects])

        self.ledger.write(write).result()

    def update(self) -> None:
        """Replace `web` in the west, change it in the east, and drop `cm` there."""

        def write(tx: Transaction) -> None:
            record = deployments.find(tx, self.id, lock=True)
            assert record is not None
            document = msgspec.structs.replace(record.document, deadline=tx.now + LONG)
            moved = msgspec.structs.replace(record, revision=2, document=document)
            deployments.put(tx, moved.moved(DeploymentState.UPDATING, tx.now))
            deployments.put_objects(
                tx, self.id, [updated(each) for each in deployments.objects(tx, self.id)]
            )

        self.ledger.write(write).result()

    def worker(self) -> DeploymentWorker:
        async def follow(record: DeploymentRecord) -> None:
            self.followed.append(record.state)

        self.outbox = MortalOutbox(self.ledger)
        return DeploymentWorker(self.outbox, self.clusters, follow, TIMINGS)

    async def run_until(self, holds: Callable[[], bool]) -> None:
        """A worker; one that is killed is followed by another."""
        for _ in range(1000):
            task = asyncio.create_task(self.worker().run())
            try:
                await eventually(lambda: holds() or self.outbox.is_dead, 30.0)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if holds():
                return

    async def run_to(self, *states: DeploymentState) -> None:
        await self.run_until(lambda: self.state in states)

    def called(self, verb: str, cluster: str) -> list[str]:
        """The objects it was called for, in order."""
        return [name for one, at, name in self.clusters.calls if (one, at) == (verb, cluster)]

    @property
    def state(self) -> DeploymentState:
        found = self.ledger.read(lambda tx: deployments.find(tx, self.id)).result()
        assert found is not None
        return found.state

    @property
    def reason(self) -> str:
        found = self.ledger.read(lambda tx: deployments.find(tx, self.id)).result()
        assert found is not None
        return found.document.reason

    @property
    def objects(self) -> list[OutboxObject]:
        return self.ledger.read(lambda tx: deployments.objects(tx, self.id)).result()

    @property
    def held(self) -> list[str]:
        """Clusters for which something is held."""

        def read(tx: Transaction) -> list[str]:
            consumers = {each: consumer_uuid(self.id, "app", each) for each in (EAST, WEST)}
            return [each for each, uuid in consumers.items() if claims.of_consumer(tx, uuid)]

        return self.ledger.read(read).result()


def a_provider(tx: Transaction) -> str:
    """With more than anybody here needs; its uuid."""
    uuid_ = str(uuid.uuid4())
    provider = providers.create(tx, "node", uuid_, None)
    inventories.add(tx, provider, "VCPU", Inventory(total=8, max_unit=8))
    return uuid_


def left(one: OutboxObject) -> OutboxObject:
    return msgspec.structs.replace(one, state=leaving(one.state))


def updated(one: OutboxObject) -> OutboxObject:
    match one.cluster, one.key.name:
        case "p+west", "web":
            return msgspec.structs.replace(one, state=ObjectState.REPLACING)
        case "p+east", "web":
            manifest = {**one.manifest, "spec": {"replicas": 2}}
            return msgspec.structs.replace(one, state=ObjectState.APPLYING, manifest=manifest)
        case "p+east", _:
            return msgspec.structs.replace(one, state=ObjectState.DELETING)
    return one


def wanted(cluster: str, position: int, kind: str, name: str) -> OutboxObject:
    version = "apps/v1" if kind == "Deployment" else "v1"
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    key = ObjectKey.of(manifest, "default")
    return OutboxObject(cluster=cluster, app="app", position=position, key=key, manifest=manifest)


@pytest.fixture
def world(ledger: Ledger) -> World:
    return World(ledger)


async def test_objects_arrive_in_order_and_are_followed(world: World) -> None:
    world.instantiate()
    await world.run_until(lambda: bool(world.followed))
    assert world.state is DeploymentState.INSTANTIATED
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == ["cm", "web"]
    assert world.called("apply", EAST) == ["cm", "web"]
    assert all(each.state is ObjectState.APPLIED and each.uid for each in world.objects)
    assert world.held == [EAST, WEST]


async def test_readiness_is_recorded(world: World) -> None:
    world.instantiate()
    await world.run_until(lambda: all(each.readiness is not None for each in world.objects))
    assert all(each.readiness and each.readiness.is_ready for each in world.objects)


async def test_terminate_leaves_nothing(world: World) -> None:
    world.instantiate()
    await world.run_to(DeploymentState.INSTANTIATED)
    world.terminate()
    await world.run_to(DeploymentState.TERMINATED)
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == []
    assert world.called("remove", EAST)[:2] == ["web", "cm"]
    assert world.held == []


async def test_charges_stay_while_pods_are_there(world: World) -> None:
    world.instantiate()
    await world.run_to(DeploymentState.INSTANTIATED)
    pod = DeployedPod(namespace="default", name="web-1", app="app", phase="Running", node="n1")
    world.clusters.lingering[EAST] = [pod]
    world.terminate()
    await world.run_until(lambda: world.held == [EAST])
    assert world.state is DeploymentState.TERMINATING
    world.clusters.lingering.clear()
    await world.run_to(DeploymentState.TERMINATED)
    assert world.held == []


async def test_an_object_that_is_never_taken_takes_all_others_away(world: World) -> None:
    world.clusters.refused["web"] = ObjectRefused("no such field", is_final=True)
    world.instantiate()
    await world.run_until(lambda: world.held == [])
    assert world.state is DeploymentState.INSTANTIATE_FAILED
    assert "Deployment web: no such field" in world.reason
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == []


async def test_an_object_that_is_taken_later_is_waited_for(world: World) -> None:
    world.clusters.refused["web"] = ObjectRefused("the webhook is not there yet")
    world.instantiate()
    await world.run_until(lambda: any(each.message for each in world.objects))
    assert world.state is DeploymentState.INSTANTIATING
    world.clusters.refused.clear()
    await world.run_to(DeploymentState.INSTANTIATED)
    assert not any(each.message for each in world.objects)


async def test_an_object_of_others_is_left_alone(world: World) -> None:
    theirs = ObjectKey("v1", "ConfigMap", "default", "cm").text
    world.clusters.objects[EAST][theirs] = ("uid-x", "another", {})
    world.instantiate()
    await world.run_until(lambda: world.held == [])
    assert world.state is DeploymentState.INSTANTIATE_FAILED
    assert world.clusters.objects[EAST] == {theirs: ("uid-x", "another", {})}


async def test_a_cluster_that_comes_back_in_time_is_served(world: World) -> None:
    world.clusters.away.add(WEST)
    world.instantiate()
    await world.run_until(lambda: len(world.clusters.names(EAST)) == 2)
    assert world.state is DeploymentState.INSTANTIATING
    world.clusters.away.clear()
    await world.run_to(DeploymentState.INSTANTIATED)
    assert world.clusters.names(WEST) == ["cm", "web"]


async def test_a_cluster_that_stays_away_costs_the_deployment_when_its_time_is_over(
    world: World,
) -> None:
    world.clusters.away.add(WEST)
    world.instantiate(seconds=-1)
    await world.run_until(lambda: world.held == [])
    assert world.state is DeploymentState.INSTANTIATE_FAILED
    assert f"{WEST} does not answer" in world.reason
    assert world.clusters.names(EAST) == []


async def test_what_may_have_arrived_is_held_until_it_is_known_to_be_gone(world: World) -> None:
    """It goes away when objects were on their way to it."""

    def cut(call: Call) -> None:
        if call[:2] == ("apply", WEST):
            world.clusters.away.add(WEST)

    world.clusters.after = cut
    world.clusters.refused["web"] = ObjectRefused("not yet")
    world.instantiate(seconds=-1)
    await world.run_until(lambda: world.held == [WEST])
    assert world.state is DeploymentState.INSTANTIATE_FAILED
    assert world.clusters.names(EAST) == []
    assert world.clusters.names(WEST) == ["cm"]
    world.clusters.away.clear()
    await world.run_until(lambda: world.held == [])
    assert world.clusters.names(WEST) == []


async def test_a_cluster_that_never_heard_of_it_holds_up_nothing(world: World) -> None:
    """It goes before anything was sent: there is nobody to ask."""
    world.instantiate(seconds=-1)
    world.clusters.away |= {EAST, WEST}
    state = world.ledger.write(lambda tx: settle(tx, found(tx, world.id))).result()
    assert state is DeploymentState.INSTANTIATE_FAILED
    assert world.held == []


def found(tx: Transaction, id_: str) -> DeploymentRecord:
    record = deployments.find(tx, id_)
    assert record is not None
    return record


async def test_a_cluster_that_is_registered_no_more_is_let_go(world: World) -> None:
    world.instantiate()
    await world.run_to(DeploymentState.INSTANTIATED)
    world.terminate()
    del world.clusters.objects[WEST]
    await world.run_to(DeploymentState.TERMINATED)
    assert world.held == []


class Killer:
    """Kills the worker at its n-th call, before or after it is done."""

    def __init__(self, world: World, at: int, *, after: bool) -> None:
        self._world, self._left = world, at
        setattr(world.clusters, "after" if after else "before", self)

    def __call__(self, _: Call) -> None:
        self._left -= 1
        if self._left == 0:
            self._world.outbox.is_dead = True
        if self._world.outbox.is_dead:
            raise Crash


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 7))
async def test_killed_while_applying(world: World, at: int, after: bool) -> None:
    world.instantiate()
    Killer(world, at, after=after)
    await world.run_to(DeploymentState.INSTANTIATED)
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == ["cm", "web"]
    there = {
        (cluster, uid)
        for cluster, all_ in world.clusters.objects.items()
        for uid, _, _ in all_.values()
    }
    assert {(each.cluster, each.uid) for each in world.objects} == there


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 7))
async def test_killed_while_removing(world: World, at: int, after: bool) -> None:
    world.instantiate()
    await world.run_to(DeploymentState.INSTANTIATED)
    world.terminate()
    Killer(world, at, after=after)
    await world.run_to(DeploymentState.TERMINATED)
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == []
    assert world.held == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 6))
async def test_killed_while_updating(world: World, at: int, after: bool) -> None:
    """One object is replaced, one leaves, one is changed, one stays."""
    world.instantiate()
    await world.run_to(DeploymentState.INSTANTIATED)
    before = {each.place: each.uid for each in world.objects}
    world.update()
    Killer(world, at, after=after)
    await world.run_to(DeploymentState.INSTANTIATED)
    assert world.clusters.names(EAST) == ["web"]
    assert world.clusters.names(WEST) == ["cm", "web"]
    uids = {each.place: each.uid for each in world.objects}
    assert uids[WEST, "app", 0] != before[WEST, "app", 0]
    assert uids[WEST, "app", 1] == before[WEST, "app", 1]
    assert uids[EAST, "app", 0] == before[EAST, "app", 0]
    changed = world.clusters.objects[EAST][
        ObjectKey("apps/v1", "Deployment", "default", "web").text
    ]
    assert changed[2]["spec"] == {"replicas": 2}
    assert world.held == [EAST, WEST]


@pytest.mark.parametrize("at", range(1, 5))
async def test_terminated_while_applying(world: World, at: int) -> None:
    """Whoever asks for the end while objects are on their way gets it; nothing stays."""
    world.instantiate()
    calls = 0

    def terminate(_: Call) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            world.terminate()

    world.clusters.after = terminate
    await world.run_to(DeploymentState.TERMINATED)
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == []
    assert world.held == []


async def test_two_workers_at_once_do_no_harm(world: World) -> None:
    world.instantiate()
    await asyncio.gather(*(world.run_to(DeploymentState.INSTANTIATED) for _ in range(2)))
    world.terminate()
    await asyncio.gather(*(world.run_to(DeploymentState.TERMINATED) for _ in range(2)))
    assert world.clusters.names(EAST) == world.clusters.names(WEST) == []
    assert world.held == []
