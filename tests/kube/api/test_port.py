"""What the port promises, of the real API server and of the one in memory alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from dovetail.kube.api.client import connect
from dovetail.kube.api.port import ApiConflict, ApiNotFound, KubeApi
from dovetail.kube.runtime.events import Recorder
from dovetail.podfit.objects import Event, Lease, Node, Pod
from tests.support.kube.cluster import Cluster
from tests.support.kube.memory import MemoryApi

Api = Callable[[], AbstractAsyncContextManager[tuple[KubeApi, str]]]


@pytest.fixture(params=["memory", "cluster"])
def connected(request: pytest.FixtureRequest) -> Api:
    """An API and a namespace of the test's own, within a minute."""
    if request.param == "memory":
        return in_memory
    cluster = request.getfixturevalue("cluster")
    return partial(on_cluster, cluster, request.getfixturevalue("namespace"))


@asynccontextmanager
async def in_memory() -> AsyncIterator[tuple[KubeApi, str]]:
    async with asyncio.timeout(60):
        yield MemoryApi(), "here"


@asynccontextmanager
async def on_cluster(cluster: Cluster, namespace: str) -> AsyncIterator[tuple[KubeApi, str]]:
    async with asyncio.timeout(60), connect(str(cluster.kubeconfig), agent="dovetail-test") as api:
        yield api, namespace


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "containers": [{"name": "main", "image": "any"}],
            "terminationGracePeriodSeconds": 30,
        },
    }


