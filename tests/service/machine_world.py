"""Short words for tests of machines in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from dovetail.core.device import Device
from dovetail.ledger import Ledger, inventories, providers
from dovetail.ledger.machines.queue import GroupQueue, QueuedGuest
from dovetail.ledger.machines.stock import TypeStock, class_of, group_provider
from dovetail.ledger.machines.units import UnitClaim
from dovetail.machines.names import GPU_TYPE
from dovetail.machines.shapes import UnitShape
from dovetail.podfit.pod_sum import CPU, MEMORY
from tests.ledger.world import new
from tests.rest.fleets import uid

GROUP = "general"
GIBIBYTE = 2**30


def shape(
    name: str = "large",
    *,
    gpus: int = 0,
    cpu: int = 4_000,
    memory: int = 8 * GIBIBYTE,
    root: str | None = None,
    share: Fraction = Fraction(1),
) -> UnitShape:
    amounts = {CPU: cpu, MEMORY: memory} | ({GPU_TYPE: gpus} if gpus else {})
    return UnitShape(
        name=name,
        amounts=amounts,
        requests={},
        gpu_label=None,
        root=root or name,
        share=share,
        line=(name,) if root is None else (name, root),
    )


def stock(available: int, *shapes: UnitShape) -> dict[str, TypeStock]:
    return {each.name: TypeStock(available, each.root, each.share) for each in shapes}


def sleeper(of: UnitShape, node: str = "n1", consumer: str | None = None) -> UnitClaim:
    return UnitClaim(consumer=consumer or new(), group=GROUP, shape=of, node=node)


def guest(
    of: UnitShape,
    node: str = "n1",
    namespace: str = "team",
    user: str = "ada",
    consumer: str | None = None,
) -> UnitClaim:
    return UnitClaim(
        consumer=consumer or new(),
        group=GROUP,
        shape=of,
        node=node,
        namespace=namespace,
        user=user,
    )


def pool(units: int, node: str = "n1") -> Device:
    """GPUs as a device plugin tells them: a number."""
    return Device(node=node, name="nvidia.com.gpu", kind=GPU_TYPE, units=units)


def cards(*names: str, node: str = "n1", failed: str = "") -> list[Device]:
    """GPUs that are described one by one."""
    return [Device(node=node, name=each, kind=GPU_TYPE, healthy=each != failed) for each in names]


def stocked(ledger: Ledger, provider: str) -> dict[str, tuple[int, int, int]]:
    """Total, reserved and used by class of a provider; none if it is not there."""
    found = ledger.read(lambda tx: providers.find_named(tx, provider)).result()
    if found is None:
        return {}
    listed = ledger.read(lambda tx: inventories.of_provider(tx, found)).result()
    return {
        name: (each.inventory.total, each.inventory.reserved, each.used)
        for name, each in listed.items()
    }


def group_stock(ledger: Ledger, machine_type: str, group: str = GROUP) -> tuple[int, int, int]:
    return stocked(ledger, group_provider("", group))[class_of(machine_type)]


def queued(
    pod: str,
    of: str = "large",
    reason: str | None = "SoldOut",
    message: str = "all units are sold",
    since: str | None = "2026-11-18T09:00:00Z",
) -> QueuedGuest:
    return QueuedGuest(
        uid=uid(pod),
        namespace="team",
        pod=pod,
        type=of,
        since=since,
        reason=reason,
        message=message,
    )


def line(
    *guests: QueuedGuest,
    lent_seconds: Mapping[str, int] | None = None,
    pods: Mapping[str, str] | None = None,
) -> GroupQueue:
    return GroupQueue(
        waiting=dict(Counter(each.type for each in guests)),
        guests=guests,
        lent_seconds=dict(lent_seconds or {}),
        pods=dict(pods or {}),
    )
