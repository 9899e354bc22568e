"""Server-side apply of the fields that are ours, under one name for each part of Dovetail.

What is left out next time is taken away again, and nothing that others own is touched. So a caller
always says everything that should be there, never what changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from dovetail.kube.api.port import KubeApi
from dovetail.podfit.objects import KubeObject

T = TypeVar("T", bound=KubeObject)
Manager = Literal["dovetail-machines", "dovetail-node-pool", "dovetail-webhook"]


class FieldOwner:
    """Everything `manager` owns."""

    def __init__(self, api: KubeApi, manager: Manager) -> None:
        self._api = api
        self._manager = manager

    async def put(
        self,
        kind: type[T],
        name: str,
        fields: Mapping[str, Any],
        *,
        namespace: str = "",
        sub: str = "",
        owner: KubeObject | None = None,
        force: bool = True,
    ) -> T:
        """Own exactly `fields` of this object, and make it if it is not there.

        With an `owner` it goes when the owner goes. Without `force`, Conflict if somebody else owns
        one of the fields with another value.
        """
        meta = {**fields.get("metadata", {}), "name": name}
        if namespace:
            meta["namespace"] = namespace
        if owner is not None:
            meta["ownerReferences"] = [reference(owner)]
        body = {
            "apiVersion": kind.API.api_version,
            "kind": kind.API.kind,
            **fields,
            "metadata": meta,
        }
        return await self._api.apply(kind, body, manager=self._manager, sub=sub, force=force)


def reference(owner: KubeObject) -> dict[str, Any]:
    """The one controller of what it owns."""
    return {
        "apiVersion": owner.API.api_version,
        "kind": owner.API.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
