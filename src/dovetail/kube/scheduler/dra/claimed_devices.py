"""Claimed devices: which devices ResourceClaims have, whoever wrote them, and on which nodes.

The cluster state fills it from its informers and passes on who holds what; the claim writer asks it
who else has a device. A claim names devices by driver and pool, and only slices say on which node a
pool is: either may come first. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.core.device import DraOrigin
from dovetail.kube.classes.resource_claims import (
    ResourceClaim,
    allocated_devices,
    holder_name,
    is_ours,
)
from dovetail.kube.classes.slices import Pool, device_name, pool_of
from dovetail.podfit.objects import ResourceSlice


class ClaimedDevices:
    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        """By uid: those that have devices, and all of ours."""
        self._claims_of: dict[DraOrigin, dict[str, ResourceClaim]] = {}
        """By device, by uid: mostly one."""
        self._held: dict[str, dict[str, frozenset[DraOrigin]]] = {}
        """By holder, by uid of the claim."""
        self._holders: dict[Pool, dict[str, int]] = {}
        """By pool, who has devices of it, and how many."""
        self._nodes: dict[Pool, dict[str, str]] = {}
        """By pool, the nodes of its slices by the slices' names."""

    def set_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> frozenset[str]:
        """A claim came (no old), changed or went (no new); who may hold other devices since."""
        if old is not None:
            self._drop(self._claims.pop(old.metadata.uid, None))
        if new is not None and (allocated_devices(new) or is_ours(new)):
            self._put(new)
        return frozenset(holder_name(each) for each in (old, new) if each is not None)

    def set_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> frozenset[str]:
        """A slice came (no old), changed or went (no new); whose devices are elsewhere since."""
        changed = {pool_of(each) for each in (old, new) if each is not None}
        before = {pool: self.nodes_of(pool) for pool in changed}
        for each in (old, new):
            if each is None or not each.spec.node_name:
                continue
            nodes = self._nodes.setdefault(pool_of(each), {})
            if each is new:
                nodes[each.key] = each.spec.node_name
            else:
                nodes.pop(each.key, None)
            if not nodes:
                del self._nodes[pool_of(each)]
        moved = (pool for pool, nodes in before.items() if self.nodes_of(pool) != nodes)
        return frozenset(holder for pool in moved for holder in self._holders.get(pool, ()))

    def held_by(self, holder: str) -> dict[str, frozenset[str]]:
        """Names of devices by node."""
        found: dict[str, set[str]] = {}
        for devices in self._held.get(holder, {}).values():
            for each in devices:
                for node in self.nodes_of((each.driver, each.pool)):
                    name = device_name(each.driver, each.pool, each.device)
                    found.setdefault(node, set()).add(name)
        return {node: frozenset(names) for node, names in found.items()}

    def nodes_of(self, pool: Pool) -> frozenset[str]:
        return frozenset(self._nodes.get(pool, {}).values())

    def find(self, uid: str) -> ResourceClaim | None:
        return self._claims.get(uid)

    def ours(self) -> list[ResourceClaim]:
        """Claims that were written here."""
        return [each for each in self._claims.values() if is_ours(each)]

    def rival(self, devices: Iterable[DraOrigin], holder: str) -> ResourceClaim | None:
        """A claim of somebody else on one of these."""
        return next(rivals(self._claims_on(devices), devices, holder), None)

    def rival_of(self, holder: str) -> ResourceClaim | None:
        """A claim of somebody else on one of what this holder has by claims."""
        devices = {each for some in self._held.get(holder, {}).values() for each in some}
        return self.rival(devices, holder) if devices else None

    def _claims_on(self, devices: Iterable[DraOrigin]) -> Iterator[ResourceClaim]:
        for each in devices:
            yield from self._claims_of.get(each, {}).values()

    def _put(self, claim: ResourceClaim) -> None:
        uid, holder, devices = claim.metadata.uid, holder_name(claim), allocated_devices(claim)
        self._claims[uid] = claim
        if not devices:
            return
        self._held.setdefault(holder, {})[uid] = devices
        for each in devices:
            self._claims_of.setdefault(each, {})[uid] = claim
            counts = self._holders.setdefault((each.driver, each.pool), {})
            counts[holder] = counts.get(holder, 0) + 1

    def _drop(self, claim: ResourceClaim | None) -> None:
        if claim is None or not (devices := allocated_devices(claim)):
            return
        uid, holder = claim.metadata.uid, holder_name(claim)
        del self._held[holder][uid]
        if not self._held[holder]:
            del self._held[holder]
        for each in devices:
            del self._claims_of[each][uid]
            if not self._claims_of[each]:
                del self._claims_of[each]
            pool = (each.driver, each.pool)
            counts = self._holders[pool]
            counts[holder] -= 1
            if not counts[holder]:
                del counts[holder]
            if not counts:
                del self._holders[pool]


def rivals(
    claims: Iterable[ResourceClaim], devices: Iterable[DraOrigin], holder: str
) -> Iterator[ResourceClaim]:
    """Those of other holders that have one of these devices."""
    wanted = frozenset(devices)
    for each in claims:
        if holder_name(each) != holder and wanted & allocated_devices(each):
            yield each
