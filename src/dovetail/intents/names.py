"""Names of clusters (`provider+cluster`, as EMCO writes them) and labels of what is deployed there."""

from __future__ import annotations

ClusterName = str
"""`provider+cluster`."""

SEPARATOR = "+"

DEPLOYMENT_LABEL = "dovetail.dev/deployment"
APP_LABEL = "dovetail.dev/app"
"""On all objects and pods of a deployment: by them its pods are recognised."""


def cluster_name(provider: str, cluster: str) -> ClusterName:
    return f"{provider}{SEPARATOR}{cluster}"


def provider_and_cluster(name: ClusterName) -> tuple[str, str]:
    provider, _, cluster = name.partition(SEPARATOR)
    return provider, cluster
