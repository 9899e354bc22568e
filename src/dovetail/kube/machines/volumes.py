"""Volumes of guests that wait: which nodes they tie a guest to, looked up for a plan.

Room has to be made where the scheduler will let the pod go. A claim that has its volume keeps it,
so that is looked up once; a claim without one ties to nothing, since the scheduler has the volume
made where the pod goes. The machine controller asks before each plan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import structlog

from dovetail.kube.api.port import ApiError, ApiNotFound, KubeApi
from dovetail.machines.pods import is_gated_guest
from dovetail.machines.snapshot import VolumeTies
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject, NodeSelector, Pod

LOG = structlog.get_logger("dovetail.kube.machines")

LOOK_SECONDS = 2.0
"""Between two looks at a claim that has no volume yet, or is not there."""


class ClaimSpec(ApiStruct, frozen=True, kw_only=True):
    volume_name: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)

    spec: ClaimSpec = ClaimSpec()


class VolumeNodeAffinity(ApiStruct, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class VolumeSpec(ApiStruct, frozen=True, kw_only=True):
    node_affinity: VolumeNodeAffinity = VolumeNodeAffinity()


class PersistentVolume(KubeObject, frozen=True, kw_only=True):
    API = ApiResource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)

    spec: VolumeSpec = VolumeSpec()


class GuestVolumes:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._known: dict[str, dict[str, tuple[float, VolumeTies]]] = {}
        """By group and uid: until when that holds."""

    async def of(self, group: str, guests: Mapping[str, Pod]) -> dict[str, VolumeTies]:
        """By uid, of guests that wait and have claims."""
        now, before = time.monotonic(), self._known.get(group, {})
        found: dict[str, tuple[float, VolumeTies]] = {}
        for uid, pod in guests.items():
            if pod.spec.volumes and is_gated_guest(pod) and any(claims_of(pod)):
                until, ties = before.get(uid, (0.0, VolumeTies()))
                found[uid] = (until, ties) if now < until else await self._look_up(pod, now)
        self._known[group] = found
        return {uid: ties for uid, (_, ties) in found.items()}

    async def _look_up(self, pod: Pod, now: float) -> tuple[float, VolumeTies]:
        demands = []
        until = float("inf")
        for name, is_made in claims_of(pod):
            try:
                claim = await self._api.get(PersistentVolumeClaim, name, pod.metadata.namespace)
                if not claim.spec.volume_name:
                    until = now + LOOK_SECONDS
                    continue
                volume = await self._api.get(PersistentVolume, claim.spec.volume_name)
            except ApiNotFound:
                until = now + LOOK_SECONDS
                if not is_made:
                    words = f"PersistentVolumeClaim {name!r}, or its volume, does not exist"
                    return until, VolumeTies(lacking=words)
                continue
            except ApiError as error:
                # Whether it may go to a node, the scheduler decides in any case.
                LOG.warning("volume not looked up", pod=pod.key, claim=name, error=str(error))
                continue
            required = volume.spec.node_affinity.required
            if required is not None:
                demands.append(required.node_selector_terms)
        return until, VolumeTies(demands=tuple(demands))


def claims_of(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Names of its claims, and whether each is made for the pod, sooner or later."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name, False
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}", True
