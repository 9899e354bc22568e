"""Port of deployments over the Kubernetes API: server-side apply, removal by uid, readiness, pods.

The worker of `service/intents` calls it. Every object carries the label of its deployment, which
tells our own objects from those of others that have the same name: others' are neither changed nor
deleted, also where nobody remembers any more what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dovetail.intents.deployment import ObjectKey, ObjectReadiness
from dovetail.intents.group import ManifestObject
from dovetail.intents.names import APP_LABEL, DEPLOYMENT_LABEL, ClusterName
from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.deploy.discovery import DynamicObject, KindDiscovery, UnknownKind, class_of
from dovetail.kube.deploy.readiness import readiness, waiting
from dovetail.podfit.objects import ApiResource, Pod
from dovetail.service.intents.deploying.cluster_port import ClusterAway, DeployedPod, ObjectRefused

MANAGER = "dovetail-intents"
TOGETHER = 8
"""Reads of one cluster at a time."""
FINAL_CODES = frozenset((400, 413, 422))
"""The object itself is at fault. Others may have a reason that passes: a webhook that is not there
yet, a namespace that is being deleted, a role that is still missing."""
NAMESPACE = class_of(
    ApiResource("", "v1", "namespaces", "Namespace", namespaced=False), DynamicObject
)

ClientOf = Callable[[ClusterName], Awaitable[KubeApi | None]]
"""The client of a registered cluster; None if there is no way to it. Raises ApiUnreachable."""


class KubeClusters:
    """`ClusterPort` over clients of all clusters."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of
        self._discoveries: dict[ClusterName, tuple[KubeApi, KindDiscovery]] = {}

    async def is_served(self, cluster: ClusterName) -> bool:
        async with told(cluster):
            return await self._client_of(cluster) is not None

    async def apply(
        self, cluster: ClusterName, deployment: str, manifest: ManifestObject, uid: str
    ) -> str:
        async with told(cluster):
            api, kinds = await self._ways(cluster)
            kind = await kinds.kind_of(manifest["apiVersion"], manifest["kind"])
            body = located(manifest, kind.API)
            meta = body["metadata"]
            there = await found(api, kind, meta["name"], meta.get("namespace", ""))
            if there is None:
                await have_namespace(api, meta.get("namespace", ""))
            elif not is_own(there, deployment, uid):
                where = f"{manifest['kind']} {there.key}"
                raise ObjectRefused(f"{where} is there, and not of this deployment", is_final=True)
            elif there.metadata.deletion_timestamp is not None:
                raise ObjectRefused(f"{manifest['kind']} {there.key} is still being deleted")
            # One that came meanwhile from others is not taken from them.
            is_known = there is not None and there.metadata.uid == uid
            done = await api.apply(kind, body, manager=MANAGER, force=is_known)
            return done.metadata.uid

    async def remove(self, cluster: ClusterName, deployment: str, key: ObjectKey, uid: str) -> bool:
        async with told(cluster):
            api, kinds = await self._ways(cluster)
            try:
                kind = await kinds.kind_of(key.api_version, key.kind)
            except UnknownKind:
                # Objects go with their kind.
                return True
            space = key.namespace if kind.API.namespaced else ""
            there = await found(api, kind, key.name, space)
            if there is None or not is_own(there, deployment, uid):
                return True
            if there.metadata.deletion_timestamp is None:
                await api.delete(
                    kind, key.name, space, uid=there.metadata.uid, propagation="Foreground"
                )
            return await found(api, kind, key.name, space) is None

    async def readiness(
        self, cluster: ClusterName, objects: Sequence[tuple[ObjectKey, str]]
    ) -> dict[ObjectKey, ObjectReadiness]:
        turns = asyncio.Semaphore(TOGETHER)

        async def one(key: ObjectKey, uid: str) -> ObjectReadiness:
            async with turns:
                kind = await kinds.kind_of(key.api_version, key.kind)
                space = key.namespace if kind.API.namespaced else ""
                there = await found(api, kind, key.name, space)
                if there is None or there.metadata.uid != uid:
                    return waiting("it was deleted by others")
                return readiness(there)

        async with told(cluster):
            api, kinds = await self._ways(cluster)
            answers = await asyncio.gather(*(one(*each) for each in objects))
        return {key: each for (key, _), each in zip(objects, answers, strict=True)}

    async def pods(self, cluster: ClusterName, deployment: str) -> list[DeployedPod]:
        async with told(cluster):
            api, _ = await self._ways(cluster)
            listed = await api.list(Pod, labels=f"{DEPLOYMENT_LABEL}={deployment}")
        return [observed(each) for each in listed.items]

    async def _ways(self, cluster: ClusterName) -> tuple[KubeApi, KindDiscovery]:
        """The client may be another one when the kubeconfig is."""
        api = await self._client_of(cluster)
        if api is None:
            raise ClusterAway(f"{cluster} has no kubeconfig")
        known = self._discoveries.get(cluster)
        if known is None or known[0] is not api:
            known = self._discoveries[cluster] = (api, KindDiscovery(api))
        return known


@asynccontextmanager
async def told(cluster: ClusterName) -> AsyncIterator[None]:
    """Errors of the API in the words of the port."""
    try:
        yield
    except ApiUnreachable as error:
        raise ClusterAway(f"{cluster} does not answer: {error}") from error
    except UnknownKind as error:
        raise ObjectRefused(str(error)) from error
    except ApiError as error:
        raise ObjectRefused(str(error), is_final=error.code in FINAL_CODES) from error


async def found(
    api: KubeApi, kind: type[DynamicObject], name: str, namespace: str
) -> DynamicObject | None:
    try:
        return await api.get(kind, name, namespace)
    except ApiNotFound:
        return None


async def have_namespace(api: KubeApi, name: str) -> None:
    """Make it if it is missing. It is nobody's: others may be in it when a deployment goes."""
    if name and await found(api, NAMESPACE, name, "") is None:
        try:
            await api.create(NAMESPACE, {"metadata": {"name": name}})
        except ApiConflict:
            return


def is_own(there: DynamicObject, deployment: str, uid: str) -> bool:
    """By its uid; by its label where the uid was never told, or others made it anew."""
    labels = there.metadata.labels
    return there.metadata.uid == uid or labels.get(DEPLOYMENT_LABEL) == deployment


def located(manifest: ManifestObject, api: ApiResource) -> dict[str, Any]:
    """With a namespace exactly if the kind has them, and nothing that a server fills in."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in SERVERS}
    if not api.namespaced:
        meta.pop("namespace", None)
    return {**{key: manifest[key] for key in fields_of(manifest)}, "metadata": meta}


SERVERS = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
)


def fields_of(manifest: ManifestObject) -> Iterator[str]:
    return (key for key in manifest if key != "status")


def observed(pod: Pod) -> DeployedPod:
    conditions = {each.type: each.status for each in pod.status.conditions}
    return DeployedPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        app=pod.metadata.labels.get(APP_LABEL, ""),
        phase=pod.status.phase,
        node=pod.spec.node_name,
        is_ready=conditions.get("Ready") == "True",
    )
