"""Pods as far as the ledger knows them by name, for views of hosts and holders.

A consumer is known by its UUID, which of a pod is its uid. Names are what somebody told beside it:
the operator of machines has those of its guests, the mirror those of all pods on nodes of
registered clusters. Of pods there, one consumer may stand for many: the nodes' views have each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents import node_rows
from dovetail.ledger.intents.observed import PODS_DECODER, DeviceUse, PodsDocument, observed_pod
from dovetail.ledger.intents.resource_names import class_of_resource
from dovetail.ledger.machines import queue
from dovetail.ledger.machines.pool_nodes import MACHINE


class PodOnHost(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was seen on a node and has not ended."""

    uid: str
    namespace: str
    name: str
    app: str
    """Of a deployment; empty: it is not of ours."""
    resources: dict[str, int]
    """By class, what it asks for."""
    devices: dict[str, int]
    """By name, units of those that it was seen to have."""


def on_node(tx: Transaction, root: int) -> list[PodOnHost]:
    """By name; nothing is known of a host that is no node of a registered cluster."""
    found: list[PodOnHost] = []
    for seen in seen_on(tx, [root]):
        for pod in filter(None, map(observed_pod, seen.pods)):
            namespace, _, name = pod.key.partition("/")
            one = PodOnHost(
                uid=pod.uid,
                namespace=namespace,
                name=name,
                app=pod.app,
                resources={class_of_resource(each): units for each, units in pod.amounts if units},
                devices=devices_of(pod.uid, seen.uses),
            )
            found.append(one)
    return sorted(found, key=lambda each: (each.namespace, each.name))


def seen_on(tx: Transaction, roots: Iterable[int]) -> Iterator[PodsDocument]:
    for row in node_rows.of_roots(tx, roots):
        if not row.is_gone:
            yield PODS_DECODER.decode(row.pods)


def devices_of(uid: str, uses: Iterable[DeviceUse]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for use in uses:
        if use.pod == uid:
            found[use.device] += use.units
    return dict(found)


def names_of(tx: Transaction, types: Mapping[str, str | None]) -> dict[str, str]:
    """By consumer, the name of its pod where it is known; consumers come with their types. The
    namespace is the consumer's project."""
    found: dict[str, str] = {}
    if MACHINE in types.values():
        for told in queue.every(tx).values():
            named = {each.uid: each.pod for each in told.queue.guests} | told.queue.pods
            found |= {uid: name for uid, name in named.items() if uid in types}
    for seen in seen_on(tx, roots_of(tx, types)):
        for pod in seen.pods:
            if pod.metadata.uid in types:
                found[pod.metadata.uid] = pod.metadata.name
    return found


def roots_of(tx: Transaction, consumers: Iterable[str]) -> set[int]:
    """Of nodes of clusters that these hold something of."""
    return {
        root
        for some in chunks(sorted(consumers))
        for (root,) in tx.rows(
            f"""SELECT DISTINCT p.root_id FROM consumers c
                JOIN allocations a ON a.consumer_id = c.id
                JOIN providers p ON p.id = a.provider_id
                JOIN cluster_nodes n ON n.root_id = p.root_id
                WHERE c.uuid IN ({marks(len(some))})""",  # noqa: S608
            some,
        )
    }
