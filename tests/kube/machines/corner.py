"""A corner of a cluster for one test: nodes, a Machine and namespaces that no other test has.

Tests of one module share a bed, and none waits for what another left behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dovetail.machines.names import ENABLED, GUEST, INJECT_RESOURCE, role_labels
from tests.kube.machines.bed import MACHINES, PODS, Bed, simple_spec
from tests.support.kube.cluster import node_object

NAMESPACES = "/api/v1/namespaces"
CREATED = 201
NUMBERS = itertools.count()


class Corner:
    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.group = f"m{next(NUMBERS)}"
        """Also the name of its Machine."""
        self.namespace = f"{self.group}-lab"
        self._namespaces: list[str] = []
        self.add_namespace(self.namespace)

    # -- what there is ---------------------------------------------------------------------------

    def add_nodes(self, count: int, **about: Any) -> list[str]:
        """Each has room for four small units, unless `about` says something else."""
        names = [f"{self.group}-n{next(NUMBERS)}" for _ in range(count)]
        for name in names:
            body = node_object(name, **{"cpu": "8", "memory": "64Gi", **about})
            status, answer = self.bed.create("/api/v1/nodes", body)
            assert status == CREATED, answer
        return names

    def add_namespace(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """One that is opted in."""
        self.bed.cluster.make_namespace(name, {INJECT_RESOURCE: ENABLED, **(labels or {})})
        if annotations:
            self.change_namespace(name, annotations=annotations)
        self._namespaces.append(name)
        return name

    def change_namespace(
        self,
        name: str,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
    ) -> None:
        patch = {"metadata": {"labels": labels or {}, "annotations": annotations or {}}}
        status, answer = self.bed.cluster.request("PATCH", f"{NAMESPACES}/{name}", patch)
        assert status == 200, answer

    def sell(self, spec: Mapping[str, Any]) -> None:
        """A Machine, and wait until its stock is held."""
        self.bed.create_machine(spec, self.group)
        self.bed.await_ready(self.group)

    def sell_small(self, available: int, nodes: int = 1, **terms: Any) -> list[str]:
        """A Machine with one type, on nodes of its own."""
        names = self.add_nodes(nodes)
        self.sell(simple_spec(names, available, **terms))
        return names

    # -- guests ----------------------------------------------------------------------------------

    def guest(self, name: str, machine_type: str = "small", **about: Any) -> dict[str, Any]:
        """One that is created, as the API server has it."""
        status, answer = self.try_guest(name, machine_type, **about)
        assert status == CREATED, answer
        assert isinstance(answer, dict)
        return answer

    def try_guest(self, name: str, machine_type: str = "small", **about: Any) -> tuple[int, Any]:
        where = {"group": self.group, "namespace": self.namespace}
        return self.bed.create_guest(name, machine_type, **{**where, **about})

    def dry_run(self, machine_type: str = "small", **about: Any) -> dict[str, Any]:
        """A guest as it would be created."""
        body = self.template(machine_type, **about)
        body["metadata"]["generateName"] = "dry-"
        status, answer = self.bed.create(f"{PODS.format(self.namespace)}?dryRun=All", body)
        assert status == CREATED, answer
        assert isinstance(answer, dict)
        return answer

    def guests(self, *names: str, **about: Any) -> None:
        for name in names:
            self.guest(name, **about)

    def drop(self, *names: str, namespace: str = "", grace: int | None = 0) -> None:
        for name in names:
            self.bed.drop_pod(name, namespace or self.namespace, grace)

    def end(self, name: str, phase: str = "Succeeded") -> None:
        """Its containers end."""
        self.annotate(name, {"test/end": phase})

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        path = f"{PODS.format(self.namespace)}/{name}"
        patch = {"metadata": {"annotations": annotations}}
        status, answer = self.bed.cluster.request("PATCH", path, patch)
        assert status == 200, answer

    def template(self, machine_type: str = "small", **about: Any) -> dict[str, Any]:
        """Of the pods of a Job or a Deployment; its labels and annotations may be added to."""
        labels = {**role_labels(self.group, machine_type, GUEST), **about.pop("labels", {})}
        annotations = about.pop("annotations", {})
        containers = [{"name": "main", "image": "train"}]
        return {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {"containers": containers, **about},
        }

    def create(self, path: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object of the namespace, such as `apis/batch/v1:jobs`."""
        api, kind = path.split(":")
        body = {"metadata": {"name": name}, "spec": spec}
        status, answer = self.bed.create(f"/{api}/namespaces/{self.namespace}/{kind}", body)
        assert status == CREATED, answer
        assert isinstance(answer, dict)
        return answer

    # -- what is told ----------------------------------------------------------------------------

    def pod(self, name: str, namespace: str = "") -> dict[str, Any]:
        found = self.bed.get(f"{PODS.format(namespace or self.namespace)}/{name}")
        assert isinstance(found, dict), f"no pod {name}"
        return found

    def node_of(self, name: str, namespace: str = "") -> str:
        return str(self.pod(name, namespace)["spec"].get("nodeName", ""))

    def running(self, namespace: str = "") -> list[str]:
        return self.bed.running(namespace or self.namespace)

    def status(self) -> dict[str, Any]:
        return self.bed.status(self.group)

    def waiting(self) -> dict[str, str]:
        """Reason by pod, in the order of the line."""
        return {row["pod"]: row["reason"] for row in self.status().get("waiting", [])}

    def why(self, pod: str) -> str:
        """The message for one that waits."""
        rows = self.status()["waiting"]
        return str(next(row["message"] for row in rows if row["pod"] == pod))

    def holders(self) -> dict[str, dict[str, Any]]:
        return {row["pod"]: row for row in self.status().get("holders", [])}

    def free(self, machine_type: str = "small") -> int:
        rows = self.status().get("availableMachines", [])
        return next((row["free"] for row in rows if row["name"] == machine_type), -1)

    def stock(self) -> list[dict[str, Any]]:
        """Sleepers of this Machine that are on a node."""
        group = "imperator.tenzen-y.io/machine-group"
        return [
            pod
            for pod in self.bed.sleepers().values()
            if pod["metadata"]["labels"][group] == self.group and pod["spec"].get("nodeName")
        ]

    # -- waiting for it --------------------------------------------------------------------------

    def await_running(self, *names: str, namespace: str = "") -> None:
        """These and no others."""
        wanted = sorted(names)
        self._await(lambda: self.running(namespace), wanted)

    def await_waiting(self, **reasons: str) -> None:
        """All that wait, by name (a hyphen is written as _) and reason."""
        self._await(self.waiting, {key.replace("_", "-"): each for key, each in reasons.items()})

    def await_usage(self, *expected: float, machine_type: str = "small") -> None:
        """Maximum, reserved, used, waiting."""
        self.bed.await_usage(machine_type, expected, self.group)

    def await_condition(self, type_: str, status: str, reason: str) -> str:
        """Its message."""
        self._await(lambda: (self.bed.condition(type_, self.group) or ())[:2], (status, reason))
        return (self.bed.condition(type_, self.group) or ("", "", ""))[2]

    def await_event(self, reason: str, *pods: str, namespace: str = "") -> None:
        """That each of these was told so."""
        self.bed.await_that(
            lambda: set(pods) <= set(self.bed.events(reason, namespace or self.namespace)),
            f"event {reason} of {pods}",
        )

    def _await(self, look: Any, wanted: object) -> None:
        try:
            self.bed.await_that(lambda: look() == wanted, f"{wanted}")
        except TimeoutError:
            assert look() == wanted

    def leave(self) -> None:
        """Let go of everything; nobody waits for it to be gone."""
        self.bed.cluster.request("DELETE", f"{MACHINES}/{self.group}")
        for name in self._namespaces:
            self.bed.cluster.request("DELETE", f"{PODS.format(name)}?gracePeriodSeconds=0")
            self.bed.cluster.drop_namespace(name)


@contextmanager
def corner_of(bed: Bed) -> Iterator[Corner]:
    corner = Corner(bed)
    try:
        yield corner
    finally:
        corner.leave()


def types(nodes: Sequence[str], *machine_types: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A specification in which each node serves the first type."""
    name = machine_types[0]["name"]
    return {
        "nodePool": [{"name": node, "machineType": [{"name": name}]} for node in nodes],
        "machineTypes": list(machine_types),
        **more,
    }


def small(name: str = "small", available: int = 1, **terms: Any) -> dict[str, Any]:
    return {"name": name, "spec": {"cpu": "2", "memory": "4Gi"}, "available": available, **terms}
