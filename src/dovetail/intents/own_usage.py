"""What a fleet would have without one deployment, so that an update is planned as if it were gone.

Its pods and its charges are taken out of the nodes, and nothing else. What it holds on other nodes
than its pods run on is taken out there, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from dovetail.core.device import Device
from dovetail.intents.deployment import AppOnCluster
from dovetail.intents.fleet import ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.names import DEPLOYMENT_LABEL, ClusterName, label_value

NodeCharges = Mapping[ClusterName, Mapping[str, Mapping[str, int]]]
"""By cluster, node and resource."""


def without_deployment(
    fleet: FleetSnapshot, deployment: str, charges: NodeCharges, placements: Iterable[AppOnCluster]
) -> FleetSnapshot:
    devices: dict[ClusterName, dict[str, set[str]]] = {}
    for placed in placements:
        for workload in placed.workloads:
            for node, names in workload.devices.items():
                devices.setdefault(placed.cluster, {}).setdefault(node, set()).update(names)
    changed = {
        name: without(cluster, deployment, charges.get(name, {}), devices.get(name, {}))
        if name in charges or name in devices
        else cluster
        for name, cluster in fleet.clusters.items()
    }
    return replace(fleet, clusters=changed)


def without(
    cluster: ClusterInventory,
    deployment: str,
    charges: Mapping[str, Mapping[str, int]],
    devices: Mapping[str, set[str]],
) -> ClusterInventory:
    nodes = tuple(
        node_without(
            each,
            deployment,
            charges.get(each.node.metadata.name, {}),
            devices.get(each.node.metadata.name, set()),
        )
        for each in cluster.nodes
    )
    return replace(cluster, nodes=nodes)


def node_without(
    node: ClusterNode, deployment: str, charges: Mapping[str, int], devices: set[str]
) -> ClusterNode:
    own = label_value(deployment)
    kept = node.held_devices - devices
    freed = [device_without(each, charges.get(each.kind, 0), kept) for each in node.devices]
    return replace(
        node,
        pods=tuple(pod for pod in node.pods if pod.metadata.labels.get(DEPLOYMENT_LABEL) != own),
        held={
            resource: max(units - charges.get(resource, 0), 0)
            for resource, units in node.held.items()
        },
        devices=tuple(freed),
        held_devices=frozenset(
            before.name
            for before, after in zip(node.devices, freed, strict=True)
            if before.name in kept and after is before
        ),
    )


def device_without(device: Device, own_units: int, held: frozenset[str]) -> Device:
    """Where a device stands for a number of pieces, those of the deployment are free."""
    if not own_units:
        return device
    others_left = 0 if device.name in held else device.units
    return replace(device, units=others_left + own_units)
