"""What users ask of deployments: states, claims and outbox change together or not at all."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.core.claim import Claim
from dovetail.core.errors import CapacityExceeded, InUse, NotFound
from dovetail.intents.deployment import (
    AppOnCluster,
    DeploymentRecord,
    DeploymentState,
    ObjectKey,
    ObjectState,
    OutboxObject,
    PlannedWorkload,
)
from dovetail.ledger import Ledger, Transaction, claims
from dovetail.ledger.intents import clusters, deployments, objects
from dovetail.ledger.intents.clusters import ClusterSource, SeenCluster
from dovetail.ledger.intents.node_names import consumer_uuid, root_uuid
from dovetail.service.intents.deploying import transitions
from dovetail.service.intents.deploying.transitions import (
    DeployedClusterHook,
    GroupHook,
    PlannedDeployment,
    merged,
)
from dovetail.service.intents.ports import KeptObject, WrongState
from tests.support.intents import seen

GROUP = "projects/p/composite-apps/c/v1/deployment-intent-groups/g"
EAST, WEST = "p+east", "p+west"
NODE = "n1"
ROOM = 2
S = DeploymentState


@pytest.fixture
def run(ledger: Ledger) -> Callable[[Callable[[Transaction], Any]], Any]:
    """Transactions on a ledger with a group, and two clusters that have room for two."""

    def made(tx: Transaction) -> None:
        objects.add(tx, GROUP, None, "deployment-intent-group", "{}")
        for cluster in (EAST, WEST):
            clusters.register(tx, cluster, ClusterSource.SNAPSHOT)
            nodes = (seen.seen(seen.node(NODE, cpu=str(ROOM))),)
            clusters.enter_snapshot(tx, cluster, SeenCluster(nodes=nodes))

    ledger.write(made).result()
    return lambda operation: ledger.write(operation).result()


Run = Callable[[Callable[[Transaction], Any]], Any]


def wanted(cluster: str, name: str = "web", **more: Any) -> OutboxObject:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    key = ObjectKey.of(manifest, "default")
    fields = {"position": 0, "manifest": manifest, **more}
    return OutboxObject(cluster=cluster, app="app", key=key, **fields)


def planned(record: DeploymentRecord, *wanted_objects: OutboxObject) -> PlannedDeployment:
    pods = PlannedWorkload(
        kind="Pod", name="web", count=1, amounts={"cpu": 1000, "pods": 1}, nodes={NODE: 1}
    )
    names = sorted({each.cluster for each in wanted_objects})
    return PlannedDeployment(
        id=record.id,
        namespace="default",
        placements=tuple(
            AppOnCluster(app="app", cluster=each, workloads=(pods,)) for each in names
        ),
        objects=wanted_objects,
        apply_seconds=60,
    )


def instantiate(run: Run, *wanted_objects: OutboxObject) -> DeploymentRecord:
    def operation(tx: Transaction) -> DeploymentRecord:
        record = transitions.to_instantiate(tx, GROUP)
        return transitions.instantiate(tx, record, planned(record, *wanted_objects))

    return run(operation)  # type: ignore[no-any-return]


def update(run: Run, *wanted_objects: OutboxObject) -> DeploymentRecord:
    def operation(tx: Transaction) -> DeploymentRecord:
        record = transitions.to_update(tx, GROUP)
        return transitions.update(tx, record, planned(record, *wanted_objects))

    return run(operation)  # type: ignore[no-any-return]


def held(run: Run, record: DeploymentRecord) -> list[str]:
    def read(tx: Transaction) -> list[str]:
        return [
            each
            for each in (EAST, WEST)
            if claims.of_consumer(tx, consumer_uuid(record.id, "app", each))
        ]

    return run(read)  # type: ignore[no-any-return]


def sent(run: Run, record: DeploymentRecord) -> dict[tuple[str, str], ObjectState]:
    found = run(lambda tx: deployments.objects(tx, record.id))
    return {(each.cluster, each.key.name): each.state for each in found}


def approved(run: Run) -> DeploymentRecord:
    return run(lambda tx: transitions.approve(tx, GROUP))  # type: ignore[no-any-return]


def test_nothing_is_instantiated_before_it_is_approved(run: Run) -> None:
    with pytest.raises(WrongState, match="the group is Created"):
        instantiate(run, wanted(EAST))


def test_approving_twice_is_approving_once(run: Run) -> None:
    assert approved(run) == approved(run)


def test_a_group_that_is_not_there_is_not_approved(run: Run) -> None:
    with pytest.raises(NotFound):
        run(lambda tx: transitions.approve(tx, "projects/p/nothing"))


def test_instantiate_claims_and_puts_into_the_outbox(run: Run) -> None:
    before = approved(run)
    record = instantiate(run, wanted(EAST), wanted(WEST))
    assert (record.id, record.state) == (before.id, S.INSTANTIATING)
    assert held(run, record) == [EAST, WEST]
    assert sent(run, record) == {
        (EAST, "web"): ObjectState.PENDING,
        (WEST, "web"): ObjectState.PENDING,
    }
    assert [each.state for each in record.document.history] == [
        S.CREATED,
        S.APPROVED,
        S.INSTANTIATING,
    ]
    with pytest.raises(WrongState, match="the group is Instantiating"):
        instantiate(run, wanted(EAST))


def test_a_claim_that_is_refused_leaves_the_group_as_it_was(run: Run) -> None:
    record = approved(run)
    taken = {root_uuid(EAST, NODE): {"CUSTOM_MILLICPU": ROOM * 1000}}
    full = Claim(consumer=str(uuid.uuid4()), project="p", user="u", allocations=taken)
    run(lambda tx: claims.replace(tx, [full]))
    with pytest.raises(CapacityExceeded):
        instantiate(run, wanted(EAST))
    assert run(lambda tx: deployments.current(tx, GROUP)) == record
    assert sent(run, record) == {}


def test_what_is_only_known_by_snapshots_is_instantiated_at_once_and_gone_at_once(
    run: Run,
) -> None:
    approved(run)
    record = instantiate(run, wanted(EAST, state=ObjectState.SKIPPED))
    assert record.state is S.INSTANTIATED
    assert held(run, record) == [EAST]
    ended = run(lambda tx: transitions.terminate(tx, GROUP))
    assert ended.state is S.TERMINATED
    assert held(run, record) == []


def test_another_instantiate_is_another_deployment(run: Run) -> None:
    approved(run)
    first = instantiate(run, wanted(EAST, state=ObjectState.SKIPPED))
    run(lambda tx: transitions.terminate(tx, GROUP))
    second = instantiate(run, wanted(EAST, state=ObjectState.SKIPPED))
    assert second.id != first.id
    assert second.revision == first.revision + 1
    assert run(lambda tx: deployments.find(tx, first.id)) is None
    assert [each.state for each in second.document.history][:4] == [
        S.CREATED,
        S.APPROVED,
        S.INSTANTIATING,
        S.INSTANTIATED,
    ]


def test_stopping_gives_everything_back(run: Run) -> None:
    approved(run)
    record = instantiate(run, wanted(EAST))
    stopped = run(lambda tx: transitions.stop(tx, GROUP))
    assert stopped.state is S.INSTANTIATE_FAILED
    assert stopped.document.reason == transitions.STOPPED
    assert held(run, record) == []


def test_a_claim_of_which_nothing_is_sent_expires(run: Run) -> None:
    approved(run)
    record = instantiate(run, wanted(EAST))
    assert run(lambda tx: transitions.expire(tx, 3600)) == 0
    assert held(run, record) == [EAST]
    assert run(lambda tx: transitions.expire(tx, -1)) == 1
    assert held(run, record) == []
    assert run(lambda tx: deployments.current(tx, GROUP)).state is S.INSTANTIATE_FAILED


def test_a_claim_of_which_something_may_be_there_does_not_expire(run: Run) -> None:
    approved(run)
    record = instantiate(run, wanted(EAST), wanted(WEST))
    marked = wanted(EAST, state=ObjectState.APPLYING)
    run(lambda tx: deployments.put_objects(tx, record.id, [marked]))
    assert run(lambda tx: transitions.expire(tx, -1)) == 0


def test_a_group_in_use_is_not_dropped(run: Run) -> None:
    hook = GroupHook()
    approved(run)
    instantiate(run, wanted(EAST))
    with pytest.raises(InUse, match="Instantiating"):
        run(lambda tx: hook.dropping(tx, GROUP))
    run(lambda tx: transitions.stop(tx, GROUP))
    run(lambda tx: hook.dropping(tx, GROUP))
    assert run(lambda tx: deployments.current(tx, GROUP)) is None


# -- update ----------------------------------------------------------------------------------------


def test_update_leaves_one_cluster_for_another(run: Run) -> None:
    """What is held on the one that is left stays until its objects are gone."""
    approved(run)
    record = instantiate(run, wanted(EAST))
    there = wanted(EAST, state=ObjectState.APPLIED, uid="uid-1")

    def applied(tx: Transaction) -> None:
        deployments.put_objects(tx, record.id, [there])
        transitions.settled(tx, record)

    run(applied)
    changed = update(run, wanted(WEST))
    assert changed.state is S.UPDATING
    assert changed.revision == record.revision + 1
    assert sent(run, record) == {
        (EAST, "web"): ObjectState.DELETING,
        (WEST, "web"): ObjectState.PENDING,
    }
    assert held(run, record) == [EAST, WEST]


def test_update_gives_back_at_once_what_was_only_a_snapshot(run: Run) -> None:
    approved(run)
    record = instantiate(run, wanted(EAST, state=ObjectState.SKIPPED))
    changed = update(run, wanted(WEST, state=ObjectState.SKIPPED))
    assert changed.state is S.INSTANTIATED
    assert held(run, record) == [WEST]


def test_what_stays_the_same_is_not_sent_again() -> None:
    old = wanted(EAST, state=ObjectState.APPLIED, uid="uid-1")
    (found,) = merged([old], [wanted(EAST)])
    assert found == old


def test_what_changed_is_sent_under_the_same_uid() -> None:
    old = wanted(EAST, state=ObjectState.APPLIED, uid="uid-1")
    (found,) = merged([old], [wanted(EAST, manifest={**old.manifest, "data": {"a": "1"}})])
    assert (found.state, found.uid) == (ObjectState.APPLYING, "uid-1")
    assert found.manifest["data"] == {"a": "1"}


def test_what_has_to_be_made_anew_is_replaced() -> None:
    old = wanted(EAST, state=ObjectState.APPLIED, uid="uid-1")
    new = wanted(EAST, manifest={**old.manifest, "a": 1}, state=ObjectState.REPLACING)
    (found,) = merged([old], [new])
    assert (found.state, found.uid) == (ObjectState.REPLACING, "uid-1")


def test_what_is_no_more_wanted_leaves_and_keeps_a_place_of_its_own() -> None:
    old = [
        wanted(EAST, "a", state=ObjectState.APPLIED, uid="uid-1"),
        wanted(EAST, "b", state=ObjectState.APPLIED, uid="uid-2", position=1),
        wanted(EAST, "c", position=2),
    ]
    found = merged(old, [wanted(EAST, "b")])
    states = {each.key.name: each.state for each in found}
    assert states == {"b": ObjectState.APPLIED, "a": ObjectState.DELETING}
    assert len({each.place for each in found}) == 2


def test_one_that_was_leaving_is_wanted_again() -> None:
    old = wanted(EAST, state=ObjectState.DELETING, uid="uid-1")
    (found,) = merged([old], [wanted(EAST)])
    assert found.state is ObjectState.APPLYING
    assert replace(found, state=old.state) == old


# -- clusters --------------------------------------------------------------------------------------


class Dropped:
    """A hook that remembers."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        """Nothing is kept here."""

    def dropping(self, tx: Transaction, path: str) -> None:
        self.paths.append(path)


def test_a_cluster_stays_while_groups_are_deployed_there(run: Run) -> None:
    inner = Dropped()
    hook = DeployedClusterHook(inner)
    approved(run)
    record = instantiate(run, wanted(EAST))
    path = "cluster-providers/p/clusters/east"
    with pytest.raises(InUse, match=GROUP):
        run(lambda tx: hook.dropping(tx, path))
    run(lambda tx: hook.dropping(tx, "cluster-providers/p/clusters/west"))
    there = wanted(EAST, state=ObjectState.APPLIED, uid="uid-1")
    run(lambda tx: deployments.put_objects(tx, record.id, [there]))
    run(lambda tx: transitions.terminate(tx, GROUP))
    run(lambda tx: hook.dropping(tx, path))
    assert inner.paths == ["cluster-providers/p/clusters/west", path]
