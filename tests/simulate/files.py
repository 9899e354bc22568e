"""Small workloads, written to files as users write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

NODES = "sn,cpu_milli,memory_mib,gpu,model"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time"


def csv_file(path: Path, header: str, rows: Iterable[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def json_lines(path: Path, documents: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def nodes(directory: Path, rows: Sequence[str]) -> Path:
    return csv_file(directory / "nodes.csv", NODES, rows)


def tasks(directory: Path, rows: Sequence[str]) -> Path:
    return csv_file(directory / "tasks.csv", TASKS, rows)


def host(name: str, gpus: int, vcpus: int = 100) -> dict[str, Any]:
    children = [{"name": f"{name}_{at}", "inventories": {"VGPU": 10}} for at in range(gpus)]
    return {"name": name, "inventories": {"VCPU": vcpus}, "children": children}


def job(name: str, gpu: int, vcpus: int = 1, **more: Any) -> dict[str, Any]:
    groups = {"": {"resources": {"VCPU": vcpus}}, "_GPU": {"resources": {"VGPU": gpu}}}
    return {"name": name, "groups": groups, **more}
