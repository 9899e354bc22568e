"""Pods as users write them, for the image of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.node import image

ROLE = "kubernetes.io/pod-role"


def pod_object(
    name: str,
    *,
    role: str = "",
    annotations: Mapping[str, str] | None = None,
    containers: Sequence[Mapping[str, Any]] | None = None,
    node: str = "",
    scheduler: str = "",
    spec: Mapping[str, Any] | None = None,
    **container: Any,
) -> dict[str, Any]:
    """Of a container `main` (`container` is about it, as in `container_object`), or of these.

    It ends in a second when it is deleted; `spec` has what else there is.
    """
    marks = {**({ROLE: role} if role else {}), **(annotations or {})}
    found = [container_object(**container)] if containers is None else list(containers)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": marks},
        "spec": {
            "containers": found,
            # With none, the API server would forget it before the kubelet ended it.
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "dnsPolicy": "Default",
            "enableServiceLinks": False,
            **({"nodeName": node} if node else {}),
            **({"schedulerName": scheduler} if scheduler else {}),
            **(spec or {}),
        },
    }


def container_object(
    name: str = "main",
    *,
    cpu: str = "100m",
    memory: str = "32Mi",
    resources: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Its limits are its requests; `resources` are further ones. Without a command it waits."""
    amounts = {"cpu": cpu, "memory": memory, **(resources or {})}
    return {
        "name": name,
        "image": image.REFERENCE,
        "imagePullPolicy": "Never",
        **({"command": list(command)} if command else {}),
        "resources": {"requests": amounts, "limits": amounts},
        **more,
    }
