"""Writes of the operator to the API server, each made once however often it is asked for.

A plan is made again before the caches show what the last one did. What was written is remembered
here until the cache has caught up, so that nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from dovetail.kube.api.port import ApiConflict, ApiNotFound, KubeApi
from dovetail.kube.machines.metrics import WRITES
from dovetail.kube.machines.state import MachineState
from dovetail.kube.runtime.apply import FieldOwner
from dovetail.kube.runtime.informer import is_newer
from dovetail.machines.documents import Machine
from dovetail.machines.names import HOSTNAME, STOCK_GATE, UNIT_GATE
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject, Pod

OWN_GATES = (UNIT_GATE, STOCK_GATE)


class WrittenTolerations(ApiStruct, frozen=True, kw_only=True):
    tolerations: tuple[dict[str, Any], ...] = ()


class WrittenPod(KubeObject, frozen=True, kw_only=True):
    """A pod whose tolerations are as they were written: a list that is written as a whole."""

    API: ClassVar[ApiResource] = Pod.API

    spec: WrittenTolerations = WrittenTolerations()


class Writer:
    def __init__(self, api: KubeApi, state: MachineState) -> None:
        self._api = api
        self._state = state
        self._fields = FieldOwner(api, "dovetail-machines")
        self._applied: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
        """By kind and name: what was applied last, and the version that came of it."""
        self._status: dict[str, tuple[dict[str, Any], str]] = {}
        self._lifted: set[str] = set()
        self._deleted: set[str] = set()

    async def put(
        self,
        kind: type[KubeObject],
        name: str,
        body: dict[str, Any],
        there: KubeObject | None,
        owner: Machine,
    ) -> None:
        """Own these fields of the object; `there` is what the cache has of it."""
        key = (kind.API.kind, name)
        before = self._applied.get(key)
        is_known = before is not None and before[0] == body and is_behind(there, before[1])
        if is_known and key not in self._state.deleted:
            return
        namespace = self._state.settings.namespace if kind.API.namespaced else ""
        WRITES.labels(kind.API.kind).inc()
        found = await self._fields.put(kind, name, body, namespace=namespace, owner=owner)
        self._applied[key] = (body, found.metadata.resource_version)
        self._state.deleted.discard(key)

    async def drop(self, kind: type[KubeObject], name: str) -> None:
        namespace = self._state.settings.namespace if kind.API.namespaced else ""
        self._applied.pop((kind.API.kind, name), None)
        WRITES.labels(kind.API.kind).inc()
        await self._api.delete(kind, name, namespace)

    async def delete_sleeper(self, pod: Pod) -> None:
        """This one, and none that has its name by now."""
        uid = pod.metadata.uid
        self._forget()
        if uid in self._deleted:
            return
        WRITES.labels("Pod").inc()
        with suppress(ApiConflict):
            await self._api.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=uid, grace=0)
        self._deleted.add(uid)

    async def nominate(self, pod: Pod, node: str) -> Pod:
        """Have the scheduler keep the node's room for a guest that is about to come, whoever of no
        higher priority waits for room there, or nowhere any more; the pod as it is then."""
        WRITES.labels("Pod").inc()
        body = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"nominatedNodeName": node or None},
        }
        try:
            return await self._api.merge(
                Pod, pod.metadata.name, body, namespace=pod.metadata.namespace, sub="status"
            )
        except (ApiConflict, ApiNotFound):
            return pod

    async def lift(
        self, pod: Pod, node: str, *, pin: bool, tolerations: Sequence[dict[str, Any]] = ()
    ) -> None:
        """Take our gate from a pod, and tie it to the node while that is still possible; with
        tolerations that it lacks.

        Raises ApiConflict if the pod is another by now than the cache has.
        """
        uid = pod.metadata.uid
        self._forget()
        if uid in self._lifted:
            return
        left = [
            {"name": each.name} for each in pod.spec.scheduling_gates if each.name not in OWN_GATES
        ]
        spec: dict[str, Any] = {"schedulingGates": left or None}
        if pin:
            spec["nodeSelector"] = {HOSTNAME: self._hostname(node)}
        meta = {"resourceVersion": pod.metadata.resource_version, "uid": uid}
        name, namespace = pod.metadata.name, pod.metadata.namespace
        with suppress(ApiNotFound):
            if tolerations:
                written = await self._api.get(WrittenPod, name, namespace)
                spec["tolerations"] = [*written.spec.tolerations, *tolerations]
            WRITES.labels("Pod").inc()
            body = {"metadata": meta, "spec": spec}
            await self._api.merge(Pod, name, body, namespace=namespace)
        self._lifted.add(uid)

    def _hostname(self, node: str) -> str:
        found = self._state.nodes.get(node)
        return node if found is None else found.metadata.labels.get(HOSTNAME, node)

    async def write_status(self, machine: Machine, status: dict[str, Any]) -> None:
        """If it is another than the cache has, or than was written since."""
        name = machine.metadata.name
        before = self._status.get(name)
        if before is not None and before[0] == status and is_behind(machine, before[1]):
            return
        version = machine.metadata.resource_version
        if before is not None and is_behind(machine, before[1]):
            version = before[1]
        WRITES.labels("Machine").inc()
        body = {"metadata": {"resourceVersion": version}, "status": status}
        found = await self._api.merge(Machine, name, body, sub="status")
        self._status[name] = (status, found.metadata.resource_version)

    def _forget(self) -> None:
        """What caches have caught up with."""
        if len(self._lifted) + len(self._deleted) < REMEMBERED:
            return
        pods = self._state.pods
        self._lifted &= pods.keys()
        self._deleted &= pods.keys()


REMEMBERED = 1000
"""Pods written to, before those that are gone are forgotten."""


def is_behind(there: KubeObject | None, version: str) -> bool:
    """Whether the cache has not heard of that version of the object yet."""
    return there is None or is_newer(version, there.metadata.resource_version)
