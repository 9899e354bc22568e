"""A bed of real nodes: a cluster with all its controllers, and kubelets that joined it.

    with node_bed(directory) as bed:
        bed.create_pod("web", role="web")
        bed.await_running("web")
        assert bed.pinned("web").cpus == "0"
        bed.exec("web", "cat", "/proc/self/status")

Everything is in a network of its own (`network`), which the calling thread is in for as long.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import yaml

from dovetail.kube import manifests
from tests.support.kube import assets
from tests.support.kube.cluster import CREATED, OK, Cluster
from tests.support.node import pods_on
from tests.support.node.containerd import Containerd
from tests.support.node.kubelet import network
from tests.support.node.kubelet.agent import Agent
from tests.support.node.kubelet.kubelet import Kubelet
from tests.support.node.kubelet.node import Options, RealNode, programs
from tests.support.node.kubelet.pods import pod_object
from tests.support.node.kubelet.reaper import Reaper
from tests.support.node.pods_on import Pinned
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

WITHIN = 120.0
"""Seconds of a wait: others may be busy on the machine."""
PODS = "/api/v1/namespaces/default/pods"
AGENT = "dovetail-agent"
"""The account whose token the agent shows to the kubelet."""

Found = TypeVar("Found")


class NodeBed:
    """What tests do with it; `nodes` are all, the other names are about the first one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.nodes: list[RealNode] = []
        self.scheduler: Process | None = None

    @property
    def node(self) -> RealNode:
        return self.nodes[0]

    @property
    def kubelet(self) -> Kubelet:
        return self.node.kubelet

    @property
    def containerd(self) -> Containerd:
        return self.node.containerd

    @property
    def agent(self) -> Agent:
        return self.node.agent

    @property
    def device_plugin_directory(self) -> Path:
        return self.node.device_plugin_directory

    def kubectl(self, *arguments: str, **more: Any) -> str:
        return self.cluster.kubectl(*arguments, **more)

    def create_pod(self, name: str, **about: Any) -> dict[str, Any]:
        """As the API server has it then; `about` as in `pod_object`."""
        status, said = self.cluster.request("POST", PODS, pod_object(name, **about))
        assert status == CREATED, said
        made: dict[str, Any] = json.loads(said)
        return made

    def pod(self, name: str) -> dict[str, Any] | None:
        """As it is now."""
        status, said = self.cluster.request("GET", f"{PODS}/{name}")
        found: dict[str, Any] = json.loads(said)
        return found if status == OK else None

    def await_pod(
        self, name: str, holds: Callable[[dict[str, Any]], object], what: str
    ) -> dict[str, Any]:
        """The pod as it was when it did."""

        def look() -> dict[str, Any] | None:
            found = self.pod(name)
            return found if found and holds(found) else None

        return self.await_that(look, f"pod {name}: {what}", about=name)

    def await_phase(self, name: str, phase: str) -> dict[str, Any]:
        return self.await_pod(name, lambda pod: pod["status"].get("phase") == phase, phase)

    def await_running(self, name: str) -> dict[str, Any]:
        """All its containers, init containers that are done aside."""
        return self.await_pod(name, _is_running, "all containers run")

    def run_pod(self, name: str, **about: Any) -> dict[str, Any]:
        """Created, and waited for."""
        self.create_pod(name, **about)
        return self.await_running(name)

    def delete_pod(self, name: str) -> None:
        """Until nobody knows it any more."""
        self.cluster.request("DELETE", f"{PODS}/{name}")
        self.await_gone(name)

    def await_gone(self, name: str) -> None:
        self.await_that(lambda: self.pod(name) is None, f"end of pod {name}", about=name)

    def delete_pods(self) -> None:
        """All that tests made: those of a bed that is shared begin with none."""
        status, said = self.cluster.request("GET", PODS)
        assert status == OK, said
        names = [each["metadata"]["name"] for each in json.loads(said)["items"]]
        for name in names:
            self.cluster.request("DELETE", f"{PODS}/{name}")
        for name in names:
            self.await_gone(name)

    def exec(self, name: str, *command: str, container: str = "main") -> str:
        """What a command in a container says, by way of API server and kubelet."""
        return self.kubectl("exec", name, "-c", container, "--", *command)

    def logs(self, name: str, container: str = "main") -> str:
        return self.kubectl("logs", name, "-c", container)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Of a pod, as they are now."""
        selector = quote(f"involvedObject.name={name}")
        path = f"/api/v1/namespaces/default/events?fieldSelector={selector}"
        status, said = self.cluster.request("GET", path)
        assert status == OK, said
        found: list[dict[str, Any]] = json.loads(said)["items"]
        return found

    def await_event(self, name: str, reason: str, words: str = "") -> dict[str, Any]:
        """One of this reason that says so."""

        def look() -> dict[str, Any] | None:
            told = (each for each in self.events(name) if each["reason"] == reason)
            return next((each for each in told if words in each["message"]), None)

        return self.await_that(look, f"event {reason} of {name} with {words!r}", about=name)

    def process_of(self, name: str, container: str = "main") -> int:
        """The pid of a container that runs now."""
        pod = self.pod(name)
        assert pod, f"there is no pod {name}"
        return self.node_of(pod).process_of(container_id(pod, container))

    def pinned(self, name: str, container: str = "main") -> Pinned:
        """What the kernel holds its process to."""
        return pods_on.pinned(self.process_of(name, container))

    def await_pinned(self, name: str, expected: Pinned, container: str = "main") -> None:
        pid = self.process_of(name, container)
        self.await_that(
            lambda: pods_on.pinned(pid) == expected, f"{name} pinned to {expected}", about=name
        )

    def node_of(self, pod: Mapping[str, Any]) -> RealNode:
        return next(each for each in self.nodes if each.name == pod["spec"]["nodeName"])

    def await_ready(self, ready: str = "True") -> None:
        """Until the nodes are, and have no taints."""
        for node in self.nodes:
            self.await_that(partial(self._is_ready, node, ready), f"{ready} of {node.name}")

    def _is_ready(self, node: RealNode, ready: str) -> bool:
        node.kubelet.check()
        status, said = self.cluster.request("GET", f"/api/v1/nodes/{node.name}")
        if status != OK:
            return False
        told = json.loads(said)
        conditions = {each["type"]: each["status"] for each in told["status"]["conditions"]}
        return conditions.get("Ready") == ready and (
            ready != "True" or not told["spec"].get("taints")
        )

    def await_that(
        self, look: Callable[[], Found | None], what: str, within: float = WITHIN, about: str = ""
    ) -> Found:
        """What it found, when that is something; else a failure that tells of the pod `about`."""
        deadline = time.monotonic() + within
        while not (found := look()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within:.0f} s: {what}\n{self._known(about)}")
            time.sleep(0.1)
        return found

    def _known(self, about: str) -> str:
        told = [self.kubectl("describe", "pod", about, check=False)] if about else []
        for node in self.nodes:
            parts = [node.kubelet, *([node.agent] if node.options.agent else [])]
            told += [f"{node.name}, {each.name}:\n{each.last_words()}" for each in parts]
        return "\n".join(told)


def container_id(pod: Mapping[str, Any], container: str = "main") -> str:
    """The runtime's name for it."""
    for each in statuses(pod):
        if each["name"] == container:
            found: str = each.get("containerID", "")
            return found.removeprefix("containerd://")
    raise LookupError(f"no container {container}")


