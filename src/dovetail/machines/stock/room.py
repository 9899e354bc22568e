"""Room on the nodes of a pool while a plan is made: what is free, less what the plan takes.

Selling and stocking share one `Room`, so that neither gives away what the other has taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
        self._supposed: dict[str, tuple[Pod, str]] = {}
        self._eligible: dict[int, tuple[PodRequest, frozenset[str]]] = {}

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
    def supposing(self) -> Iterator[None]:
        """While it lasts, pods can be supposed on nodes; then the table is as it was before, and
        what they take is taken from the room. Within another, it is part of that."""
        self._supposing += 1
        try:
            yield
        finally:
            self._supposing -= 1
            for pod, node in () if self._supposing else list(self._supposed.values()):
                self.unsuppose(pod)
                self.take(node, pod_request_of(pod).amounts)

    def suppose(self, pod: Pod, node: str) -> None:
        """Judge others as if it were there: their terms, or its own, may be about each other."""
        self._supposed[pod.metadata.uid] = (pod, node)
        self._table.add_pod(pod, node)
        self._eligible.clear()

    def unsuppose(self, pod: Pod) -> None:
        del self._supposed[pod.metadata.uid]
        self._table.remove_pod(pod.metadata.uid)
        self._eligible.clear()

    def taken(self) -> Mapping[tuple[str, str], int]:
        """What the plan takes so far, for `restore`."""
        return dict(self._taken)

    def restore(self, taken: Mapping[tuple[str, str], int]) -> None:
        self._taken = dict(taken)

    def eligible(self, request: PodRequest) -> frozenset[str]:
        """Nodes that would take the pod if there were room; worked out once for a template."""
        found = self._eligible.get(id(request))
        if found is None:
            # The request is kept beside its nodes, so that no other can get its identity.
            found = self._eligible[id(request)] = (
                request,
                frozenset(self._table.eligible(request)),
            )
        return found[1]

    def why_not(self, request: PodRequest, node: str) -> str:
        """What the node lacks for the pod, in words; empty if nothing."""
        return self._table.why_not_on(node, request)

    def share_free(self, node: str, request: PodRequest) -> float:
        """The smallest share of an amount that is free there: one or more, if all is."""
        return min(self.free(node, name) / amount for name, amount in request.amounts)

    def lacking_words(self, node: str, request: PodRequest) -> str:
        """What keeps one more such pod off the node, as things are in this plan."""
        for name, amount in request.amounts:
            free = self.free(node, name)
            if free < amount:
                return ResourceShortage(
                    name, amount, free, self._table.allocatable(node, name)
                ).words
        return self.why_not(request, node)
