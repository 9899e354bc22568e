"""EMCO's action controllers: they edit objects for chosen clusters; these are then deployed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import yaml

from dovetail.core.errors import Malformed
from dovetail.intents.controllers import ControllerCall, controller_spec, roster_of
from dovetail.intents.group import ManifestObject
from dovetail.service.intents.controllers.cluster_events import publish
from dovetail.service.intents.controllers.contracts.emco import ClusterEventType, EventType
from dovetail.service.intents.controllers.emco_actions import (
    ActionsRefused,
    EmcoActions,
    PlacedObjects,
)
from dovetail.service.intents.controllers.translation import BadAnswer
from dovetail.wire.client import EndpointError, GrpcEndpoint
from tests.service.intents.controllers.emco_side import (
    CONTRACTS,
    ActionController,
    Context,
    Store,
)
from tests.service.intents.controllers.protos import server
from tests.support.intents.scenario import ANALYTICS, C1, C3, FWALL, base
from tests.support.processes import reserved_port

GROUP = base().group
PLACED: PlacedObjects = {
    FWALL: {C1: GROUP.apps[0].objects, C3: GROUP.apps[0].objects},
    ANALYTICS: {C3: GROUP.apps[1].objects},
}


def actions(port: int) -> EmcoActions:
    return EmcoActions(GrpcEndpoint(host="127.0.0.1", port=port), None)


def called(port: int, name: str = "ac", **spec: Any) -> ControllerCall:
    given = {"host": "127.0.0.1", "port": port, "type": "action", **spec}
    (found,) = roster_of([{name: f"{name}-intent"}], {name: controller_spec(name, given)}).actions
    return found


class Editing(ActionController):
    """Puts an annotation on the objects of fwall on one cluster, and adds one of its own."""

    mark = "first"

    async def update(self, context: Context, intent: str) -> None:
        name = "core-fwall+StatefulSet"
        manifest = yaml.safe_load(await context.resource(FWALL, C1, name))
        marks = manifest["metadata"].setdefault("annotations", {})
        marks["by"] = f"{marks.get('by', '')}{self.mark}:{intent} "
        await context.put_resource(FWALL, C1, name, yaml.safe_dump(manifest))
        policy = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": self.mark},
        }
        await context.put_resource(FWALL, C1, f"{self.mark}+NetworkPolicy", yaml.safe_dump(policy))


class Marking(Editing):
    mark = "second"


async def test_they_edit_one_after_the_other(etcd_port: int) -> None:
    store = Store(etcd_port)
    async with Editing(store).serving() as one, Marking(store).serving() as two:
        calls = [called(one, "one"), called(two, "two")]
        acted = await actions(etcd_port).update(GROUP, PLACED, calls)
        assert (await Context(store, acted.context).load())["DeploymentIntentGroup"] == "my-dig1"
        await actions(etcd_port).remove(acted.context)
    assert not await store.all("/context/")
    assert not acted.failures
    edited = acted.placed[FWALL][C1]
    before = GROUP.apps[0].objects
    assert names_of(edited) == [*names_of(before), "first", "second"]
    (core,) = (each for each in edited if each["kind"] == "StatefulSet")
    assert core["metadata"]["annotations"]["by"] == "first:one-intent second:two-intent "
    assert [each for each in edited[: len(before)] if each is not core] == [
        each for each in before if each["kind"] != "StatefulSet"
    ]
    assert acted.placed[FWALL][C3] == before
    assert acted.placed[ANALYTICS][C3] == GROUP.apps[1].objects


def names_of(objects: Any) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


async def test_an_object_that_it_deletes_is_not_deployed_and_one_beside_the_layout_stays(
    etcd_port: int,
) -> None:
    """The layout has a name and a kind, and no namespace."""

    class Deleting(ActionController):
        async def update(self, context: Context, intent: str) -> None:
            at = f"{context.root}app/{FWALL}/cluster/{C1}/resource/a+ConfigMap/"
            await self.store.delete_all(at)

    def made(name: str, namespace: str) -> ManifestObject:
        meta = {"name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}

    objects = (made("a", "x"), made("b", "x"), made("b", "y"))
    async with Deleting(Store(etcd_port)).serving() as port:
        acted = await actions(etcd_port).update(GROUP, {FWALL: {C1: objects}}, [called(port)])
        await actions(etcd_port).remove(acted.context)
    assert acted.placed[FWALL][C1] == objects[1:]


async def test_a_context_has_a_lease_until_it_is_kept(etcd_port: int) -> None:
    """Should the deployment never be recorded, nothing is left of it."""
    store = Store(etcd_port)
    acted = await actions(etcd_port).update(GROUP, PLACED, [])
    before = await store.all("/context/")
    assert 0 not in await store.leases("/context/")
    for _ in range(2):
        await actions(etcd_port).keep(acted.context)
        assert await store.leases("/context/") == {0}
        assert await store.all("/context/") == before
    await actions(etcd_port).remove(acted.context)


async def test_one_that_says_no_is_told_and_nothing_is_left(etcd_port: int) -> None:
    class Refusing(ActionController):
        async def update(self, context: Context, intent: str) -> None:
            raise ValueError(f"no intent {intent}")

    store = Store(etcd_port)
    async with Refusing(store).serving() as port:
        with pytest.raises(ActionsRefused) as refused:
            await actions(etcd_port).update(GROUP, PLACED, [called(port)])
        ignored = called(port, onFailure="ignore")
        acted = await actions(etcd_port).update(GROUP, PLACED, [ignored])
        await actions(etcd_port).remove(acted.context)
    assert str(refused.value) == (
        "controller ac (deadline 10 s): no intent ac-intent; nothing is deployed without it"
    )
    assert [each.is_refusal for each in acted.failures] == [False]
    assert not await store.all("/context/")


async def test_one_that_hangs_is_left_in_time(etcd_port: int) -> None:
    class Hanging(ActionController):
        async def update(self, context: Context, intent: str) -> None:
            await asyncio.sleep(60)

    store = Store(etcd_port)
    async with Hanging(store).serving() as port:
        with pytest.raises(ActionsRefused, match=r"\(deadline 0.3 s\): it did not answer in time"):
            await actions(etcd_port).update(GROUP, PLACED, [called(port, deadline=0.3)])
    assert not await store.all("/context/")


@pytest.mark.parametrize(
    ("key", "value", "error", "words"),
    [
        (f"app/{FWALL}/cluster/p1+c4/", "p1+c4", BadAnswer, r"where p1\+c1, p1\+c3 was chosen"),
        ("app/moon/", "moon", BadAnswer, "app 'moon', which is not in the group"),
        (f"app/{FWALL}/cluster/{C1}/resource/x+Y/", 7, BadAnswer, r"x\+Y what is no text"),
        (f"app/{FWALL}/cluster/{C1}/resource/x+Y/", "", BadAnswer, r"0 objects at .*x\+Y"),
        (f"app/{FWALL}/cluster/{C1}/resource/x+Y/", "a: [", Malformed, r"x\+Y"),
        (f"app/{FWALL}/cluster/{C1}/resource/x+Y/", "a: &a [*a, *a]", Malformed, r"x\+Y"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    etcd_port: int, key: str, value: object, error: type[Exception], words: str
) -> None:
    class Inventing(ActionController):
        async def update(self, context: Context, intent: str) -> None:
            await self.store.put(f"{context.root}{key}", value)

    store = Store(etcd_port)
    async with Inventing(store).serving() as port:
        with pytest.raises(error, match=words):
            await actions(etcd_port).update(GROUP, PLACED, [called(port)])
    assert not await store.all("/context/")


async def test_they_are_told_what_becomes_of_it(etcd_port: int) -> None:
    editing = Editing(Store(etcd_port))
    async with editing.serving() as port:
        calls = [called(port)]
        acted = await actions(etcd_port).update(GROUP, PLACED, calls, update_from="17")
        told = [
            await actions(etcd_port).post_event(acted.context, EventType.INSTANTIATE, calls),
            await actions(etcd_port).terminate(acted.context, calls),
            await actions(etcd_port).post_event(acted.context, EventType.TERMINATE, calls),
        ]
        await actions(etcd_port).remove(acted.context)
    assert told == [(), (), ()]
    update, instantiated, terminating, terminated = editing.calls
    assert (update.intent_name, update.update_from_appContext) == ("ac-intent", "17")
    assert {each.app_context for each in editing.calls} == {acted.context}
    assert (instantiated.event_type, terminated.event_type) == (0, 1)
    assert terminating.DESCRIPTOR.name == "TerminateRequest"


async def test_whom_an_event_does_not_reach_is_told() -> None:
    async with server({}) as port:
        (failure,) = await actions(1).post_event("1", EventType.UPDATE, [called(port)])
        (ending,) = await actions(1).terminate("1", [called(port)])
    assert failure.token == ending.token == "failed"
    assert "UNIMPLEMENTED" in failure.words


async def test_without_etcd_nobody_is_called() -> None:
    with reserved_port() as nobody, pytest.raises(EndpointError, match="LeaseGrant"):
        await actions(nobody).update(GROUP, PLACED, [called(1)])


async def test_clm_controllers_are_told_of_clusters() -> None:
    heard = []

    async def hear(data: bytes) -> bytes:
        heard.append(CONTRACTS["ClmControllerEventRequest"].FromString(data))
        status = heard[-1].clusterName != "bad"
        said: bytes = CONTRACTS["ClmControllerEventResponse"](
            status=status, message="" if status else "cannot read its labels"
        ).SerializeToString()
        return said

    async with server({"/ClmControllerEventChannel/Publish": hear}) as port:
        with reserved_port() as nobody:
            registered = {
                name: controller_spec(name, {"host": "127.0.0.1", "port": each})
                for name, each in {"hpa-plc": port, "gone": nobody}.items()
            }
            failed = await publish(registered, "p1+c1", ClusterEventType.DELETED)
            refused = await publish(
                {"hpa-plc": registered["hpa-plc"]}, "p1+bad", ClusterEventType.CREATED
            )
    assert list(failed) == ["gone"]
    assert refused == {"hpa-plc": "cannot read its labels"}
    assert [(each.providerName, each.clusterName, each.event) for each in heard] == [
        ("p1", "c1", 2),
        ("p1", "bad", 0),
    ]
