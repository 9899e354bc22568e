"""Objects of any kind on a real API server: applied, ready, removed; those of others untouched."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dovetail.intents.deployment import ObjectKey
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL
from dovetail.kube.api.client import connect
from dovetail.kube.api.port import KubeApi
from dovetail.kube.deploy.port import MANAGER, KubeClusters
from dovetail.service.intents.deploying.cluster_port import ClusterAway, ObjectRefused
from tests.support.kube.cluster import Cluster

Json = dict[str, Any]
EAST = "p+east"


@pytest.fixture(scope="module")
def east(clusters: tuple[Cluster, Cluster]) -> Cluster:
    clusters[0].add_nodes(2, prefix="port")
    return clusters[0]


@pytest.fixture
def space(east: Cluster) -> Iterator[str]:
    """A namespace that is not there yet."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    yield name
    east.drop_namespace(name)


@asynccontextmanager
async def port_to(cluster: Cluster) -> AsyncIterator[KubeClusters]:
    async with connect(str(cluster.kubeconfig)) as client:

        async def client_of(name: str) -> KubeApi | None:
            return client if name == EAST else None

        yield KubeClusters(client_of)


def manifest(version: str, kind: str, name: str, space: str, id_: str, **fields: Any) -> Json:
    meta = {"name": name, "namespace": space, "labels": {DEPLOYMENT_LABEL: id_}}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def pods(id_: str, **spec: Any) -> Json:
    labels = {"pods": id_, DEPLOYMENT_LABEL: id_, APP_LABEL: "web"}
    containers = [{"name": "main", "image": "none"}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers, **spec}}


def deployment(space: str, id_: str, **more: Any) -> Json:
    selector = {"matchLabels": {"pods": id_}}
    spec = {"replicas": 2, "selector": selector, "template": pods(id_), **more}
    return manifest("apps/v1", "Deployment", "web", space, id_, spec=spec)


def new() -> str:
    return str(uuid.uuid4())


def there(cluster: Cluster, kind: str, name: str, space: str) -> Json | None:
    said = cluster.kubectl("get", kind, name, "-n", space, "-o", "json", check=False)
    return json.loads(said) if said.startswith("{") else None


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.1)


async def gone(port: KubeClusters, id_: str, key: ObjectKey, uid: str) -> None:
    await until(lambda: port.remove(EAST, id_, key, uid))


async def has_pods(port: KubeClusters, id_: str) -> bool:
    return bool(await port.pods(EAST, id_))


async def has_none(port: KubeClusters, id_: str) -> bool:
    return not await has_pods(port, id_)


async def is_ready(port: KubeClusters, key: ObjectKey, uid: str) -> bool:
    return (await port.readiness(EAST, [(key, uid)]))[key].is_ready


async def is_taken(port: KubeClusters, id_: str, body: Json) -> bool:
    try:
        return bool(await port.apply(EAST, id_, body, ""))
    except ObjectRefused:
        return False


async def test_an_object_is_applied_gets_ready_and_goes_with_its_pods(
    east: Cluster, space: str
) -> None:
    id_ = new()
    body = deployment(space, id_)
    key = ObjectKey.of(body, "default")
    async with port_to(east) as port:
        uid = await port.apply(EAST, id_, body, "")
        assert await port.apply(EAST, id_, body, uid) == uid
        await until(lambda: is_ready(port, key, uid))
        running = await port.pods(EAST, id_)
        assert {each.phase for each in running} == {"Running"}
        assert {each.app for each in running} == {"web"}
        assert all(each.node.startswith("port-") for each in running)
        found = there(east, "deployment", "web", space)
        assert found is not None
        await gone(port, id_, key, uid)
        await until(lambda: has_none(port, id_))
    assert there(east, "deployment", "web", space) is None


async def test_what_is_owned_is_ours_by_name(east: Cluster, space: str) -> None:
    id_ = new()
    body = manifest("v1", "ConfigMap", "cm", space, id_, data={"a": "1", "b": "2"})
    async with port_to(east) as port:
        uid = await port.apply(EAST, id_, body, "")
        await port.apply(EAST, id_, {**body, "data": {"a": "3"}}, uid)
    said = json.loads(
        east.kubectl("get", "cm", "cm", "-n", space, "-o", "json", "--show-managed-fields")
    )
    assert said["data"] == {"a": "3"}
    (owner,) = said["metadata"]["managedFields"]
    assert (owner["manager"], owner["operation"]) == (MANAGER, "Apply")


