"""A cluster to try resource classes on: `python -m tests.kube.demo` starts it and waits.

API server, controllers, ledger and scheduler are the real ones. The nodes are not: they say in an
annotation which devices they have, and kwok plays their kubelets.
"""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dovetail.kube import manifests
from dovetail.kube.classes.node_annotation import DEVICES
from tests.support.kube.cluster import Cluster, node_object
from tests.support.kube.tour import Demo
from tests.support.paths import DOVETAIL
from tests.support.processes import Process
from tests.support.server import running


def gpu(number: int, memory: str, **more: str) -> dict[str, Any]:
    properties = {"memory": memory, "ecc": "true", **more}
    return {"name": f"gpu-{number}", "kind": "nvidia-gpu", "properties": properties}


def nic(name: str, speed: str) -> dict[str, Any]:
    return {"name": name, "kind": "nic", "properties": {"speed": speed}}


def pages(size: str, count: int) -> dict[str, Any]:
    about = {"kind": "huge-pages", "properties": {"size": size}}
    return {"name": f"hugepages-{size}", "units": count, **about}


NODES = {
    "big-1": [gpu(0, "80G"), gpu(1, "80G"), nic("eth0", "100Gbps"), pages("1Gi", 16)],
    "big-2": [gpu(0, "40G"), gpu(1, "24G"), nic("eth0", "40Gbps"), pages("1Gi", 8)],
    "small-1": [gpu(0, "16G"), nic("eth0", "10Gbps"), pages("2Mi", 512)],
}


CLASSES = """\
apiVersion: dovetail.dev/v1alpha1
kind: ResourceClass
metadata: {name: nvidia.high.mem}
spec:
  resourceSelector:
    - matchExpressions:
        - {key: Kind, operator: In, values: [nvidia-gpu]}
        - {key: memory, operator: GtEq, values: [30G]}
---
apiVersion: dovetail.dev/v1alpha1
kind: ResourceClass
metadata: {name: hugepages-1gig}
spec:
  resourceSelector:
    - matchExpressions:
        - {key: Kind, operator: In, values: [huge-pages]}
        - {key: size, operator: GtEq, values: [1G]}
---
apiVersion: dovetail.dev/v1alpha1
kind: ResourceClass
metadata: {name: fast.nic}
spec:
  resourceSelector:
    - matchExpressions:
        - {key: Kind, operator: In, values: [nic]}
        - {key: speed, operator: GtEq, values: [40GBPS]}
"""

TRAINER = """\
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  schedulerName: dovetail
  containers:
    - name: main
      image: trainer
      resources:
        limits:
          resourceclass.dovetail.dev/nvidia.high.mem: 2
          resourceclass.dovetail.dev/fast.nic: 1
"""


@contextmanager
def a_demo_cluster(directory: Path) -> Iterator[Demo]:
    """With its nodes, the kind ResourceClass, and a scheduler; no class yet, and no pod."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster.running(directory))
        cluster.start_controllers()
        cluster.start_kwok(grace=False)
        cluster.kubectl("apply", "--server-side", "-f", "-", given=manifests.text(["crds"]))
        nodes = [
            node_object(name, annotations={DEVICES: json.dumps(devices)})
            for name, devices in NODES.items()
        ]
        cluster.kubectl(
            "create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": nodes}
        )
        cluster.make_namespace("dovetail")
        (directory / "classes.yaml").write_text(CLASSES)
        (directory / "trainer.yaml").write_text(TRAINER)
        database = f"sqlite:///{directory}/ledger.db"
        options = ["--host", "127.0.0.1", "--auth", "noauth2", "--policy", "open"]
        serving = [DOVETAIL, "serve", "--database", database, *options]
        server = stack.enter_context(running(serving, directory / "serve.log"))
        scheduling = [DOVETAIL, "scheduler", "--database", database, "--lease-seconds", "3"]
        command = [*scheduling, "--kubeconfig", cluster.kubeconfig]
        stack.enter_context(Process(command, directory / "dovetail-scheduler.log"))
        yield Demo(directory, cluster, server)


def main() -> None:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-kube-") as directory,
        a_demo_cluster(Path(directory)) as demo,
    ):
        path = f"{DOVETAIL.parent}:{demo.cluster.programs}:$PATH"
        print("A cluster of three nodes with GPUs, NICs and hugepages. In another terminal:")
        print(f"  cd {directory}; export PATH={path}")
        print(f"  export KUBECONFIG={demo.cluster.kubeconfig}")
        print(f"  export DOVETAIL_SERVER={demo.server.url} DOVETAIL_TOKEN=admin")
        print("and then the commands of docs/resource-classes.md. Ctrl-C ends it.", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
