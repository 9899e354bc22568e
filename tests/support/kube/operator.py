"""Operators of machines as processes of their own, against a cluster of the tests.

operator.install(cluster)
with operator.running(cluster, database) as replica:
    cluster.await_that(lambda: replica.leads, "leader")
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dovetail.kube import manifests
from tests.support.kube.cluster import OK, Cluster
from tests.support.paths import DOVETAIL
from tests.support.processes import Process, reserved_port

NAMESPACE = "dovetail"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/dovetail-operator"
LEASE_SECONDS = "1"
KINDS = ("machines", "machinenodepools")


def install(cluster: Cluster, parts: Sequence[str] = ("machines-crds",)) -> None:
    """What the manifests have for operators, and their namespace."""
    cluster.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(parts))
    definitions = [f"crd/{kind}.imperator.tenzen-y.io" for kind in KINDS]
    cluster.kubectl("wait", "--for=condition=Established", *definitions)
    cluster.make_namespace(NAMESPACE)


class OperatorProcess(Process):
    """A replica, as an administrator of the cluster; it may be killed, and started again."""

    def __init__(
        self, cluster: Cluster, database: str, port: int, name: str, options: Sequence[str]
    ) -> None:
        self._cluster = cluster
        self._port = port
        command = [DOVETAIL, "operator", "--kubeconfig", cluster.kubeconfig]
        command += ["--database", database, "--namespace", NAMESPACE]
        command += ["--lease-seconds", LEASE_SECONDS, "--metrics-port", str(port), *options]
        super().__init__(command, cluster.directory / f"{name}.log", name=name)

    def start(self) -> None:
        """And wait until it knows the cluster."""
        super().start()
        self.await_ready(lambda: self.told("/readyz") == "ok")

    @property
    def leads(self) -> bool:
        status, said = self._cluster.request("GET", LEASE)
        holder = json.loads(said)["spec"].get("holderIdentity") if status == OK else None
        return f"_{self.pid}_" in (holder or "")

    def told(self, path: str) -> str:
        """The page at `/metrics`, say; nothing if it is not there."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.read().decode() if answer.status == OK else ""
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()


@contextmanager
def running(
    cluster: Cluster, database: str, *options: str, name: str = "operator"
) -> Iterator[OperatorProcess]:
    """One that is ready; however the block ends, none is left behind."""
    with reserved_port() as port:
        process = OperatorProcess(cluster, database, port, name, options)
        try:
            process.start()
            yield process
        finally:
            process.stop()
