"""Owned objects of a Machine: Service and StatefulSet of each type, and the node pool, as written.

The planner compares them with what is there (`is_contained`) and has only what differs written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from dovetail.core.errors import Malformed
from dovetail.core.quantity import parse
from dovetail.machines.documents import (
    MachineNodePool,
    MachineSpec,
    NodePoolSpec,
    TypeReference,
)
from dovetail.machines.names import (
    FINALIZER,
    MACHINE_GROUP,
    RESERVATION,
    STOCK_GATE,
    role_labels,
    stock_name,
)
from dovetail.machines.placement_rules import expressions_of, tolerations_of
from dovetail.machines.shapes import UnitShape
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of

NOBODY = 65534
QUANTITIES = ("requests", "limits")
"""Fields of a container's resources whose values are quantities."""


def service_of(shape: UnitShape, group: str) -> dict[str, Any]:
    labels = role_labels(group, shape.name, RESERVATION)
    return {
        "metadata": {"labels": labels},
        # Headless: a StatefulSet wants one, and nobody calls a sleeper.
        "spec": {"type": "ClusterIP", "clusterIP": "None", "selector": labels},
    }


def stateful_set_of(
    shape: UnitShape, group: str, replicas: int, settings: StockSettings
) -> dict[str, Any]:
    labels = role_labels(group, shape.name, RESERVATION)
    return {
        "metadata": {"labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "serviceName": stock_name(shape.name, group),
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            # The operator replaces sleepers itself, one that holds nothing first.
            "updateStrategy": {"type": "OnDelete"},
            "template": sleeper_template(shape, group, settings),
        },
    }


def sleeper_template(shape: UnitShape, group: str, settings: StockSettings) -> dict[str, Any]:
    term = {"matchExpressions": expressions_of(shape, group)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    sleeper = {
        "name": "sleeper",
        "image": settings.image,
        "command": ["sleep"],
        "args": ["infinity"],
        "resources": {"requests": shape.requests, "limits": shape.requests},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "metadata": {"labels": role_labels(group, shape.name, RESERVATION)},
        "spec": {
            "schedulingGates": [{"name": STOCK_GATE}],
            # `sleep` as the first process ignores SIGTERM: a unit must not wait for it.
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": NOBODY,
                "runAsGroup": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "tolerations": tolerations_of(shape, group),
            "affinity": {"nodeAffinity": required},
            "containers": [sleeper],
        },
    }


def sleeper_request(shape: UnitShape, group: str, settings: StockSettings) -> PodRequest:
    """What a sleeper of the type asks of its node, whether or not there is one."""
    content = msgspec.json.encode(sleeper_template(shape, group, settings))
    return _request_from(content, settings.namespace)


@lru_cache(maxsize=1024)
def _request_from(template: bytes, namespace: str) -> PodRequest:
    pod = msgspec.json.decode(template, type=Pod)
    meta = msgspec.structs.replace(pod.metadata, namespace=namespace)
    return pod_request_of(msgspec.structs.replace(pod, metadata=meta))


def pool_spec_of(spec: MachineSpec, group: str) -> NodePoolSpec:
    return NodePoolSpec(
        machine_group=group,
        node_pool=spec.node_pool,
        machine_type_stock=tuple(TypeReference(name=each.name) for each in spec.machine_types),
    )


def pool_of(wanted: NodePoolSpec) -> dict[str, Any]:
    labels = {MACHINE_GROUP: wanted.machine_group}
    return {
        "metadata": {"labels": labels, "finalizers": [FINALIZER]},
        "spec": msgspec.to_builtins(wanted),
    }


def is_pool(there: MachineNodePool, wanted: NodePoolSpec) -> bool:
    """Compared as they were decoded: a pool may have thousands of nodes."""
    meta = there.metadata
    return (
        there.spec == wanted
        and meta.labels.get(MACHINE_GROUP) == wanted.machine_group
        and FINALIZER in meta.finalizers
    )


def is_contained(wanted: object, actual: object, *, as_quantity: bool = False) -> bool:
    """Whether the object that is there says all that is wanted; what else it says is others'.

    Lists have to be equal in length. Requests and limits are compared as amounts, since the API
    server writes them its own way.
    """
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            return not wanted and actual is None
        return all(
            is_contained(value, actual.get(key), as_quantity=as_quantity or key in QUANTITIES)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(actual, list | tuple)
            and len(wanted) == len(actual)
            and all(map(is_contained, wanted, actual))
        )
    return wanted == actual or (as_quantity and _is_same_quantity(wanted, actual))


def _is_same_quantity(one: object, other: object) -> bool:
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    try:
        return parse(one) == parse(other)
    except Malformed:
        return False
