"""A newcomer installs scheduler and extender by the page, and a pod with a volume gets a device.

The page's steps are run as they are written, on a real API server, but for the three things that a
machine of one's own would have: a database, `/etc/kubernetes`, and a kube-proxy. No image runs
here: the replicas are processes of the installed wheel, with the flags and variables of the
Deployment and the token of its service account.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dist import steps
from tests.kube.scheduler import real
from tests.support import databases
from tests.support.kube.cluster import OK, Cluster
from tests.support.processes import Process, reserved_port

pytestmark = pytest.mark.timeout(900)
NAMESPACE, REPLICAS = "hardware", 2
"""As the page has them."""
DATABASE = "postgresql://dovetail@db/dovetail"


class Newcomer:
    """Somebody with kubectl, the command and the page."""

    def __init__(self, cluster: Cluster, installed: Path, database: str) -> None:
        self.cluster, self.installed, self.database = cluster, installed, database
        self.etc = cluster.directory / "etc-kubernetes"
        self.etc.mkdir()

    def follow(self, name: str) -> None:
        script = steps.written("scheduler.md", name)
        script = script.replace(DATABASE, self.database)
        path = f"{self.installed.parent}:{self.cluster.programs}:/usr/bin:/bin"
        about = {"KUBECONFIG": str(self.cluster.kubeconfig), "PATH": path}
        script = script.replace("/etc/kubernetes", str(self.etc))
        steps.play(script, cwd=self.cluster.directory, more=about)

    def replica(self, number: int, ports: Mapping[str, int]) -> Process:
        """What a kubelet would start, with the ports of a machine that all of them share."""
        pod = self.get("deployment", "dovetail-scheduler")["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        directory = self.cluster.directory / f"replica-{number}"
        self._mount(pod, container, directory)
        words = [each.replace("/etc/dovetail", str(directory)) for each in container["args"]]
        for each in container["ports"]:
            mine, theirs = str(ports[each["name"]]), str(each["containerPort"])
            words = [
                mine if word == theirs else word.replace(f"0.0.0.0:{theirs}", f"127.0.0.1:{mine}")
                for word in words
            ]
        account = self._account(pod["serviceAccountName"], directory)
        return Process(
            [self.installed, *words, "--kubeconfig", account],
            self.cluster.directory / f"replica-{number}.log",
            name=f"replica-{number}",
            environment=self._variables(container),
            cwd=directory,
        )

    def _mount(self, pod: dict[str, Any], container: dict[str, Any], directory: Path) -> None:
        volumes = {each["name"]: each["secret"]["secretName"] for each in pod.get("volumes", [])}
        directory.mkdir()
        for each in container.get("volumeMounts", []):
            where = directory / Path(each["mountPath"]).relative_to("/etc/dovetail")
            where.mkdir(parents=True)
            for key, value in self.get("secret", volumes[each["name"]])["data"].items():
                (where / key).write_bytes(base64.b64decode(value))

    def _variables(self, container: dict[str, Any]) -> dict[str, str]:
        found = {}
        for each in container["env"]:
            source = each["valueFrom"]
            if "fieldRef" in source:
                assert source["fieldRef"]["fieldPath"] == "metadata.namespace"
                found[each["name"]] = NAMESPACE
            else:
                secret = self.get("secret", source["secretKeyRef"]["name"])
                data = secret["data"][source["secretKeyRef"]["key"]]
                found[each["name"]] = base64.b64decode(data).decode()
        return found

    def _account(self, name: str, directory: Path) -> Path:
        """A kubeconfig with the token that its pods would have."""
        token = self.cluster.kubectl("create", "token", name, "-n", NAMESPACE).strip()
        config = json.loads(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        file = directory / "account.kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def get(self, kind: str, name: str) -> dict[str, Any]:
        told = self.cluster.kubectl("get", kind, name, "-n", NAMESPACE, "-o", "json")
        found: dict[str, Any] = json.loads(told)
        return found


def is_ready(port: int) -> bool:
    """As the Deployment's probe asks."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == OK
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def service(targets: list[int], stopping: Callable[[], object]) -> Iterator[int]:
    """What kube-proxy does: connections go to one replica after the other, until `stopping`."""
    turn = cycle(targets)

    def carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def connect(there: socket.socket, to: int) -> None:
        with there, suppress(OSError), socket.create_connection(("127.0.0.1", to)) as on:
            back = threading.Thread(target=carry, args=(on, there))
            back.start()
            carry(there, on)
            back.join()

    def accept(listening: socket.socket) -> None:
        with suppress(OSError), ThreadPoolExecutor(64) as pool:
            while True:
                there, _ = listening.accept()
                pool.submit(connect, there, next(turn))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept, args=(listening,))
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            # Connections end with the two that they join: kube-scheduler's is told first.
            listening.shutdown(socket.SHUT_RDWR)
            stopping()
            accepting.join()


@pytest.fixture
def newcomer(own_cluster: Cluster, installed: Path, postgres: str) -> Newcomer:
    cluster = own_cluster
    cluster._start_controllers("volumes", "persistentvolume-binder-controller")
    cluster.add_nodes(2, annotations=real.devices("g0"))
    cluster.add_nodes(2, prefix="plain")
    cluster.make_namespace("work")
    return Newcomer(cluster, installed, databases.empty(postgres))


