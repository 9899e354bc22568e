"""A server and two real clusters: what an operator of both would do and see.

The clusters have what c1 and c3 of the acceptance scenario have free, and nothing else on them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dovetail.intents.names import DEPLOYMENT_LABEL
from tests.support.intents import hardware, rest_documents, scenario
from tests.support.intents.caller import Caller
from tests.support.intents.rest_documents import Post
from tests.support.intents.scenario import Scenario
from tests.support.kube.cluster import Cluster, node_object
from tests.support.paths import DOVETAIL
from tests.support.processes import reserved_port
from tests.support.server import Server

Json = dict[str, Any]
NAMES = ("c1", "c3")
KINDS = "serviceaccounts,configmaps,services,statefulsets,deployments,replicasets,pods"
SECONDS = 120.0


class RealFleet:
    """The clusters, a server that is killed and started again, and a caller of it."""

    def __init__(self, server: Server, clusters: dict[str, Cluster]) -> None:
        self.server, self.clusters = server, clusters
        self.caller = Caller(server.url)

    def register(self) -> None:
        """Clusters by their kubeconfigs; the composite app; and wait until both are seen."""
        self.caller.post(Post(path="cluster-providers", body=_named(hardware.PROVIDER)))
        for name, cluster in self.clusters.items():
            path = f"cluster-providers/{hardware.PROVIDER}/clusters"
            body = {**_named(name), "spec": {"kubeconfig": cluster.kubeconfig.read_text()}}
            self.caller.post(Post(path=path, body=body))
            label = {"clusterLabel": hardware.LABEL}
            self.caller.post(Post(path=f"{path}/{name}/labels", body=label))
        for post in rest_documents.composite_posts(scenario.base().objects):
            self.caller.post(post)

    def make(self, wanted: Scenario) -> str:
        for post in wanted.intent_posts():
            self.caller.post(post)
        return wanted.group.name

    def act(self, group: str, action: str) -> tuple[int, Json]:
        return self.caller.call("POST", f"{group}/{action}")

    def status(self, group: str) -> Json:
        status, said = self.caller.call("GET", f"{group}/status")
        assert status == 200, said
        return said

    def state(self, group: str) -> str:
        state: str = self.status(group)["status"]
        return state

    def is_seen(self, group: str) -> bool:
        """Whether the group could be deployed now."""
        status, said = self.caller.call("GET", f"{group}/plan")
        return status == 200 and bool(said["feasible"])

    def not_ready(self, group: str) -> list[str]:
        """Clusters that a plan of the group would say are away."""
        _, said = self.caller.call("GET", f"{group}/plan")
        return [each["cluster"] for each in said["fleet"]["notReady"]]

    def instantiate(self, group: str) -> str:
        """The id of the deployment."""
        until(lambda: self.is_seen(group), "feasible plan")
        assert self.act(group, "approve")[0] == 202
        status, said = self.act(group, "instantiate")
        assert status == 202, said
        deployment: str = said["deployment"]
        return deployment

    def charges(self, group: str) -> dict[tuple[str, str], Json]:
        """By cluster and node."""
        return {
            (each["cluster"], charge["node"]): charge["resources"]
            for app in self.status(group)["apps"]
            for each in app["clusters"]
            for charge in each["charges"]
        }

    def pods(self, group: str) -> list[Json]:
        return [
            pod
            for app in self.status(group)["apps"]
            for each in app["clusters"]
            for pod in each["pods"]
        ]

    def left(self, deployment: str) -> list[str]:
        """All that clusters have of a deployment."""
        found = []
        for name, cluster in self.clusters.items():
            selector = f"{DEPLOYMENT_LABEL}={deployment}"
            listed = json.loads(cluster.kubectl("get", KINDS, "-A", "-l", selector, "-o", "json"))
            found += [
                f"{name}: {each['kind']} {each['metadata']['name']}" for each in listed["items"]
            ]
        return found

    def objects(self, cluster: str, kind: str, name: str) -> Json:
        text = self.clusters[cluster].kubectl("get", kind, name, "-o", "json")
        found: Json = json.loads(text)
        return found

    def end(self, group: str, deployment: str) -> None:
        """Terminate it, and see that nothing is left anywhere."""
        assert self.act(group, "terminate")[0] == 202
        until(lambda: self.state(group) == "Terminated", "end")
        assert self.left(deployment) == []
        assert self.charges(group) == {}


def until(holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {seconds:.0f} s")
        time.sleep(0.2)


def add_nodes(clusters: dict[str, Cluster]) -> None:
    for name, cluster in clusters.items():
        for node, free in hardware.CLUSTERS[name].items():
            more = {key: value for key, value in free.items() if "/" in key}
            body = node_object(node, cpu=free["cpu"], memory=free["memory"], more=more)
            cluster.kubectl("create", "-f", "-", given=body)


@contextmanager
def running_fleet(
    clusters: dict[str, Cluster], directory: Path, *options: str
) -> Iterator[RealFleet]:
    """With a server on a ledger of its own."""
    with reserved_port() as port:
        command = [
            *(DOVETAIL, "serve", "--database", f"sqlite:///{directory}/ledger.db"),
            *("--host", "127.0.0.1", "--auth", "noauth2", "--policy", "legacy"),
            *("--port", str(port), *options),
        ]
        server = Server(command, port, directory / "server.log")
        server.start()
        fleet = RealFleet(server, clusters)
        try:
            fleet.register()
            yield fleet
        finally:
            server.kill()


def _named(name: str) -> Json:
    return {"metadata": {"name": name}}
