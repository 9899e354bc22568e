"""Deployments as the ledger knows them: record, objects, what is held; for status and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dovetail.core.claim import Holding
from dovetail.core.errors import NotFound
from dovetail.intents.deployment import DeploymentRecord, DeploymentState, OutboxObject
from dovetail.intents.documents.kinds import KINDS
from dovetail.intents.fleet import ClusterInventory, FleetSnapshot
from dovetail.intents.names import ClusterName
from dovetail.ledger import Transaction, claims
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.intents import deployments, objects
from dovetail.ledger.intents.node_names import consumer_uuid, device_uuid, root_name, root_uuid
from dovetail.ledger.intents.resource_names import class_of_resource

GROUP = KINDS["deployment-intent-group"]
Holdings = Mapping[tuple[str, ClusterName], Holding]
"""By app and cluster."""


class KnownDeployment(msgspec.Struct, frozen=True):
    """A deployment as the ledger knows it."""

    record: DeploymentRecord
    objects: list[OutboxObject]
    holdings: Holdings
    profile: str = ""
    """The composite profile of its group."""


def known_deployment(tx: Transaction, group: str, instance: str) -> KnownDeployment:
    found = objects.find(tx, group, GROUP.name)
    if found is None:
        raise NotFound(f"there is no {GROUP.name} {group.rpartition('/')[2]!r}")
    spec = msgspec.json.decode(found.text, type=dict[str, Any]).get("spec") or {}
    profile = spec.get("compositeProfile", "")
    record = deployments.current(tx, group)
    if instance and (record is None or record.id != instance):
        raise NotFound(f"the group has no instance {instance!r}")
    if record is None:
        state = DeploymentState.CREATED
        record = DeploymentRecord(
            id="", group=group, revision=0, state=state, created_at=found.created_at
        ).moved(state, found.created_at)
        return KnownDeployment(record, [], {}, profile)
    sent = deployments.objects(tx, record.id)
    pairs = {(each.app, each.cluster) for each in record.document.placements}
    pairs |= {(each.app, each.cluster) for each in sent}
    holdings = {
        pair: held
        for pair in sorted(pairs)
        if (held := claims.of_consumer(tx, consumer_uuid(record.id, *pair))) is not None
    }
    return KnownDeployment(record, sent, holdings, profile)


def charges_of(
    holdings: Holdings, fleet: FleetSnapshot
) -> dict[tuple[str, ClusterName], dict[str, dict[str, int]]]:
    """By node and resource; what is held of a node that is gone is told by its provider."""
    found: dict[tuple[str, ClusterName], dict[str, dict[str, int]]] = {}
    for pair, holding in holdings.items():
        names = node_names(fleet.clusters.get(pair[1]))
        nodes = found.setdefault(pair, {})
        for held in holding.held:
            node, resources = names.get(held.provider_uuid, (held.provider_uuid, {}))
            amounts = nodes.setdefault(node, {})
            resource = resources.get(held.class_name, held.class_name)
            amounts[resource] = amounts.get(resource, 0) + held.amount
    return found


def node_names(
    cluster: ClusterInventory | None,
) -> dict[str, tuple[str, Mapping[str, str]]]:
    """By provider: the node, and what its classes stand for."""
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    if cluster is None:
        return found
    for each in cluster.nodes:
        name = each.node.metadata.name
        resources = {class_of_resource(one): one for one in each.node.status.allocatable}
        found[root_uuid(cluster.name, name)] = (name, resources)
        root = root_name(cluster.name, name)
        for device in each.devices:
            own = {DEVICE_CLASS: f"device {device.name}"}
            found[device_uuid(root, device.name)] = (name, own)
    return found