@contextmanager
def replicas(newcomer: Newcomer) -> Iterator[dict[int, Process]]:
    """As many as the Deployment has, by the ports at which they answer kube-scheduler."""
    count = newcomer.get("deployment", "dovetail-scheduler")["spec"]["replicas"]
    assert count == REPLICAS
    with ExitStack() as stack:
        ports = [
            {name: stack.enter_context(reserved_port()) for name in ("metrics", "extender")}
            for _ in range(count)
        ]
        started = {}
        for number, mine in enumerate(ports):
            process = stack.enter_context(newcomer.replica(number, mine))
            process.await_ready(partial(is_ready, mine["metrics"]))
            started[mine["extender"]] = process
        yield started
    for number in range(count):
        said = real.log_of(newcomer.cluster.directory, f"replica-{number}").lower()
        assert "forbidden" not in said


def local_volume(name: str, node: str) -> list[dict[str, Any]]:
    """A volume of one node, a class without provisioner, and a claim that waits for its pod."""
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **wanted,
                "capacity": {"storage": "1Gi"},
                "local": {"path": "/data"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "work"},
            "spec": {**wanted, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def with_volume(pod: dict[str, Any], claim: str) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return {**pod, "spec": {**pod["spec"], "volumes": [volume]}}


def start_kube_scheduler(newcomer: Newcomer, port: int) -> None:
    """With the file that the page makes, as the user that kube-scheduler is."""
    file = newcomer.etc / "dovetail-extender/config.yaml"
    address = newcomer.get("service", "dovetail-extender")["spec"]["clusterIP"]
    text = file.read_text()
    assert f"https://{address}:8888" in text
    text = text.replace(f"{address}:8888", f"127.0.0.1:{port}")
    text = text.replace("/etc/kubernetes", str(newcomer.etc))
    own = newcomer.cluster.user("system:kube-scheduler")
    (newcomer.etc / "scheduler.conf").write_bytes(own.read_bytes())
    newcomer.cluster.start_scheduler(yaml.safe_load(text))


def test_a_pod_with_a_volume_gets_a_device_through_kube_scheduler(newcomer: Newcomer) -> None:
    cluster = newcomer.cluster
    newcomer.follow("extender")
    newcomer.follow("kube-scheduler")
    cluster.apply(real.class_object("gpu"))
    cluster.apply(*local_volume("data", "node-1"))
    stopping = partial(cluster.stop_other, "kube-scheduler")
    with replicas(newcomer) as running, service([*running], stopping) as port:
        start_kube_scheduler(newcomer, port)
        pod = real.pod_object("trainer", "work", {"gpu": 1}, "default-scheduler")
        other = real.pod_object("other", "work", {"gpu": 1}, "default-scheduler")
        real.create(cluster, [with_volume(pod, "data")])
        cluster.await_that(lambda: real.bound(cluster, "work") == 1, "a pod with a node", 60)
        (trainer,) = real.pods(cluster, "work")
        assert trainer["spec"]["nodeName"] == "node-1", "where its volume is"
        uid = trainer["metadata"]["uid"]
        held = {uid: {("node-1", "g0"): 1}}
        assert real.told_by_pods(cluster, "work") == held
        assert real.told_by_ledger(newcomer.database) == held
        phase = ("get", "pvc", "data", "-n", "work", "-o", "jsonpath={.status.phase}")
        cluster.await_that(lambda: cluster.kubectl(*phase) == "Bound", "its volume")
        real.create(cluster, [other, real.pod_object("plain", "work", {}, "default-scheduler")])
        cluster.await_that(lambda: real.bound(cluster, "work") == 3, "the others' nodes", 60)
        assert len(real.told_by_ledger(newcomer.database)) == 2
        see_it_down(newcomer, [*running.values()])


def see_it_down(newcomer: Newcomer, running: list[Process]) -> None:
    """What the page says of that: pods with devices are told and wait, others notice nothing."""
    cluster = newcomer.cluster
    cluster.kubectl("delete", "pod", "other", "-n", "work", "--wait=false")
    cluster.await_that(lambda: len(real.told_by_ledger(newcomer.database)) == 1, "room")
    for process in running:
        assert process.stop()
    late = real.pod_object("late", "work", {"gpu": 1}, "default-scheduler")
    real.create(cluster, [late, real.pod_object("second", "work", {}, "default-scheduler")])
    cluster.await_that(lambda: real.bound(cluster, "work") == 3, "a node for the other pod")
    about = ("get", "events", "-n", "work", "--field-selector=involvedObject.name=late")
    cluster.await_that(lambda: "FailedScheduling" in cluster.kubectl(*about), "words")
    for process in running:
        process.start()
    cluster.await_that(lambda: real.bound(cluster, "work") == 4, "a node when they are back", 90)


def test_pods_of_its_own_are_placed_after_the_first_steps(newcomer: Newcomer) -> None:
    cluster = newcomer.cluster
    newcomer.follow("scheduler")
    cluster.apply(real.class_object("gpu"))
    with replicas(newcomer):
        real.create(cluster, [real.pod_object("own", "work", {"gpu": 1})])
        cluster.await_that(lambda: real.bound(cluster, "work") == 1, "a pod with a node", 60)
        assert real.told_by_pods(cluster, "work") == real.told_by_ledger(newcomer.database)
        lease = newcomer.get("lease", "dovetail-scheduler")
        assert lease["spec"]["holderIdentity"]
