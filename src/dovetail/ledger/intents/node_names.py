"""Names and uuids of what intents have in the ledger: nodes, devices, clusters and who holds them.

They follow from the names of things, so a node that comes back is the one it was, and whoever knows
an app, its deployment and its cluster knows who holds what it has there.
"""

from __future__ import annotations

import hashlib
import uuid as uuids

from dovetail.intents.names import ClusterName, label_value
from dovetail.ledger import devices

NAMESPACE = uuids.UUID("0d2f2b1e-6c55-5d0e-8f53-7f0f0a4f9f13")
KUBE_PODS = "KUBE_PODS"
"""The type of the consumer that stands for the pods of others on a node."""
DEPLOYMENT = "INTENT_DEPLOYMENT"
"""The type of the consumer that holds what an app of a deployment has on a cluster."""


def root_name(cluster: ClusterName, node: str) -> str:
    """`provider+cluster/node`; one that is too long ends in a digest of all of it."""
    name = f"{cluster}/{node}"
    if len(name) <= devices.LONGEST_NODE:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: devices.LONGEST_NODE - 17]}~{digest}"


def root_uuid(cluster: ClusterName, node: str) -> str:
    return devices.own_uuid(root_name(cluster, node))


def device_uuid(root: str, device: str) -> str:
    """By the name of the node's root."""
    return devices.own_uuid(devices.provider_name(root, device))


def aggregate_uuid(cluster: ClusterName) -> str:
    return str(uuids.uuid5(NAMESPACE, f"cluster {cluster}"))


def others_uuid(root: str) -> str:
    """The consumer that stands for the pods of others, by the name of the node's root."""
    return str(uuids.uuid5(NAMESPACE, f"pods {root}"))


def consumer_uuid(deployment: str, app: str, cluster: ClusterName) -> str:
    """Who holds what an app of a deployment has on a cluster; also by the labels of its pods."""
    return str(uuids.uuid5(NAMESPACE, f"deployment {deployment} {label_value(app)} {cluster}"))
