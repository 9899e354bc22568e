"""What others use of nodes: one consumer per node stands for all pods that are not ours.

`nodes` has it counted when pods changed, `charges` when a deployment took its claim or gave it
back: pods with the labels of a deployment that holds nothing are somebody's, but not ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.inventory import Inventory
from dovetail.ledger import claims, devices, inventories, providers, resource_classes
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.intents.node_names import KUBE_PODS, consumer_uuid, device_uuid, others_uuid
from dovetail.ledger.intents.node_rows import NodeContent, NodeRow, content_of, of_roots
from dovetail.ledger.intents.observed import DeviceUse, NodeDocument
from dovetail.ledger.intents.resource_names import class_of_resource
from dovetail.podfit.objects import Node
from dovetail.podfit.pod_sum import allocatable_of

PROJECT = "kube"
LARGEST_AMOUNT = 2**60
"""Of one consumer: what several hold together still fits 64 bits."""
AT_ONCE = 100
"""Nodes whose claims are written together."""


def total_of(units: int) -> Inventory:
    """An inventory has at least one unit; where a node has none, none can be had."""
    return Inventory(total=max(units, 1), reserved=0 if units > 0 else 1, max_unit=LARGEST_AMOUNT)


def is_pool(device: Device) -> bool:
    """Whether it is a resource of the node, of which a device plugin tells only a number."""
    return "/" in device.kind and device.name == device.kind.replace("/", ".")


def allocations_on(
    root: str,
    equipment: NodeDocument | NodeContent,
    amounts: Mapping[str, int],
    uses: Iterable[DeviceUse],
) -> dict[str, dict[str, int]]:
    """Amounts of resources and devices of one node, as a claim has them.

    A device that the node also counts as a resource is taken as both.
    """
    found = {class_of_resource(name): units for name, units in amounts.items()}
    allocations = {devices.own_uuid(root): found}
    known = {each.name: each for each in equipment.devices}
    for use in uses:
        device = known.get(use.device)
        if device is None:
            continue
        if "/" in device.kind and device.kind in equipment.node.status.allocatable:
            name = class_of_resource(device.kind)
            found[name] = found.get(name, 0) + use.units
        if not is_pool(device):
            at = device_uuid(root, device.name)
            of_device = allocations.setdefault(at, {DEVICE_CLASS: 0})
            of_device[DEVICE_CLASS] += use.units
    return {
        at: {name: min(units, LARGEST_AMOUNT) for name, units in each.items() if units > 0}
        for at, each in allocations.items()
        if any(units > 0 for units in each.values())
    }


def observe(tx: Transaction, changed: Sequence[tuple[NodeRow, NodeContent]]) -> None:
    ours = _holding(tx, changed)
    seen = []
    for row, content in changed:
        others = [
            each
            for each in content.pods
            if not each.deployment
            or consumer_uuid(each.deployment, each.app, row.cluster) not in ours
        ]
        amounts: dict[str, int] = {}
        for pod in others:
            for name, units in pod.amounts:
                amounts[name] = amounts.get(name, 0) + units
        mine = {each.uid for each in content.pods} - {each.uid for each in others}
        uses = [each for each in content.uses if each.pod not in mine]
        allocations = allocations_on(row.root, content, amounts, uses)
        ensure_inventories(tx, row.root, content.node, allocations)
        seen.append(
            Claim(
                consumer=others_uuid(row.root),
                project=PROJECT,
                user=row.cluster,
                consumer_type=KUBE_PODS,
                allocations=allocations,
            )
        )
    claims.observe(tx, seen)


def _holding(tx: Transaction, changed: Iterable[tuple[NodeRow, NodeContent]]) -> set[str]:
    """Of the deployments that pods say they are of, the consumers that hold something."""
    said = {
        consumer_uuid(pod.deployment, pod.app, row.cluster)
        for row, content in changed
        for pod in content.pods
        if pod.deployment
    }
    return {
        uuid
        for some in chunks(sorted(said))
        for (uuid,) in tx.rows(
            f"SELECT uuid FROM consumers WHERE uuid IN ({marks(len(some))})",  # noqa: S608
            some,
        )
    }


def ensure_inventories(
    tx: Transaction, root: str, node: Node, allocations: Mapping[str, Mapping[str, int]]
) -> None:
    """Pods may use what their node does not have any more."""
    uuid = devices.own_uuid(root)
    there = {
        class_of_resource(name)
        for name, units in allocatable_of(node.status.allocatable).items()
        if units > 0
    }
    missing = allocations.get(uuid, {}).keys() - there
    if not missing:
        return
    provider = providers.get(tx, uuid)
    now = inventories.of_provider(tx, provider)
    for name in sorted(missing - now.keys()):
        resource_classes.ensure(tx, name)
        provider = inventories.add(tx, provider, name, total_of(0))


def recount(tx: Transaction, roots: Iterable[int]) -> None:
    """Count again what others use of these nodes: a deployment took or gave back its claim."""
    rows = [row for row in of_roots(tx, roots, lock=True) if not row.is_gone]
    for some in chunks(rows, AT_ONCE):
        observe(tx, [(row, content_of(row)) for row in some])
