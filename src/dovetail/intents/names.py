"""Names of clusters: `provider+cluster`, as EMCO writes them, everywhere inside Dovetail."""

from __future__ import annotations

ClusterName = str
"""`provider+cluster`."""

SEPARATOR = "+"


def cluster_name(provider: str, cluster: str) -> ClusterName:
    return f"{provider}{SEPARATOR}{cluster}"


def provider_and_cluster(name: ClusterName) -> tuple[str, str]:
    provider, _, cluster = name.partition(SEPARATOR)
    return provider, cluster
