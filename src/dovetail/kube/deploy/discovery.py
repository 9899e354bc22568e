"""API discovery: where a cluster has objects of a kind that is known by name alone.

The port of deployments asks it for every object it writes or reads, for manifests may hold any
kind. A kind becomes a class of its own, so that the client treats it as any other.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import ApiNotFound, KubeApi
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject


class DynamicObject(KubeObject, frozen=True, kw_only=True):
    """Any object, as far as its readiness is read."""

    spec: Any = None
    status: Any = None


class ListedResource(ApiStruct, frozen=True, kw_only=True):
    name: str
    kind: str
    namespaced: bool = False


class ListedResources(KubeObject, frozen=True, kw_only=True):
    """What there is in a version of a group. Its place is where others' names begin."""

    resources: tuple[ListedResource, ...] = ()


class UnknownKind(DovetailError):
    """The cluster does not have such objects, or does not have them yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f"the cluster knows no kind {kind} in {api_version}")


class KindDiscovery:
    """The kinds of one cluster, asked for when they are needed, and again when one is missing."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._kinds: dict[tuple[str, str], type[DynamicObject]] = {}

    async def kind_of(self, api_version: str, kind: str) -> type[DynamicObject]:
        """Raises UnknownKind; what the client raises."""
        found = self._kinds.get((api_version, kind))
        if found is None:
            await self._read(api_version)
            found = self._kinds.get((api_version, kind))
        if found is None:
            raise UnknownKind(api_version, kind)
        return found

    async def _read(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        place = ApiResource(group, version, "", "APIResourceList", namespaced=False)
        try:
            listed = await self._api.get(class_of(place, ListedResources), "")
        except ApiNotFound:
            return
        for each in listed.resources:
            if "/" not in each.name:
                api = ApiResource(group, version, each.name, each.kind, each.namespaced)
                known = self._kinds.get((api_version, each.kind))
                if known is None or api != known.API:
                    self._kinds[api_version, each.kind] = class_of(api, DynamicObject)


def class_of(api: ApiResource, base: type[Any]) -> type[Any]:
    """The base as the class of objects that are there."""
    return msgspec.defstruct(
        api.kind, [], bases=(base,), namespace={"API": api}, frozen=True, kw_only=True
    )
