"""The manager's knowledge as documents, for the control socket. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dovetail.core.explanation import document
from dovetail.node.admission.admission_log import AdmissionLog, AdmissionRecord
from dovetail.node.admission.explain import explanation_of
from dovetail.node.report.capacity import NodeStatus
from dovetail.node.state.pod_state import ContainerHolding, PodState
from dovetail.node.state.store import StateStore


def state(store: StateStore, node: NodeStatus) -> dict[str, Any]:
    known = store.state
    return {
        "pods": [pod(store, each) for each in in_order(known.pods.values())],
        "removals": [
            {"uid": uid, "waiting_for": list(known.removals[uid])} for uid in sorted(known.removals)
        ],
        "node": msgspec.to_builtins(node),
        "troubles": list(store.troubles),
    }


def pod(store: StateStore, found: PodState) -> dict[str, Any]:
    return {
        "uid": found.uid,
        "namespace": found.namespace,
        "name": found.name,
        "role": found.role,
        "type": found.type,
        "admitted": found.admitted,
        "at": found.at,
        "plugins": list(found.plugins),
        "containers": [
            container(store, found.uid, name, found.containers[name])
            for name in sorted(found.containers)
        ],
    }


def container(store: StateStore, uid: str, name: str, holding: ContainerHolding) -> dict[str, Any]:
    applied = store.applied.get((uid, name))
    return {
        "name": name,
        "id": applied.id if applied else "",
        "allocations": {
            resource: msgspec.to_builtins(info, str_keys=True)
            for resource, info in sorted(holding.allocations.items())
        },
        "missing": list(holding.missing),
    }


def explanation(name: str, records: AdmissionLog, store: StateStore) -> dict[str, Any] | None:
    """Of a pod by uid, namespace/name or name: what it holds, and how that came about."""
    admissions = records.of(name)
    held = [
        pod(store, each)
        for each in in_order(store.pods.values())
        if name in (each.uid, f"{each.namespace}/{each.name}", each.name)
    ]
    if not admissions and not held:
        return None
    return {
        "pods": held,
        "admissions": [admission(each) for each in admissions],
    }


def admission(record: AdmissionRecord) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record, str_keys=True)
    return {**found, "explanation": document(explanation_of(record))}


def in_order(pods: Iterable[PodState]) -> list[PodState]:
    return sorted(pods, key=lambda each: (each.namespace, each.name, each.uid))
