"""A cluster to try machines on: `python -m tests.kube.machines.demo` starts it and waits.

API server, controllers, kube-scheduler, ledger and operator are the real ones. The nodes are those
of the specification's example, and kwok plays their kubelets.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kube.machines.bed import Bed, example_nodes, install
from tests.support.kube.cluster import Cluster
from tests.support.kube.tour import Demo
from tests.support.paths import DOVETAIL
from tests.support.server import running

MACHINE = """\
apiVersion: imperator.tenzen-y.io/v1alpha1
kind: Machine
metadata:
  name: general-machine
  labels:
    imperator.tenzen-y.io/machine-group: general-machine
spec:
  nodePool:
    - {name: michiru, mode: ready, taint: true, machineType: [{name: compute-xlarge}]}
    - {name: utaha, mode: maintenance, taint: false, machineType: [{name: compute-medium}]}
    - {name: eriri, mode: ready, taint: true, machineType: [{name: compute-medium}]}
  machineTypes:
    - name: compute-medium
      spec:
        cpu: 6000m
        memory: 48Gi
        gpu: {type: nvidia.com/gpu, num: 1, machine: DGX-1}
      available: 4
    - name: compute-xlarge
      spec:
        cpu: 40000m
        memory: 128Gi
        gpu: {type: nvidia.com/gpu, num: 2, product: NVIDIA-GeForce-RTX-3090}
      available: 1
    - name: compute-large
      spec:
        cpu: 20000m
        memory: 64Gi
        gpu: {type: nvidia.com/gpu, num: 1, family: ampere}
      available: 2
"""
"""The specification's example, on fewer lines."""

TRAINER = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
  labels:
    imperator.tenzen-y.io/machine-group: general-machine
    imperator.tenzen-y.io/machine-type: compute-xlarge
    imperator.tenzen-y.io/pod-role: guest
spec:
  containers:
    - name: main
      image: trainer
"""

LAB = """\
apiVersion: imperator.tenzen-y.io/v1alpha1
kind: Machine
metadata:
  name: lab
  labels: {imperator.tenzen-y.io/machine-group: lab}
spec:
  nodePool:
    - {name: eriri, taint: true, machineType: [{name: notebook}]}
    - {name: utaha, taint: true, machineType: [{name: train}]}
  machineTypes:
    - name: notebook
      spec: {cpu: 4, memory: 32Gi, gpu: {type: nvidia.com/gpu, num: 1, machine: DGX-1}}
      available: 3
      buyers: {namespaceSelector: {matchLabels: {team: ml}}}
      caps: {perUser: 1}
      maxDuration: 8h
      announceBefore: 30m
      whenExpired: evict
    - name: train
      spec: {cpu: 8, memory: 64Gi, gpu: {type: nvidia.com/gpu, num: 1, machine: DGX-1}}
      available: 4
"""

USERS = """\
apiVersion: v1
kind: Namespace
metadata:
  name: notebooks-ada
  labels: {imperator.tenzen-y.io/inject-resource: enabled, team: ml}
  annotations: {imperator.tenzen-y.io/user: ada}
---
apiVersion: v1
kind: Namespace
metadata:
  name: notebooks-grace
  labels: {imperator.tenzen-y.io/inject-resource: enabled, team: ml}
  annotations: {imperator.tenzen-y.io/user: grace}
"""

NOTEBOOK = """\
apiVersion: v1
kind: Pod
metadata:
  name: notebook
  labels:
    imperator.tenzen-y.io/machine-group: lab
    imperator.tenzen-y.io/machine-type: notebook
    imperator.tenzen-y.io/pod-role: guest
spec:
  containers:
    - name: notebook
      image: jupyter
"""

STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: notes}
spec:
  replicas: 1
  serviceName: notes
  selector: {matchLabels: {statefulset: notes}}
  template:
    metadata:
      labels:
        statefulset: notes
        notebook-name: notes
        imperator.tenzen-y.io/machine-group: lab
        imperator.tenzen-y.io/machine-type: notebook
        imperator.tenzen-y.io/pod-role: guest
    spec:
      terminationGracePeriodSeconds: 3
      containers:
        - name: notes
          image: jupyter
"""
"""As the controller of Kubeflow makes it of a Notebook."""

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: fit}
spec:
  parallelism: 4
  completions: 4
  backoffLimit: 0
  template:
    metadata:
      labels:
        imperator.tenzen-y.io/machine-group: lab
        imperator.tenzen-y.io/machine-type: train
        imperator.tenzen-y.io/pod-role: guest
        imperator.tenzen-y.io/unit-group: fit
      annotations:
        imperator.tenzen-y.io/unit-group-size: "4"
    spec:
      restartPolicy: OnFailure
      containers:
        - name: worker
          image: trainer
"""

PROBE = NOTEBOOK.replace("name: notebook\n  labels", "name: probe\n  labels").replace(
    "machine-type: notebook", "machine-type: train"
)

FILES = {
    "machine.yaml": MACHINE,
    "trainer.yaml": TRAINER,
    "lab.yaml": LAB,
    "users.yaml": USERS,
    "notebook.yaml": NOTEBOOK,
    "statefulset.yaml": STATEFUL_SET,
    "job.yaml": JOB,
    "probe.yaml": PROBE,
}


@contextmanager
def a_demo_cluster(directory: Path) -> Iterator[Demo]:
    """With its nodes, what `dovetail manifests` prints for machines, and an operator; no Machine
    yet, and no guest."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster.running(directory))
        cluster.start_controllers()
        cluster.start_node_lifecycle()
        cluster.start_kwok()
        cluster.start_scheduler()
        cluster.apply(*example_nodes())
        install(cluster)
        for name, text in FILES.items():
            (directory / name).write_text(text)
        bed = Bed(cluster, directory)
        options = ["--host", "127.0.0.1", "--auth", "noauth2", "--policy", "open"]
        serving = [DOVETAIL, "serve", "--database", bed.database, *options]
        server = stack.enter_context(running(serving, directory / "serve.log"))
        stack.callback(bed.stop_operators)
        bed.start_operator()
        yield Demo(directory, cluster, server)


def main() -> None:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-machines-") as directory,
        a_demo_cluster(Path(directory)) as demo,
    ):
        path = f"{DOVETAIL.parent}:{demo.cluster.programs}:$PATH"
        print(
            "A cluster of three nodes with GPUs, and an operator of machines. In another terminal:"
        )
        print(f"  cd {directory}; export PATH={path}")
        print(f"  export KUBECONFIG={demo.cluster.kubeconfig}")
        print(f"  export DOVETAIL_SERVER={demo.server.url} DOVETAIL_TOKEN=admin")
        print("and then the commands of docs/machines.md. Ctrl-C ends it.", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
