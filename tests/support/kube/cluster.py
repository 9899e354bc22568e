"""A Kubernetes cluster of the tests' own: the real programs, on loopback, in a directory.

    with Cluster.running(directory) as cluster:
        cluster.add_nodes(3, cpu="8", annotations={...})
        cluster.kubectl("get", "nodes")

etcd and the API server (with RBAC and every default admission plugin) come up in a few seconds; the
controllers, the scheduler and kwok, which plays the kubelets, are started when they are asked for.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from tests.support.kube import assets
from tests.support.kube.pki import Authority
from tests.support.processes import Process, reserved_port

CONTROLLERS = (
    "namespace-controller,serviceaccount-controller,serviceaccount-token-controller,"
    "garbage-collector-controller,replicaset-controller,deployment-controller,"
    "job-controller,resourcequota-controller,pod-garbage-collector-controller,"
    "statefulset-controller"
)
NODE_CONTROLLERS = "node-lifecycle-controller,taint-eviction-controller"
READY_WITHIN = 90.0
NAMESPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
KUBELET, STOPPED = "test/kubelet", "stopped"
"""The label of a node that kwok leaves alone."""
OK, CREATED = 200, 201


class Cluster:
    def __init__(
        self,
        directory: Path,
        etcd_port: int,
        peer_port: int,
        port: int,
        *,
        taint_new_nodes: bool = False,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self._apiserver_flags = apiserver_flags
        self._taint_new_nodes = taint_new_nodes
        self.authority = Authority(directory)
        self.url = f"https://127.0.0.1:{port}"
        self.kubeconfig = self.user("admin", ("system:masters",))
        self._at = f"127.0.0.1:{port}"
        self._tls = ssl.create_default_context(cafile=self.authority.certificate)
        self._tls.load_cert_chain(directory / "admin.crt", directory / "admin.key")
        self.etcd = Process(self._etcd(etcd_port, peer_port), directory / "etcd.log")
        self.apiserver = Process(self._apiserver(etcd_port, port), directory / "kube-apiserver.log")
        self._others: dict[str, Process] = {}

    @classmethod
    @contextmanager
    def running(
        cls,
        directory: Path,
        *,
        taint_new_nodes: bool = False,
        apiserver_flags: Sequence[str] = (),
    ) -> Iterator[Cluster]:
        """However the block ends, no process is left behind.

        With `taint_new_nodes` a node is not ready until `start_node_lifecycle` finds that it is, as
        in any real cluster. `apiserver_flags` come after the usual ones.
        """
        with ExitStack() as stack:
            ports = [stack.enter_context(reserved_port()) for _ in range(3)]
            cluster = cls(
                directory,
                *ports,
                taint_new_nodes=taint_new_nodes,
                apiserver_flags=apiserver_flags,
            )
            stack.callback(cluster.stop)
            cluster.start()
            yield cluster

    @property
    def programs(self) -> Path:
        """The directory of kubectl and the others."""
        return _program("kubectl").parent

    def start(self) -> None:
        self.etcd.start()
        self.apiserver.start()
        self.await_ready()

    def stop(self) -> None:
        for process in [*self._others.values(), self.apiserver, self.etcd]:
            process.kill()

    def await_ready(self) -> None:
        self.await_that(self._ready, "answer of the API server", READY_WITHIN)

    def _ready(self) -> bool:
        self.etcd.check()
        self.apiserver.check()
        try:
            return self.request("GET", "/readyz") == (OK, b"ok")
        except OSError:
            return False

    def request(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Status and body. A kubectl is a process, and takes a hundred times as long.

        A PATCH is a strategic merge, which only the kinds that are built in know.
        """
        form = "strategic-merge-patch+json" if method == "PATCH" else "json"
        with closing(HTTPSConnection(self._at, context=self._tls, timeout=30)) as connection:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": f"application/{form}"})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def user(self, name: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig for this user, known by a certificate."""
        certificate, key = self.authority.issue(name, groups)
        file = self.directory / f"{name.replace(':', '-')}.kubeconfig"
        file.write_text(json.dumps(self._kubeconfig(name, certificate, key)))
        return file

    def kubectl(self, *arguments: str, given: object = None, check: bool = True) -> str:
        """Its output; `given` goes to standard input, as JSON unless it is text."""
        return self.kubectl_as(self.kubeconfig, *arguments, given=given, check=check)

    def kubectl_as(
        self, kubeconfig: Path, *arguments: str, given: object = None, check: bool = True
    ) -> str:
        text = given if isinstance(given, str) else json.dumps(given) if given else None
        done = subprocess.run(
            [_program("kubectl"), "--kubeconfig", kubeconfig, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "KUBECACHEDIR": str(self.directory / "kubectl")},
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout + ("" if check else done.stderr)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        self.kubectl("apply", "--server-side", "-f", "-", given=_list(objects))

    def add_nodes(self, count: int, *, first: int = 0, prefix: str = "node", **about: Any) -> None:
        """Nodes without kubelets; `about` as in `node_object`."""
        nodes = [node_object(f"{prefix}-{first + n}", **about) for n in range(count)]
        self.kubectl("create", "-f", "-", given=_list(nodes))

    def make_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """And wait until pods can be made in it."""
        metadata = {"name": name, "labels": labels or {}}
        status, said = self.request("POST", NAMESPACES, {"metadata": metadata})
        assert status == CREATED, said
        account = f"{NAMESPACES}/{name}/serviceaccounts/default"
        self.await_that(lambda: self.request("GET", account)[0] == OK, "an account")

    def drop_namespace(self, name: str) -> None:
        """Its controller takes away what is in it, later."""
        self.request("DELETE", f"{NAMESPACES}/{name}")

    def await_that(self, holds: Callable[[], bool], what: str, within: float = 90.0) -> None:
        deadline = time.monotonic() + within
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {what} within {within:.0f} s")
            time.sleep(0.05)

    def start_controllers(self) -> None:
        """Namespaces get their service accounts, owners' pods come and go, quotas are counted."""
        self._start_controllers("kube-controller-manager", CONTROLLERS, *self._account_flags())

    def start_all_controllers(self) -> None:
        """As a real cluster has them; a kubelet on a busy machine may be silent for long."""
        self._start_controllers(
            "kube-controller-manager",
            "*",
            *self._account_flags(),
            *("--node-monitor-period=500ms", "--node-monitor-grace-period=10m"),
        )

    def _account_flags(self) -> tuple[str | Path, ...]:
        key = self.directory / "service-accounts.key"
        root = self.authority.certificate
        return ("--service-account-private-key-file", key, "--root-ca-file", root)

    def start_node_lifecycle(self) -> None:
        """Nodes get and lose the taints of their conditions and of `cordon`.

        The heartbeat of a kubelet is not waited for, for no busy machine shall make nodes fail that
        a test did not stop: `set_ready` and `stop_kubelet` say what would have come of it. Taints
        with the effect NoExecute are set on any share of the nodes but all of them.
        """
        self._start_controllers(
            "node-lifecycle",
            NODE_CONTROLLERS,
            *("--node-monitor-period=200ms", "--node-monitor-grace-period=1000h"),
            *("--node-eviction-rate=100", "--secondary-node-eviction-rate=100"),
            "--large-cluster-size-threshold=0",
        )

    def start_disruption_budgets(self) -> None:
        """PodDisruptionBudgets count the pods that they are about."""
        self._start_controllers("disruption", "disruption-controller")

    def start_resource_claims(self) -> None:
        """Pods get their claims from templates, and claims go with their pods."""
        self._start_controllers("resource-claims", "resourceclaim-controller")

    def start_scheduler(self, configuration: Mapping[str, Any] | None = None) -> Process:
        """kube-scheduler, with as many requests a second as it likes."""
        file = self.directory / "scheduler.json"
        file.write_text(json.dumps(self._scheduler_configuration(configuration or {})))
        return self._start("kube-scheduler", "--config", file, "--secure-port=0")

    def start_kwok(self, *, grace: bool = True) -> None:
        """Pods of nodes run and go, as if there were kubelets; without `grace` they go at once."""
        if "kwok" not in self._others:
            here = Path(__file__)
            stages = ["kwok_stages.yaml", *(["kwok_grace.yaml"] if grace else [])]
            self._start(
                "kwok",
                *("--kubeconfig", self.kubeconfig),
                *(f"--config={here.with_name(name)}" for name in stages),
                *("--manage-nodes-with-label-selector", f"{KUBELET}!={STOPPED}"),
                *("--node-ip=127.0.0.1", "--cidr=10.64.0.0/10"),
            )

    def cordon(self, node: str, *, undo: bool = False) -> None:
        """Its taint is `start_node_lifecycle`'s to set."""
        self._patch_node(node, {"spec": {"unschedulable": None if undo else True}})

    def set_ready(self, node: str, status: str, reason: str = "KubeletNotReady") -> None:
        """The condition as its kubelet (`True`, `False`) or its absence (`Unknown`) makes it."""
        now = datetime.datetime.now(datetime.UTC).isoformat()
        told = {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": now}
        self._patch_node(node, {"status": {"conditions": [told]}}, "/status")

    def stop_kubelet(self, node: str) -> None:
        """Nothing happens to its pods from now on; `start_node_lifecycle` finds it unreachable."""
        self._patch_node(node, {"metadata": {"labels": {KUBELET: STOPPED}}})
        self.set_ready(node, "Unknown", "NodeStatusUnknown")
        taint = ("node.kubernetes.io/unreachable", "NoSchedule")
        self.await_that(lambda: taint in self.taints(node), "taint")

    def start_kubelet(self, node: str) -> None:
        self._patch_node(node, {"metadata": {"labels": {KUBELET: None}}})
        self.set_ready(node, "True", "KubeletReady")

    def taints(self, node: str) -> set[tuple[str, str]]:
        """Key and effect of each."""
        status, told = self.request("GET", f"{NODES}/{node}")
        assert status == OK, told
        return {
            (each["key"], each["effect"]) for each in json.loads(told)["spec"].get("taints", [])
        }

    def _patch_node(self, node: str, patch: Mapping[str, Any], sub: str = "") -> None:
        status, told = self.request("PATCH", f"{NODES}/{node}{sub}", patch)
        assert status == OK, told

    def stop_other(self, name: str) -> None:
        self._others.pop(name).kill()

    def _start_controllers(self, name: str, controllers: str, *arguments: str | Path) -> None:
        """Several controller managers share the work, for none of them is elected."""
        if name not in self._others:
            self._start(
                "kube-controller-manager",
                *("--kubeconfig", self.kubeconfig, "--controllers", controllers),
                *("--use-service-account-credentials=false", "--leader-elect=false"),
                *("--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"),
                *arguments,
                name=name,
            )

    def _start(self, program: str, *arguments: str | Path, name: str = "") -> Process:
        name = name or program
        process = Process([_program(program), *arguments], self.directory / f"{name}.log")
        self._others[name] = process
        process.start()
        return process

    def _etcd(self, port: int, peer_port: int) -> list[str | Path]:
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        return [
            *(_program("etcd"), "--data-dir", self.directory / "etcd"),
            *("--listen-client-urls", url, "--advertise-client-urls", url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}", "--log-level=warn"),
            # Processes get killed here, the machine does not: its disk need not be waited for.
            "--unsafe-no-fsync",
        ]

    def _apiserver(self, etcd_port: int, port: int) -> list[str | Path]:
        certificate, key = self.authority.issue("kube-apiserver")
        _, accounts = self.authority.issue("service-accounts")
        return [
            *(_program("kube-apiserver"), "--etcd-servers", f"http://127.0.0.1:{etcd_port}"),
            *("--bind-address=127.0.0.1", "--secure-port", str(port)),
            *("--tls-cert-file", certificate, "--tls-private-key-file", key),
            *("--client-ca-file", self.authority.certificate),
            *("--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.0.0.0/24"),
            *("--service-account-issuer=https://kubernetes.default.svc",),
            *("--service-account-key-file", accounts, "--service-account-signing-key-file"),
            *(accounts, "--allow-privileged=true"),
            # Else, where no node controller runs, nobody would take their taint away again.
            *(
                ()
                if self._taint_new_nodes
                else ("--disable-admission-plugins=TaintNodesByCondition",)
            ),
            "--endpoint-reconciler-type=none",
            # One client here is as busy as a cluster: it may have all requests that there are.
            *("--max-requests-inflight=1000", "--max-mutating-requests-inflight=500"),
            *self._apiserver_flags,
        ]

    def _kubeconfig(self, name: str, certificate: Path, key: Path) -> dict[str, Any]:
        server = {
            "server": self.url,
            "certificate-authority-data": _encoded(self.authority.certificate),
        }
        user = {
            "client-certificate-data": _encoded(certificate),
            "client-key-data": _encoded(key),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }

    def _scheduler_configuration(self, more: Mapping[str, Any]) -> dict[str, Any]:
        connection = {"kubeconfig": str(self.kubeconfig), "qps": 5000, "burst": 5000}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
            **more,
        }


def node_object(
    name: str,
    *,
    cpu: str = "32",
    memory: str = "128Gi",
    pods: int = 110,
    more: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """A node as its kubelet would have reported it; `more` are extended resources."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **(more or {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {"kwok.x-k8s.io/node": "fake", **(annotations or {})},
        },
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def _list(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def _program(name: str) -> Path:
    found = assets.find(name)
    if found is None:
        raise FileNotFoundError(f"no {name}: `make kube` builds it")
    return found


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