def lease(name: str, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


async def seen(
    api: KubeApi, kind: type[Any], version: str, count: int, **where: str
) -> list[tuple[str, Any]]:
    """The first so many changes since a version, by type."""
    found = []
    async with aclosing(api.watch(kind, version, **where)) as changes:
        async for each in changes:
            if each.object is not None:
                assert each.version == each.object.metadata.resource_version
                found.append((each.type, each.object))
            if len(found) == count:
                break
    return found


async def test_what_was_created_can_be_got_listed_and_deleted(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Lease, lease("one", "me"), namespace=space)
        with pytest.raises(ApiConflict) as refused:
            await api.create(Lease, lease("one", "me"), namespace=space)
        assert refused.value.reason == "AlreadyExists"
        got = await api.get(Lease, "one", space)
        assert got.spec.holder_identity == "me"
        assert got.key == f"{space}/one"
        assert got.metadata.uid
        listing = await api.list(Lease, namespace=space)
        assert listing.items == [got]
        assert int(listing.resource_version) >= int(got.metadata.resource_version)
        await api.delete(Lease, "one", space)
        await api.delete(Lease, "one", space)
        with pytest.raises(ApiNotFound):
            await api.get(Lease, "one", space)
        with pytest.raises(ApiNotFound):
            await api.merge(Lease, "one", {"spec": {}}, namespace=space)


async def test_a_name_is_made_where_only_its_beginning_is_given(connected: Api) -> None:
    async with connected() as (api, space):
        body = {"metadata": {"generateName": "some-"}, "spec": {}}
        await api.create(Lease, body, namespace=space)
        await api.create(Lease, body, namespace=space)
        names = {each.metadata.name for each in (await api.list(Lease, namespace=space)).items}
        assert len(names) == 2
        assert all(name.startswith("some-") for name in names)


async def test_writing_over_what_was_not_read_is_a_conflict(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Lease, lease("one", "me"), namespace=space)
        old = (await api.get(Lease, "one", space)).metadata.resource_version
        meta = {"name": "one", "namespace": space, "resourceVersion": old}
        body = {"metadata": meta, "spec": {"holderIdentity": "you"}}
        new = await api.replace(Lease, body)
        assert new.spec.holder_identity == "you"
        with pytest.raises(ApiConflict):
            await api.replace(Lease, body)
        patch = {"metadata": {"resourceVersion": old}, "spec": {"holderIdentity": "they"}}
        with pytest.raises(ApiConflict):
            await api.merge(Lease, "one", patch, namespace=space)
        patch["metadata"] = {"resourceVersion": new.metadata.resource_version}
        assert (
            await api.merge(Lease, "one", patch, namespace=space)
        ).spec.holder_identity == "they"


async def test_writing_what_is_there_makes_no_new_version(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Lease, lease("one", "me"), namespace=space)
        old = await api.get(Lease, "one", space)
        assert await api.merge(Lease, "one", lease("one", "me"), namespace=space) == old


async def test_a_merge_removes_with_null_and_leaves_the_rest(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Pod, pod("one", a="1", b="2"), namespace=space)
        labels = {"metadata": {"labels": {"a": None, "c": "3"}}}
        assert (await api.merge(Pod, "one", labels, namespace=space)).metadata.labels == {
            "b": "2",
            "c": "3",
        }


async def test_status_is_written_apart(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Pod, pod("one"), namespace=space)
        status = {"status": {"nominatedNodeName": "n"}}
        assert (await api.merge(Pod, "one", status, namespace=space)).status.phase == "Pending"
        assert (await api.get(Pod, "one", space)).status.nominated_node_name == ""
        await api.merge(Pod, "one", status, namespace=space, sub="status")
        assert (await api.get(Pod, "one", space)).status.nominated_node_name == "n"


async def test_a_pod_is_bound_once_with_its_annotations(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Pod, pod("one"), namespace=space)
        unbound = await api.get(Pod, "one", space)
        binding = {
            "metadata": {"name": "one", "uid": unbound.metadata.uid, "annotations": {"a": "1"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": space},
        }
        other = {**binding, "metadata": {"name": "one", "uid": "another"}}
        with pytest.raises(ApiConflict):
            await api.create(Pod, other, namespace=space, sub="binding")
        await api.create(Pod, binding, namespace=space, sub="binding")
        bound = await api.get(Pod, "one", space)
        assert bound.spec.node_name == space
        assert bound.metadata.annotations == {"a": "1"}
        assert [(each.type, each.status) for each in bound.status.conditions] == [
            ("PodScheduled", "True")
        ]
        with pytest.raises(ApiConflict, match="already assigned"):
            await api.create(Pod, binding, namespace=space, sub="binding")
        missing = {**binding, "metadata": {"name": "two"}}
        with pytest.raises(ApiNotFound):
            await api.create(Pod, missing, namespace=space, sub="binding")


async def test_a_gated_pod_is_not_bound(connected: Api) -> None:
    async with connected() as (api, space):
        body = pod("one")
        body["spec"]["schedulingGates"] = [{"name": "dovetail.dev/wait"}]
        await api.create(Pod, body, namespace=space)
        binding = {"metadata": {"name": "one"}, "target": {"name": space}}
        with pytest.raises(ApiConflict, match="schedulingGates"):
            await api.create(Pod, binding, namespace=space, sub="binding")


async def test_a_bound_pod_stays_until_its_kubelet_is_done_with_it(connected: Api) -> None:
    async with connected() as (api, space):
        for name in ("bound", "unbound"):
            await api.create(Pod, pod(name), namespace=space)
        binding = {"metadata": {"name": "bound"}, "target": {"name": space}}
        await api.create(Pod, binding, namespace=space, sub="binding")
        # An API server whose cache does not know of the binding yet would end the pod at once. It
        # lists from that cache, and waits until it is up to date.
        listed = (await api.list(Pod, namespace=space)).items
        assert {each.spec.node_name for each in listed} == {space, ""}
        for name in ("bound", "unbound"):
            await api.delete(Pod, name, space)
        (left,) = (await api.list(Pod, namespace=space)).items
        assert left.metadata.name == "bound"
        assert left.metadata.deletion_timestamp
        with pytest.raises(ApiConflict):
            await api.delete(Pod, "bound", space, uid="another", grace=0)
        await api.delete(Pod, "bound", space, uid=left.metadata.uid, grace=0)
        assert (await api.list(Pod, namespace=space)).items == []


async def test_what_has_a_finalizer_goes_when_that_is_taken_off(connected: Api) -> None:
    async with connected() as (api, space):
        body = lease("one", "me")
        body["metadata"]["finalizers"] = ["dovetail.dev/held"]
        await api.create(Lease, body, namespace=space)
        await api.delete(Lease, "one", space)
        held = await api.get(Lease, "one", space)
        assert held.metadata.deletion_timestamp
        off: dict[str, Any] = {"metadata": {"finalizers": []}}
        await api.merge(Lease, "one", off, namespace=space)
        with pytest.raises(ApiNotFound):
            await api.get(Lease, "one", space)


async def test_a_watch_tells_what_happened_since_a_version_in_order(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Lease, lease("before", "me"), namespace=space)
        version = (await api.list(Lease, namespace=space)).resource_version
        await api.create(Lease, lease("one", "me"), namespace=space)
        await api.merge(Lease, "one", lease("one", "you"), namespace=space)
        await api.delete(Lease, "one", space)
        found = await seen(api, Lease, version, 3, namespace=space)
        assert [kind for kind, _ in found] == ["ADDED", "MODIFIED", "DELETED"]
        assert {each.key for _, each in found} == {f"{space}/one"}
        versions = [int(each.metadata.resource_version) for _, each in found]
        assert versions == sorted(set(versions))
        assert versions[0] > int(version)


async def test_selections_have_their_own_comings_and_goings(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Pod, pod("a", app="x"), namespace=space)
        await api.create(Pod, pod("b", app="y"), namespace=space)
        listing = await api.list(Pod, namespace=space, labels="app in (x, z),!no")
        assert [each.metadata.name for each in listing.items] == ["a"]
        version = listing.resource_version
        for name, app in (("a", "y"), ("b", "x")):
            body = {"metadata": {"labels": {"app": app}}}
            await api.merge(Pod, name, body, namespace=space)
        found = await seen(api, Pod, version, 2, namespace=space, labels="app=x")
        assert [(kind, each.metadata.name) for kind, each in found] == [
            ("DELETED", "a"),
            ("ADDED", "b"),
        ]
        assert all(int(each.metadata.resource_version) > int(version) for _, each in found)

        binding = {"metadata": {"name": "a"}, "target": {"name": space}}
        await api.create(Pod, binding, namespace=space, sub="binding")
        for fields, name in ((f"spec.nodeName={space}", "a"), ("spec.nodeName=", "b")):
            listing = await api.list(Pod, namespace=space, fields=fields)
            assert [each.metadata.name for each in listing.items] == [name]


async def test_applied_fields_belong_to_their_manager(connected: Api) -> None:
    async with connected() as (api, space):

        def body(**labels: str) -> dict[str, Any]:
            return {"metadata": {"name": "one", "namespace": space, "labels": labels}}

        await api.apply(Lease, body(a="1", b="1"), manager="first")
        await api.merge(Lease, "one", {"metadata": {"labels": {"x": "1"}}}, namespace=space)
        await api.apply(Lease, body(c="1"), manager="second")
        after = await api.apply(Lease, body(b="2"), manager="first")
        assert after.metadata.labels == {"b": "2", "c": "1", "x": "1"}
        with pytest.raises(ApiConflict):
            await api.apply(Lease, body(b="3"), manager="second", force=False)
        after = await api.apply(Lease, body(b="3"), manager="second")
        assert after.metadata.labels == {"b": "3", "x": "1"}
        assert await api.apply(Lease, body(b="3"), manager="second") == after


async def test_events_are_taken(connected: Api) -> None:
    async with connected() as (api, space):
        await api.create(Pod, pod("one"), namespace=space)
        recorder = Recorder(api, "dovetail-scheduler", "me")
        for _ in range(2):
            recorder.event(
                await api.get(Pod, "one", space), "Normal", "Tried", "Scheduling", "a note"
            )
            await recorder.send_next()
        (event,) = (await api.list(Event, namespace=space)).items
        assert (event.reason, event.note, event.type) == ("Tried", "a note", "Normal")
        assert event.series is not None
        assert event.series["count"] == 2


async def test_a_long_list_comes_in_pages_and_is_whole(cluster: Any, namespace: str) -> None:
    async with on_cluster(cluster, namespace) as (api, _):
        await asyncio.gather(
            *(
                api.create(Lease, lease(f"lease-{n:04}", "me"), namespace=namespace)
                for n in range(1100)
            )
        )
        listing = await api.list(Lease, namespace=namespace)
        names = [each.metadata.name for each in listing.items]
        assert names == [f"lease-{n:04}" for n in range(1100)]
        assert (await api.list(Node, labels="none=such")).items == []
