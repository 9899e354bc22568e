"""What tests on real nodes look for: pins, limits, and what the agent holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.node.kubelet.bed import NodeBed
from tests.support.node.kubelet.node import ROLES
from tests.support.node.pods_on import Pinned

ON_FIRST, ON_SECOND = Pinned("0", "0", "0", "0"), Pinned("1", "0", "1", "0")

HALVES_SWAPPED = (
    ROLES.replace('cpus = "0"', 'cpus = "x"')
    .replace('cpus = "1"', 'cpus = "0"')
    .replace('cpus = "x"', 'cpus = "1"')
)

ONE_CPU_FREE = """
[pools.online]
cpus = "0"

[roles.web]
cpu = { pool = "online" }
memory = { bind = true }

[roles.storage]
cpu = { exclusive = true }
memory = { bind = true }
"""
"""CPU 1 is in no pool."""


def held(bed: NodeBed) -> dict[str, set[str]]:
    """Containers of pods in the agent's state, by the pods' names."""
    return {
        pod["name"]: {each["name"] for each in pod["containers"]}
        for pod in bed.agent.told("state")["pods"]
    }


def given(bed: NodeBed) -> dict[str, Any]:
    """What containers of pods were given, by the pods' names."""
    return {
        pod["name"]: {each["name"]: each["allocations"] for each in pod["containers"]}
        for pod in bed.agent.told("state")["pods"]
    }


def await_held(bed: NodeBed, expected: dict[str, set[str]]) -> None:
    bed.await_that(lambda: held(bed) == expected, f"the agent holds {expected}")


def limits(pid: int) -> tuple[int, int]:
    """Its CPU time in 100 ms (in µs) and its memory (in bytes), by the kernel's files."""
    rows = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    groups = {name: path for _, names, path in rows for name in names.split(",")}
    top = Path("/sys/fs/cgroup")
    if "cpu" in groups:
        quota = (top / f"cpu{groups['cpu']}/cpu.cfs_quota_us").read_text()
        memory = (top / f"memory{groups['memory']}/memory.limit_in_bytes").read_text()
    else:
        quota = (top / f"{groups['']}/cpu.max".lstrip("/")).read_text().split()[0]
        memory = (top / f"{groups['']}/memory.max".lstrip("/")).read_text()
    return int(quota), int(memory)
