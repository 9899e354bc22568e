"""Clients of registered clusters, by the kubeconfigs that came with them.

The mirror connects with `connect_to` and keeps its client as long as it follows a cluster; the
worker of deployments asks `ClusterClients` whenever it has something to send.
"""

from __future__ import annotations

from pathlib import Path

from dovetail.aio.thread_results import result_of
from dovetail.intents.names import ClusterName
from dovetail.kube.api.access import BadKubeconfig
from dovetail.kube.api.client import KubeClient, connect, connect_by_document
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import ApiUnreachable
from dovetail.ledger import Ledger
from dovetail.ledger.intents import clusters
from dovetail.ledger.intents.clusters import ClusterAccess

AGENT = "dovetail-intents"


def connect_to(
    access: ClusterAccess,
    *,
    directory: Path | None = None,
    limits: ClientLimits = DEFAULT_LIMITS,
) -> KubeClient:
    """`directory` has the kubeconfigs that clusters refer to by name: the operator's own files, and
    so trusted with all that a kubeconfig can say. Raises BadKubeconfig."""
    if not access.reference:
        return connect_by_document(access.kubeconfig, agent=AGENT, limits=limits)
    if directory is None:
        raise BadKubeconfig(f"kubeconfig {access.reference!r}: the server keeps none")
    file = directory / access.reference
    if file.name != access.reference or not file.is_file():
        raise BadKubeconfig(f"kubeconfig {access.reference!r}: the server has none of that name")
    return connect(str(file), agent=AGENT, limits=limits)


class ClusterClients:
    """One client for each cluster that somebody asked for."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        directory: Path | None = None,
        limits: ClientLimits = DEFAULT_LIMITS,
    ) -> None:
        self._ledger = ledger
        self._directory, self._limits = directory, limits
        self._clients: dict[ClusterName, tuple[ClusterAccess, KubeClient]] = {}

    async def client_of(self, cluster: ClusterName) -> KubeClient | None:
        """None: there is no way to it. Raises ApiUnreachable if the way there is cannot be used."""
        found = await result_of(self._ledger.read(lambda tx: clusters.accesses(tx, [cluster])))
        access = found.get(cluster)
        known = self._clients.get(cluster)
        if known is not None and known[0] == access:
            return known[1]
        if known is not None:
            del self._clients[cluster]
            known[1].close()
        if access is None:
            return None
        try:
            client = connect_to(access, directory=self._directory, limits=self._limits)
        except BadKubeconfig as error:
            raise ApiUnreachable(str(error)) from error
        self._clients[cluster] = access, client
        return client

    def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for _, each in clients:
            each.close()
