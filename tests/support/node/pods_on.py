"""Pods on a real runtime, as a kubelet would make them, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.node import image
from tests.support.node.containerd import Containerd
from tests.support.node.cri_client import Client

BUSY = ("/bin/sh", "-c", "while :; do sleep 1; done")


class Pinned(NamedTuple):
    """What the kernel holds a process to."""

    cpus: str
    mems: str
    allowed_cpus: str
    allowed_mems: str


def sandbox_config(server: Containerd, name: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "namespace": "default"},
        "log_directory": str(server.directory),
        "linux": {
            "cgroup_parent": server.cgroup,
            "security_context": {"namespace_options": {"network": "NODE"}},
        },
        **more,
    }


def container_config(
    name: str, resources: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "image": {"image": image.REFERENCE},
        "command": list(BUSY),
        "log_path": f"{name}.log",
        "linux": {
            "resources": resources or {},
            "security_context": {"namespace_options": {"network": "NODE"}},
        },
        **more,
    }


async def run(client: Client, sandbox: dict[str, Any]) -> str:
    id_: str = (await client("RunPodSandbox", config=sandbox)).pod_sandbox_id
    return id_


async def create(client: Client, id_: str, sandbox: dict[str, Any], config: dict[str, Any]) -> str:
    made = await client(
        "CreateContainer", pod_sandbox_id=id_, config=config, sandbox_config=sandbox
    )
    container: str = made.container_id
    return container


async def start(client: Client, container: str) -> int:
    """Its process."""
    await client("StartContainer", container_id=container)
    answer = await client("ContainerStatus", container_id=container, verbose=True)
    pid: int = json.loads(answer.info["info"])["pid"]
    return pid


async def remove(client: Client, id_: str) -> None:
    await client("StopPodSandbox", pod_sandbox_id=id_)
    await client("RemovePodSandbox", pod_sandbox_id=id_)


async def remove_all(client: Client) -> None:
    for each in (await client("ListPodSandbox")).items:
        await remove(client, each.id)


def pinned(pid: int) -> Pinned:
    """By the files of its cgroup, found in our own way, and by the kernel's word on the process."""
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if ":\t" in line
    )
    group = cpuset(pid)
    return Pinned(
        (group / "cpuset.cpus").read_text().strip(),
        (group / "cpuset.mems").read_text().strip(),
        status["Cpus_allowed_list"],
        status["Mems_allowed_list"],
    )


def cpuset(pid: int) -> Path:
    rows = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    for _, controllers, path in rows:
        if controllers == "cpuset":
            return Path(f"/sys/fs/cgroup/cpuset{path}")
    return Path(f"/sys/fs/cgroup{rows[-1][2]}")