def statuses(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of its containers of every kind."""
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [each for kind in kinds for each in pod["status"].get(kind, [])]


def _is_running(pod: Mapping[str, Any]) -> bool:
    own = pod["status"].get("containerStatuses", [])
    return len(own) == len(pod["spec"]["containers"]) and all("running" in s["state"] for s in own)


@contextmanager
def node_bed(
    directory: Path,
    *,
    nodes: int = 1,
    scheduler: bool = False,
    scheduler_flags: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[NodeBed]:
    """With so many nodes of these `Options`; `scheduler` is Dovetail's, beside Kubernetes' own.

    Cluster and logs are in `directory`.
    """
    lacking = assets.missing()
    assert not lacking, f"`make kube` builds {lacking}"
    # As long as there is a network to get them from.
    programs()
    made = Options(**options)
    with ExitStack() as stack:
        outside = stack.enter_context(network.own_network(nodes))
        reaper = stack.enter_context(Reaper(directory / "reaper.log", outside))
        cluster = stack.enter_context(
            Cluster.running(
                directory, taint_new_nodes=True, apiserver_flags=_apiserver_flags(directory)
            )
        )
        cluster.start_all_controllers()
        cluster.start_scheduler()
        _make_account(cluster)
        bed = NodeBed(cluster)
        for number in range(nodes):
            entering = RealNode.running(cluster, number, made, directory, reaper)
            bed.nodes.append(stack.enter_context(entering))
        if scheduler:
            bed.scheduler = start_scheduler(cluster, scheduler_flags)
            stack.callback(bed.scheduler.kill)
        bed.await_ready()
        yield bed


def _apiserver_flags(directory: Path) -> tuple[str, ...]:
    return (
        f"--advertise-address={network.address(0)}",
        f"--kubelet-client-certificate={directory / 'admin.crt'}",
        f"--kubelet-client-key={directory / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--enable-admission-plugins=NodeRestriction",
    )


def _make_account(cluster: Cluster) -> None:
    """Of the agent, which may list a node's pods and nothing else; and that of pods."""
    account = {"kind": "ServiceAccount", "name": AGENT, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": AGENT}
    rule = {"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": "default"},
        },
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": AGENT}, "rules": [rule]},
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": AGENT},
            "roleRef": role,
            "subjects": [account],
        },
    )
    token = cluster.kubectl("create", "token", AGENT, "--duration=24h")
    (cluster.directory / "agent.token").write_text(token.strip())
    default = "/api/v1/namespaces/default/serviceaccounts/default"
    cluster.await_that(lambda: cluster.request("GET", default)[0] == OK, "account of pods")


def start_scheduler(cluster: Cluster, flags: tuple[str, ...] = ()) -> Process:
    """Dovetail's, when it is ready to place pods; its kinds are installed first."""
    for each in yaml.safe_load_all(manifests.text(["crds"])):
        cluster.apply(each)
    cluster.kubectl("wait", "--for=condition=Established", "crd/resourceclasses.dovetail.dev")
    here = cluster.directory
    command = [DOVETAIL, "scheduler", "--database", f"sqlite:///{here / 'ledger.db'}"]
    command += ["--kubeconfig", cluster.kubeconfig, "--lease-namespace", "default", *flags]
    process = Process(command, here / "scheduler.log", name="dovetail scheduler")
    process.start()
    process.await_ready(lambda: "ready to place pods" in process.output)
    return process
