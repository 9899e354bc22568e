"""A cluster with machines: what is installed is what `dovetail manifests` prints, and operators run
as the account that it makes for them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from dovetail.kube import manifests
from dovetail.machines.names import (
    ENABLED,
    GUEST,
    INJECT_RESOURCE,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    RESERVATION,
)
from tests.kube.conftest import needs_kubernetes
from tests.kube.manifests.machines import guests
from tests.kube.manifests.machines.api import machine_object, one_type, refusal
from tests.machines.building import GENERAL
from tests.support.kube.cluster import Cluster, node_object
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

ACCOUNT = "system:serviceaccount:dovetail:dovetail-operator"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:dovetail", "system:authenticated")
PARTS = [each for each in manifests.PARTS if each.startswith("machines")]
MACHINES = "/apis/imperator.tenzen-y.io/v1alpha1/machines"
POOLS = "/apis/imperator.tenzen-y.io/v1alpha1/machinenodepools"
PODS = "/api/v1/namespaces/{}/pods"
SETTLED = 90.0
Usage = dict[str, float]

DGX = {"nvidia.com/gpu.machine": "DGX-1"}
RTX = {"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-3090"}


class Bed:
    """What an administrator, users and a checker do."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self._directory = directory
        self.kubeconfig = cluster.user(ACCOUNT, GROUPS)
        self.database = f"sqlite:///{directory / 'ledger.db'}"
        self.operators: list[Process] = []

    # -- the operator ----------------------------------------------------------------------------

    def start_operator(self, *flags: object, database: str = "") -> Process:
        command = [
            *(DOVETAIL, "operator", "--kubeconfig", self.kubeconfig),
            *("--database", database or self.database, "--lease-seconds", "2", *flags),
        ]
        log = self._directory / f"operator-{len(self.operators)}.log"
        process = Process(command, log, name="operator")
        process.start()
        self.operators.append(process)
        return process

    def stop_operators(self) -> None:
        for process in self.operators:
            process.kill()
        self.operators.clear()

    # -- requests --------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        status, body = self.cluster.request("GET", path)
        return json.loads(body) if status == 200 else None

    def create(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        status, answer = self.cluster.request("POST", path, body)
        return status, json.loads(answer)

    def create_machine(
        self, spec: Mapping[str, Any], name: str = "general-machine", group: str = ""
    ) -> None:
        status, answer = self.try_machine(spec, name, group)
        assert status == 201, answer

    def try_machine(self, spec: Mapping[str, Any], name: str, group: str = "") -> tuple[int, Any]:
        body = {
            "apiVersion": "imperator.tenzen-y.io/v1alpha1",
            "kind": "Machine",
            "metadata": {"name": name, "labels": {MACHINE_GROUP: group or name}},
            "spec": spec,
        }
        return self.create(MACHINES, body)

    def edit_machine(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Read, change and write the specification, as `kubectl edit` does."""
        for _ in range(20):
            found = self.get(f"{MACHINES}/{name}")
            change(found["spec"])
            status, answer = self.cluster.request("PUT", f"{MACHINES}/{name}", found)
            if status != 409:
                assert status == 200, answer
                return
        raise AssertionError("others write too often")

    def drop_machine(self, name: str) -> None:
        self.cluster.request("DELETE", f"{MACHINES}/{name}")

    def create_guest(
        self,
        name: str,
        machine_type: str,
        *,
        group: str = "general-machine",
        namespace: str = "lab",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> tuple[int, Any]:
        about = {
            "name": name,
            "labels": {
                MACHINE_GROUP: group,
                MACHINE_TYPE: machine_type,
                POD_ROLE: GUEST,
                **(labels or {}),
            },
            "annotations": dict(annotations or {}),
        }
        body = {
            "metadata": about,
            "spec": {"containers": [{"name": "main", "image": "train"}], **spec},
        }
        return self.create(PODS.format(namespace), body)

    def create_guests(
        self, names: Sequence[str], machine_type: str, **about: Any
    ) -> list[tuple[int, Any]]:
        """All at once."""
        with ThreadPoolExecutor(max_workers=16) as pool:
            return list(
                pool.map(lambda name: self.create_guest(name, machine_type, **about), names)
            )

    def drop_pod(self, name: str, namespace: str = "lab", grace: int | None = 0) -> None:
        query = "" if grace is None else f"?gracePeriodSeconds={grace}"
        self.cluster.request("DELETE", f"{PODS.format(namespace)}/{name}{query}")

    def annotate(self, name: str, **annotations: str | None) -> None:
        marks = {f"test/{key}": value for key, value in annotations.items()}
        path = f"{PODS.format('lab')}/{name}"
        status, answer = self.cluster.request("PATCH", path, {"metadata": {"annotations": marks}})
        assert status == 200, answer

    # -- what there is ---------------------------------------------------------------------------

    def pods(self, namespace: str = "lab") -> dict[str, dict[str, Any]]:
        return {
            each["metadata"]["name"]: each for each in self.get(PODS.format(namespace))["items"]
        }

    def sleepers(self) -> dict[str, dict[str, Any]]:
        found = self.pods("dovetail")
        return {
            name: pod
            for name, pod in found.items()
            if pod["metadata"]["labels"].get(POD_ROLE) == RESERVATION
        }

    def running(self, namespace: str = "lab") -> list[str]:
        return sorted(
            name
            for name, pod in self.pods(namespace).items()
            if pod["status"]["phase"] == "Running"
        )

    def status(self, name: str = "general-machine") -> dict[str, Any]:
        found = self.get(f"{MACHINES}/{name}")
        return (found or {}).get("status") or {}

    def usage(self, machine_type: str, name: str = "general-machine") -> Usage | None:
        rows = self.status(name).get("availableMachines", [])
        return next((row["usage"] for row in rows if row["name"] == machine_type), None)

    def condition(self, type_: str, name: str = "general-machine") -> tuple[str, str, str] | None:
        for each in self.status(name).get("conditions", []):
            if each["type"] == type_:
                return each["status"], each["reason"], each["message"]
        return None

    def replicas(self, machine_type: str, group: str = "general-machine") -> int | None:
        path = f"/apis/apps/v1/namespaces/dovetail/statefulsets/{machine_type}-{group}"
        found = self.get(path)
        return None if found is None else found["spec"]["replicas"]

    def marks(self, node: str) -> tuple[dict[str, str], dict[str, str], str | None]:
        """Labels and taints of Imperator's domain, and the annotation."""
        found = self.get(f"/api/v1/nodes/{node}")
        labels = found["metadata"]["labels"]
        taints = found["spec"].get("taints", [])
        return (
            {key: value for key, value in labels.items() if key.startswith("imperator.")},
            {each["key"]: each["value"] for each in taints if each["key"].startswith("imperator.")},
            found["metadata"]["annotations"].get(MACHINE_GROUP),
        )

    def events(self, reason: str, namespace: str = "lab") -> list[str]:
        """Names of what was told of by this reason."""
        found = self.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        return sorted(each["regarding"]["name"] for each in found if each["reason"] == reason)

    def by_node(self, pods: Mapping[str, dict[str, Any]]) -> Counter[str]:
        return Counter(
            pod["spec"]["nodeName"] for pod in pods.values() if pod["spec"].get("nodeName")
        )

    # -- waiting ---------------------------------------------------------------------------------

    def await_that(self, holds: Callable[[], bool], what: str, within: float = SETTLED) -> None:
        self.cluster.await_that(holds, what, within)

    def await_usage(
        self, machine_type: str, expected: tuple[float, ...], name: str = "general-machine"
    ) -> None:
        """Maximum, reserved, used, waiting."""

        def told() -> tuple[float, ...] | None:
            found = self.usage(machine_type, name)
            order = ("maximum", "reserved", "used", "waiting")
            return None if found is None else tuple(found[key] for key in order)

        deadline = time.monotonic() + SETTLED
        while (found := told()) != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == expected, f"{found} is told, not {expected}; {self._stock_words()}"

    def _stock_words(self) -> str:
        """Where sleepers are, for who reads of a failure."""
        return "; ".join(
            f"{name}: {pod['spec'].get('nodeName')} {pod['spec'].get('nodeSelector')}"
            f" {pod['spec'].get('schedulingGates')} {pod['status'].get('conditions')}"
            for name, pod in self.sleepers().items()
        )

    def await_ready(self, name: str = "general-machine") -> None:
        self.await_that(
            lambda: (self.condition("Ready", name) or ("",))[0] == "True", f"{name} ready"
        )


@contextmanager
def machine_bed(
    directory: Path, *, operator: bool = True, parts: Sequence[str] = PARTS
) -> Iterator[Bed]:
    needs_kubernetes()
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster.running(directory))
        cluster.start_controllers()
        cluster.start_node_lifecycle()
        cluster.start_kwok()
        cluster.start_scheduler()
        install(cluster, parts)
        cluster.make_namespace("lab", {INJECT_RESOURCE: ENABLED})
        if "machines-rules" in parts and "machines-admission" in parts:
            cluster.await_that(lambda: policies_judge(cluster), "policies")
        bed = Bed(cluster, directory)
        stack.callback(bed.stop_operators)
        if operator:
            bed.start_operator()
        yield bed


def install(cluster: Cluster, parts: Sequence[str] = PARTS) -> None:
    """Everything but the operator's own pods, which would need an image."""
    cluster.make_namespace("dovetail")
    documents = list(yaml.safe_load_all(manifests.text(parts)))
    cluster.apply(*(each for each in documents if each["kind"] != "Deployment"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/machines.imperator.tenzen-y.io")


def policies_judge(cluster: Cluster) -> bool:
    """The API server has them and knows their parameters, so that it refuses what it is to refuse.

    In the first seconds it lets everything pass, and then refuses everything.
    """
    sleeper, unknown = guests.pod_object(role=RESERVATION), guests.pod_object("no-such-type")
    return (
        "is missing" in refusal(cluster, machine_object(one_type(), labels={}))
        and not refusal(cluster, machine_object(one_type()))
        and "no Machine" in guests.refusal(cluster, "lab", unknown)
        and "StatefulSets" in guests.refusal(cluster, "lab", sleeper)
    )


def example_nodes() -> list[dict[str, Any]]:
    """The three nodes of the specification's example, with room for all of its stock."""
    return [
        node_object("michiru", cpu="64", memory="256Gi", more={"nvidia.com/gpu": "4"}, labels=RTX),
        *(
            node_object(name, cpu="32", memory="256Gi", more={"nvidia.com/gpu": "4"}, labels=DGX)
            for name in ("utaha", "eriri")
        ),
    ]


def example_spec() -> dict[str, Any]:
    return deepcopy(GENERAL)


def simple_spec(
    nodes: Sequence[str], available: int, *, name: str = "small", **more: Any
) -> dict[str, Any]:
    """One type without GPUs, on these nodes."""
    shape = {"cpu": "2", "memory": "4Gi"}
    return {
        "nodePool": [{"name": node, "machineType": [{"name": name}]} for node in nodes],
        "machineTypes": [{"name": name, "spec": shape, "available": available, **more}],
    }
