"""Room on the nodes of a pool while a plan is made: what is free, less what the plan takes.

Selling and stocking share one `Room`, so that neither gives away what the other has taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from dovetail.machines.names import GPU_TYPE
from dovetail.podfit.filters.resources import ResourceShortage
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from dovetail.podfit.table import NodeTable

Amounts = Iterable[tuple[str, int]]


class Room:
    def __init__(self, table: NodeTable, gpus_of_others: Mapping[str, int]) -> None:
        self._table = table
        self._gpus_of_others = gpus_of_others
        self._taken: dict[tuple[str, str], int] = {}
        self._supposing = 0
        self._heeds = False
        self._supposed: dict[str, tuple[Pod, str, str | None]] = {}
        """By uid: where a pod is put, and where the table had it before."""
        self._kinds: dict[int, tuple[PodRequest, Hashable]] = {}
        """By identity; the request is kept beside it, so that no other can get that."""
        self._eligible: dict[Hashable, frozenset[str]] = {}
        self._lacks: dict[Hashable, str] = {}

    def free(self, node: str, resource: str) -> int:
        free = self._table.free(node, resource) - self._taken.get((node, resource), 0)
        return free - self._gpus_of_others.get(node, 0) if resource == GPU_TYPE else free

    def fits(self, node: str, amounts: Amounts) -> bool:
        return all(self.free(node, name) >= amount for name, amount in amounts)

    def take(self, node: str, amounts: Amounts, sign: int = 1) -> None:
        """Or give back, with a `sign` of -1."""
        for name, amount in amounts:
            self._taken[node, name] = self._taken.get((node, name), 0) + sign * amount

    @contextmanager
    def supposing(self, judged: Iterable[Pod]) -> Iterator[None]:
        """While it lasts, whoever is put on a node is there for those who are judged after it, if
        any of them has terms about others. Then the table is as it was before. Within another, it
        is part of that."""
        self._supposing += 1
        self._heeds |= any(depends_on_pods(pod_request_of(pod)) for pod in judged)
        try:
            yield
        finally:
            self._supposing -= 1
            if not self._supposing:
                self._heeds = False
                for pod, node, _ in list(self._supposed.values()):
                    self.lift(pod, node)
                    self.take(node, pod_request_of(pod).amounts)

    def put(self, pod: Pod, node: str) -> None:
        """Give a guest its place."""
        if not self._heeds:
            self.take(node, pod_request_of(pod).amounts)
            return
        before = self._table.node_of(pod.metadata.uid)
        if before is not None:
            # One that was found misplaced: its room there was given back then.
            self.take(before, pod_request_of(pod).amounts)
        self._supposed[pod.metadata.uid] = (pod, node, before)
        self._table.add_pod(pod, node)
        self._forget()

    def lift(self, pod: Pod, node: str) -> None:
        """Take its place away again."""
        found = self._supposed.pop(pod.metadata.uid, None)
        if found is None:
            self.take(node, pod_request_of(pod).amounts, -1)
            return
        self._table.remove_pod(pod.metadata.uid)
        _, _, before = found
        if before is not None:
            self._table.add_pod(pod, before)
            self.take(before, pod_request_of(pod).amounts, -1)
        self._forget()

    def still_takes(self, pod: Pod, node: str) -> bool:
        """Whether the node would take a pod that counts there already, if it came now."""
        request = pod_request_of(pod)
        self._table.remove_pod(pod.metadata.uid)
        try:
            return self.fits(node, request.amounts) and node in self._table.eligible(request)
        finally:
            self._table.add_pod(pod, node)

    def taken(self) -> Mapping[tuple[str, str], int]:
        """What the plan takes so far, for `restore`."""
        return dict(self._taken)

    def restore(self, taken: Mapping[tuple[str, str], int]) -> None:
        self._taken = dict(taken)

    def eligible(self, request: PodRequest) -> frozenset[str]:
        """Nodes that would take the pod if there were room; worked out once for all of a kind."""
        kind = self._kind_of(request)
        if kind not in self._eligible:
            self._eligible[kind] = frozenset(self._table.eligible(request))
        return self._eligible[kind]

    def why_not(self, request: PodRequest, node: str) -> str:
        """What the node lacks for the pod, in words; empty if nothing."""
        key = (self._kind_of(request), request.amounts, node)
        if key not in self._lacks:
            self._lacks[key] = self._table.why_not_on(node, request)
        return self._lacks[key]

    def words_against(self, request: PodRequest, node: str) -> str:
        """Why a guest finds no place there: what the node says, or what others have of it."""
        return (
            self.why_not(request, node)
            or self.lacking_words(node, request)
            or "has no room beside what is sold"
        )

    def _kind_of(self, request: PodRequest) -> Hashable:
        """Nodes tell those of one kind apart by their amounts alone: labels of its own, as pods of
        a StatefulSet have, make a pod another kind only where terms are about them."""
        known = self._kinds.get(id(request))
        if known is None:
            kind: Hashable = id(request)
            if not (depends_on_pods(request) or self._table.is_kept_away(request)):
                kind = (request.tolerations, request.node_labels, request.node_terms)
            known = self._kinds[id(request)] = request, kind
        return known[1]

    def _forget(self) -> None:
        """The table has changed."""
        self._kinds.clear()
        self._eligible.clear()
        self._lacks.clear()

    def nearness(self, node: str, request: PodRequest) -> tuple[float, float]:
        """How near the node comes to having room: by what it lacks most, then by all it lacks."""
        shares = [
            min(self.free(node, name) / amount, 1.0) for name, amount in request.amounts if amount
        ]
        return min(shares, default=1.0), sum(shares)

    def lacking_words(self, node: str, request: PodRequest) -> str:
        """What keeps one more such pod off the node, as things are in this plan."""
        for name, amount in request.amounts:
            free = self.free(node, name)
            if free < amount:
                return ResourceShortage(
                    name, amount, free, self._table.allocatable(node, name)
                ).words
        return self.why_not(request, node)


def depends_on_pods(request: PodRequest) -> bool:
    """Whether where it may go depends on where other pods are, or where others go on it."""
    return bool(
        request.pod_affinity
        or request.pod_anti_affinity
        or request.spread
        or request.ports
        or request.disks
    )
