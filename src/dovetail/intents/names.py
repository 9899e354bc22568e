"""Names of clusters (`provider+cluster`, as EMCO writes them), and labels of what is deployed."""

from __future__ import annotations

import hashlib

ClusterName = str
"""`provider+cluster`."""

SEPARATOR = "+"

DEPLOYMENT_LABEL = "dovetail.dev/deployment"
APP_LABEL = "dovetail.dev/app"
"""On all objects and pods of a deployment: by them its pods are recognised."""
LONGEST_LABEL = 63


def cluster_name(provider: str, cluster: str) -> ClusterName:
    return f"{provider}{SEPARATOR}{cluster}"


def provider_and_cluster(name: ClusterName) -> tuple[str, str]:
    provider, _, cluster = name.partition(SEPARATOR)
    return provider, cluster


def label_value(name: str) -> str:
    """The value of `APP_LABEL` for an app: its name, which may be longer than a label can be."""
    if len(name) <= LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: LONGEST_LABEL - 11]}-{digest}"