async def test_others_objects_are_neither_changed_nor_removed(east: Cluster, space: str) -> None:
    id_ = new()
    east.make_namespace(space)
    east.kubectl("create", "configmap", "cm", "-n", space, "--from-literal=a=theirs")
    body = manifest("v1", "ConfigMap", "cm", space, id_, data={"a": "ours"})
    async with port_to(east) as port:
        with pytest.raises(ObjectRefused, match="not of this deployment") as refused:
            await port.apply(EAST, id_, body, "")
        assert refused.value.is_final
        assert await port.remove(EAST, id_, ObjectKey.of(body, ""), "")
    found = there(east, "cm", "cm", space)
    assert found is not None
    assert found["data"] == {"a": "theirs"}


async def test_one_that_others_made_in_its_place_stays(east: Cluster, space: str) -> None:
    id_ = new()
    body = manifest("v1", "ConfigMap", "cm", space, id_, data={"a": "ours"})
    async with port_to(east) as port:
        uid = await port.apply(EAST, id_, body, "")
        east.kubectl("delete", "configmap", "cm", "-n", space)
        east.kubectl("create", "configmap", "cm", "-n", space)
        assert await port.remove(EAST, id_, ObjectKey.of(body, ""), uid)
    assert there(east, "cm", "cm", space) is not None


async def test_an_object_whose_uid_was_never_told_is_found_by_its_label(
    east: Cluster, space: str
) -> None:
    id_ = new()
    body = manifest("v1", "ConfigMap", "cm", space, id_)
    async with port_to(east) as port:
        await port.apply(EAST, id_, body, "")
        await gone(port, id_, ObjectKey.of(body, ""), "")
    assert there(east, "cm", "cm", space) is None


async def test_pods_of_a_job_go_with_it(east: Cluster, space: str) -> None:
    """The API would leave them, by default."""
    id_ = new()
    spec = {"template": pods(id_, restartPolicy="Never")}
    body = manifest("batch/v1", "Job", "once", space, id_, spec=spec)
    async with port_to(east) as port:
        uid = await port.apply(EAST, id_, body, "")
        await until(lambda: has_pods(port, id_))
        await gone(port, id_, ObjectKey.of(body, ""), uid)
        await until(lambda: has_none(port, id_))


async def test_a_kind_of_their_own_is_found_as_soon_as_it_is_there(
    east: Cluster, space: str
) -> None:
    id_ = new()
    plural = f"w{id_[:8]}s"
    kind = plural.capitalize()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.test.dev", "labels": {DEPLOYMENT_LABEL: id_}},
        "spec": {
            "group": "test.dev",
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    body = manifest("test.dev/v1", kind, "one", space, id_, spec={"any": ["thing", {"x": 1}]})
    async with port_to(east) as port:
        with pytest.raises(ObjectRefused, match=f"no kind {kind}") as refused:
            await port.apply(EAST, id_, body, "")
        assert not refused.value.is_final
        crd_uid = await port.apply(EAST, id_, crd, "")
        await until(lambda: is_taken(port, id_, body))
        uid = await port.apply(EAST, id_, body, "")
        key = ObjectKey.of(body, "")
        assert (await port.readiness(EAST, [(key, uid)]))[key].is_ready
        await gone(port, id_, key, uid)
        await gone(port, id_, ObjectKey.of(crd, ""), crd_uid)


async def test_what_the_server_finds_wrong_is_told_and_final(east: Cluster, space: str) -> None:
    id_ = new()
    body = deployment(space, id_, replicas=-1)
    async with port_to(east) as port:
        with pytest.raises(ObjectRefused, match=r"spec\.replicas") as refused:
            await port.apply(EAST, id_, body, "")
        assert refused.value.is_final


async def test_a_cluster_without_a_kubeconfig_is_away(east: Cluster) -> None:
    async with port_to(east) as port:
        assert await port.is_served(EAST)
        assert not await port.is_served("p+other")
        with pytest.raises(ClusterAway, match="no kubeconfig"):
            await port.pods("p+other", "x")
