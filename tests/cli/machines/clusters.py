"""A cluster for `dovetail machines`: what a lab has, as an API server lists it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.kube.machines.acceptance import record_name, record_of
from dovetail.podfit.objects import ConfigMap, KubeObject
from tests.cli.conftest import Parrot
from tests.machines.lab import Lab

IMPERATOR = "/apis/imperator.tenzen-y.io/v1alpha1"
OWNED = "/namespaces/dovetail"
SHAPES = "/apis/dovetail.dev/v1alpha1/machineshapes"
RECORDS = f"/api/v1{OWNED}/configmaps"


def listed(objects: Iterable[KubeObject]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "1"}, "items": msgspec.to_builtins(list(objects))}


def tell(parrot: Parrot, lab: Lab) -> None:
    """The server says what the lab has, which is accepted."""
    body = record_of(lab.machine)
    meta = {**body["metadata"], "name": record_name(lab.machine.metadata.name)}
    record = msgspec.convert({**body, "metadata": meta}, ConfigMap)
    answers: dict[str, Iterable[KubeObject]] = {
        f"{IMPERATOR}/machines": [lab.machine],
        f"{IMPERATOR}/machinenodepools": [],
        SHAPES: [],
        RECORDS: [record],
        f"/apis/apps/v1{OWNED}/statefulsets": lab.stateful_sets.values(),
        f"/api/v1{OWNED}/services": [],
        "/api/v1/namespaces": lab.namespaces.values(),
        "/api/v1/nodes": lab.nodes.values(),
        "/api/v1/pods": [*lab.guests.values(), *lab.sleepers.values()],
    }
    for path, objects in answers.items():
        parrot.says("GET", path, listed(objects))


def kubeconfig(folder: Path, url: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "ada"}}],
        "clusters": [{"name": "lab", "cluster": {"server": url}}],
        "users": [{"name": "ada", "user": {"token": "secret"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def machines(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["machines", *arguments], input=stdin)
