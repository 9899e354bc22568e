"""EMCO's placement controllers: they filter an AppContext in a real etcd, and that is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
import yaml

from dovetail.intents.candidates.partitions import ControllerAnswer, PartitionCandidates
from dovetail.intents.controllers import CallTerms, Roster
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import (
    AppPlacementRule,
    ClusterTerm,
    DeploymentGroup,
    GroupApp,
    PlacementGroup,
)
from dovetail.ledger import Ledger
from dovetail.service.intents.controllers.emco import placement_callers
from dovetail.service.intents.controllers.fan_out import ControllerAnswers, ControllerFanOut
from dovetail.wire.client import GrpcEndpoint
from tests.service.intents.controllers.emco_side import Context, PlacementController, Store
from tests.service.intents.controllers.rig import ENOUGH_SECONDS, Found, call, hpa
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, C4, FWALL, base
from tests.support.processes import reserved_port

SOON = 1.0


class Removing(PlacementController):
    """Takes some clusters away from apps that it knows by name."""

    def __init__(self, store: Store, *clusters: str) -> None:
        super().__init__(store)
        self.clusters = clusters

    async def filter(self, context: Context) -> None:
        await context.load()
        for app in await context.apps():
            for cluster in await context.clusters(app):
                if cluster in self.clusters:
                    await context.delete_cluster(app, cluster)


@contextmanager
def fan_out(ledger: Ledger, etcd_port: int) -> Iterator[ControllerFanOut[Found]]:
    callers = placement_callers(GrpcEndpoint(host="127.0.0.1", port=etcd_port))
    made = ControllerFanOut(ledger, hpa, callers, CallTerms(ENOUGH_SECONDS))
    try:
        yield made
    finally:
        made.close()


async def asked(
    ledger: Ledger,
    etcd_port: int,
    *ports: int,
    deadline: float = ENOUGH_SECONDS,
    group: DeploymentGroup | None = None,
    fleet: FleetSnapshot | None = None,
) -> ControllerAnswers[Found]:
    calls = tuple(
        call(f"emco-{number}", port, contract="emco", deadline=deadline)
        for number, port in enumerate(ports, 1)
    )
    with fan_out(ledger, etcd_port) as controllers:
        return await controllers.answers(
            group or base().group, fleet or base().fleet, Roster(placement=calls)
        )


def allowed(answers: ControllerAnswers[Found], controller: str) -> dict[str, list[str]]:
    answer = answer_by(answers, controller)
    assert isinstance(answer.candidates, PartitionCandidates)
    (candidate,) = answer.candidates.alternatives
    return {
        app: sorted(name for part in each.parts for name in part.clusters.names)
        for app, each in candidate.items()
    }


def answer_by(answers: ControllerAnswers[Found], controller: str) -> ControllerAnswer:
    (found,) = (each for each in answers.answers if each.controller == controller)
    return found


async def test_what_a_controller_leaves_is_its_answer(kept: Ledger, etcd_port: int) -> None:
    store = Store(etcd_port)
    async with Removing(store, C2, C4).serving() as port:
        answers = await asked(kept, etcd_port, port)
    assert not answers.failures
    # Of fwall, the generic placement intent leaves three; of analytics, all.
    assert allowed(answers, "emco-1") == {FWALL: [C1, C3], ANALYTICS: [C1, C3]}
    refusals = answer_by(answers, "emco-1").refusals
    assert {app: set(why) for app, why in refusals.items()} == {FWALL: {C2}, ANALYTICS: {C2, C4}}
    assert refusals[FWALL][C2].words == "removed by emco-1"


async def test_each_has_a_context_of_its_own_and_none_is_left(kept: Ledger, etcd_port: int) -> None:
    store = Store(etcd_port)
    first, second = Removing(store, C1), Removing(store, C2)
    async with first.serving() as one, second.serving() as two:
        answers = await asked(kept, etcd_port, one, two)
    assert allowed(answers, "emco-1")[ANALYTICS] == [C2, C3, C4]
    assert allowed(answers, "emco-2")[ANALYTICS] == [C1, C3, C4]
    contexts = [*first.seen, *second.seen]
    assert len({each.identifier for each in contexts}) == 2
    assert not await store.all("/context/")


async def test_the_context_is_laid_out_as_emcos_controllers_read_it(
    kept: Ledger, etcd_port: int
) -> None:
    group = msgspec.structs.replace(
        base().group, release="r1", logical_cloud="lc1", namespace="ns1"
    )
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
    }
    fwall = msgspec.structs.replace(group.apps[0], objects=(definition, *group.apps[0].objects))
    group = msgspec.structs.replace(group, apps=(fwall, group.apps[1]))

    class Looking(PlacementController):
        async def filter(self, context: Context) -> None:
            self.meta = await context.load()
            self.apps = await context.apps()
            self.groups = {app: await context.group_map(app) for app in self.apps}
            self.order = await context.resource_order(FWALL, C1)
            self.texts = {
                name: await context.resource(FWALL, C1, name)
                for name in [*self.order, "things.example.com+CustomResourceDefinition"]
            }
            self.everything = await self.store.all(context.root)
            self.leases = await self.store.leases(context.root)
            self.root = context.root

    looking = Looking(Store(etcd_port))
    async with looking.serving() as port:
        assert not (await asked(kept, etcd_port, port, group=group)).failures
    assert looking.meta == {
        "Project": "my-proj1",
        "CompositeApp": "my-capp1",
        "Version": "v1.0",
        "Release": "r1",
        "DeploymentIntentGroup": "my-dig1",
        "Namespace": "ns1",
        "Level": "1",
        "ChildContextIDs": None,
        "LogicalCloud": "lc1",
        "LogicalCloudNamespace": "",
    }
    assert looking.apps == [FWALL, ANALYTICS]
    assert looking.groups == {
        FWALL: {"1": [C1, C2, C3]},
        ANALYTICS: {"1": [C1, C2, C3, C4]},
    }
    names = [f"{each['metadata']['name']}+{each['kind']}" for each in group.apps[0].objects[1:]]
    assert looking.order == names
    read = {name: yaml.safe_load(text) for name, text in looking.texts.items()}
    assert read == dict(
        zip(
            ["things.example.com+CustomResourceDefinition", *names],
            group.apps[0].objects,
            strict=True,
        )
    )
    at = f"{looking.root}app/{FWALL}/cluster/{C1}/"
    assert looking.everything[at] == C1
    assert looking.everything[f"{at}resource/instruction/dependency/"] == (
        '{"resdependency":{"crd-install":["things.example.com+CustomResourceDefinition"]}}'
    )
    assert looking.everything[f"{looking.root}app/instruction/dependency/"] == (
        '{"fwall":"go","analytics":"go"}'
    )
    assert 0 not in looking.leases, "should we die, it goes by itself"


async def test_clusters_of_all_of_have_numbers_of_their_own(kept: Ledger, etcd_port: int) -> None:
    def term(cluster: str) -> ClusterTerm:
        return ClusterTerm(provider="p1", cluster=cluster)

    rule = AppPlacementRule(
        app=FWALL,
        groups=(
            PlacementGroup(terms=(term("c2"),), count=None),
            PlacementGroup(terms=(term("c1"),), count=None),
            PlacementGroup(terms=(term("c3"), term("c4"), term("gone"))),
        ),
    )

    class Looking(PlacementController):
        async def filter(self, context: Context) -> None:
            self.groups = await context.group_map(FWALL)

    looking = Looking(Store(etcd_port))
    group = msgspec.structs.replace(base().group, placement=(rule,))
    async with looking.serving() as port:
        await asked(kept, etcd_port, port, group=group)
    assert looking.groups == {"1": [C1], "2": [C2], "3": [C3, C4]}


async def test_a_controller_that_says_no_says_why(kept: Ledger, etcd_port: int) -> None:
    class Refusing(PlacementController):
        async def filter(self, context: Context) -> None:
            raise ValueError("None of the clusters match")

    async with Refusing(Store(etcd_port)).serving() as port:
        answers = await asked(kept, etcd_port, port)
    (failure,) = answers.refusals
    assert failure.token == "failed"
    assert "None of the clusters match" in failure.words


async def test_one_that_removes_every_cluster_leaves_an_empty_list(
    kept: Ledger, etcd_port: int
) -> None:
    async with Removing(Store(etcd_port), C1, C2, C3, C4).serving() as port:
        answers = await asked(kept, etcd_port, port)
    assert allowed(answers, "emco-1") == {FWALL: [], ANALYTICS: []}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            f"app/{FWALL}/cluster/p1+moon/",
            r"its answer has cluster 'p1+moon', which does not exist",
        ),
        ("app/moon/", "its answer has app 'moon', which is not in the group"),
    ],
)
async def test_what_nobody_knows_is_refused(
    kept: Ledger, etcd_port: int, key: str, words: str
) -> None:
    class Inventing(PlacementController):
        async def filter(self, context: Context) -> None:
            await self.store.put(f"{context.root}{key}", "moon")

    async with Inventing(Store(etcd_port)).serving() as port:
        answers = await asked(kept, etcd_port, port)
    (failure,) = answers.refusals
    assert failure.token == "garbage"
    assert words in failure.words


async def test_one_that_hangs_leaves_no_context_behind(kept: Ledger, etcd_port: int) -> None:
    class Hanging(PlacementController):
        async def filter(self, context: Context) -> None:
            await asyncio.sleep(60)

    store = Store(etcd_port)
    async with Hanging(store).serving() as port:
        answers = await asked(kept, etcd_port, port, deadline=SOON)
    (failure,) = answers.refusals
    assert failure.words.startswith("controller emco-1 (deadline 1 s): it did not answer in time")
    assert not await store.all("/context/")


async def test_without_etcd_it_is_told(kept: Ledger) -> None:
    with reserved_port() as nobody, reserved_port() as port:
        answers = await asked(kept, nobody, port)
    (failure,) = answers.refusals
    assert failure.token == "unreachable"
    assert "LeaseGrant" in failure.words


async def test_many_clusters_and_objects_are_written_and_read_in_parts(
    kept: Ledger, etcd_port: int
) -> None:
    """More keys than a page has, and more bytes than a transaction takes."""
    (first, *_) = base().fleet.clusters.values()
    names = [f"p1+c{number:04}" for number in range(1500)]
    fleet = FleetSnapshot(
        clusters={name: msgspec.structs.replace(first, name=name) for name in names}, taken_at=0
    )
    objects = tuple(
        {"kind": "ConfigMap", "metadata": {"name": f"m{size}"}, "data": {"x": "y" * size}}
        for size in (1, 2, 20_000)
    )
    group = DeploymentGroup(name="g", apps=(GroupApp(name=FWALL, objects=objects),))
    async with Removing(Store(etcd_port), names[7], names[1400]).serving() as port:
        answers = await asked(kept, etcd_port, port, group=group, fleet=fleet)
    assert not answers.failures
    left = allowed(answers, "emco-1")[FWALL]
    assert sorted(set(names) - set(left)) == [names[7], names[1400]]
