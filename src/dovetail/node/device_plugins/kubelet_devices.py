"""Reads which devices the kubelet gave to pods; the sharing of a plugin asks it regularly.

Its checkpoint has all of them, those of ordinary init containers included, which its pod resources
API leaves out; it is written before a pod starts, and it is there while the kubelet is not. What
ended stays in it until the kubelet forgets: it does so when it is asked for pod resources, and
writes the checkpoint anew when a list of devices comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import grpc.aio
import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.wire.pod_resources import LIST, ListPodResourcesRequest
from dovetail.wire.codec import BadMessage
from dovetail.wire.rpc import call, connect

CHECKPOINT = "kubelet_internal_checkpoint"
LIST_SECONDS = 5.0

ByResource = Mapping[str, Set[str]]


class KubeletUnreadable(DovetailError):
    """Nobody can tell what the kubelet gave out."""


class KubeletHoldings(NamedTuple):
    written: ByResource
    """In the checkpoint."""
    told: ByResource | None
    """By the pod resources API; None if it does not answer."""

    def of(self, resource: str) -> Set[str]:
        return self.written.get(resource, frozenset()) | (self.told or {}).get(
            resource, frozenset()
        )

    def doubtful(self, resource: str) -> bool:
        """Whether something may have ended of which the checkpoint does not know."""
        if self.told is None:
            return False
        return not self.written.get(resource, frozenset()) <= self.told.get(resource, frozenset())


class KubeletDevices:
    def __init__(self, directory: Path, pod_resources: Path) -> None:
        """The kubelet's directory of device plugins, and the socket of its pod resources API."""
        self._checkpoint, self._socket = directory / CHECKPOINT, pod_resources

    async def read(self) -> KubeletHoldings:
        """Raises KubeletUnreadable."""
        # Asked first: it makes the kubelet forget what ended.
        told = await self.told()
        return KubeletHoldings(await self.written(), told)

    async def written(self) -> ByResource:
        """Raises KubeletUnreadable."""
        return await asyncio.to_thread(self._written)

    def _written(self) -> ByResource:
        try:
            data = self._checkpoint.read_bytes()
        except FileNotFoundError:
            # No plugin has registered with it as yet.
            return {}
        except OSError as error:
            raise KubeletUnreadable(f"{self._checkpoint}: {error.strerror}") from None
        try:
            return entries(msgspec.json.decode(data))
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise KubeletUnreadable(f"{self._checkpoint} cannot be read: {error!r}") from None

    async def told(self) -> ByResource | None:
        """None if it does not answer."""
        if not self._socket.is_socket():
            return None
        channel = connect(str(self._socket))
        try:
            answer = await call(channel, LIST, ListPodResourcesRequest(), LIST_SECONDS)
        except (grpc.aio.AioRpcError, BadMessage):
            return None
        finally:
            await channel.close()
        return grouped(
            (device.resource_name, id_)
            for pod in answer.pod_resources
            for container in pod.containers
            for device in container.devices
            for id_ in device.device_ids
        )


def entries(document: Any) -> ByResource:
    """Of the kubelet's checkpoint; raises what is wrong with it."""
    found = document["Data"]["PodDeviceEntries"] or ()
    return grouped(
        (text(each["ResourceName"]), text(id_))
        for each in found
        for ids in by_node(each["DeviceIDs"])
        for id_ in ids
    )


def by_node(ids: Any) -> Iterable[list[Any]]:
    """By NUMA node, or all in one list as kubelets before 1.20 wrote it."""
    return ids.values() if isinstance(ids, dict) else [ids or []]


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def grouped(pairs: Iterable[tuple[str, str]]) -> ByResource:
    found: dict[str, set[str]] = {}
    for resource, id_ in pairs:
        found.setdefault(resource, set()).add(id_)
    return found
