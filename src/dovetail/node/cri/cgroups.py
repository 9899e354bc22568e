"""Reads a process's cpuset from its cgroup, v1 or v2: what the kernel enforces; CRI's client asks.

Read only. A runtime remembers what it was told and writes that again with any later update, so
what somebody writes here behind its back lasts until then.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dovetail.node.common.container_settings import ContainerSettings

PROC = Path("/proc")


class CgroupMount(NamedTuple):
    """A hierarchy of cgroups."""

    at: Path
    controllers: frozenset[str]
    """Of v2 there is one hierarchy, which has whatever no other has; here: none."""


def hierarchies(mounts: str) -> list[CgroupMount]:
    """From the text of /proc/mounts: those of v1 first, as a controller is in one place only."""
    rows = [line.split() for line in mounts.splitlines()]
    v1 = [
        CgroupMount(Path(row[1]), frozenset(row[3].split(",")))
        for row in rows
        if row[2] == "cgroup"
    ]
    return v1 + [CgroupMount(Path(row[1]), frozenset()) for row in rows if row[2] == "cgroup2"]


def directory(controller: str, cgroup: str, mounted: list[CgroupMount]) -> Path | None:
    """Where the files of a controller are; `cgroup` is the text of /proc/PID/cgroup."""
    rows = [line.split(":", 2) for line in cgroup.splitlines()]
    for _, names, path in rows:
        if controller in names.split(","):
            for each in mounted:
                if controller in each.controllers:
                    return each.at / path.lstrip("/")
    for number, names, path in rows:
        if number == "0" and not names:
            for each in mounted:
                if not each.controllers:
                    return each.at / path.lstrip("/")
    return None


def pinning(pid: int, proc: Path = PROC) -> ContainerSettings:
    """CPUs and memory nodes of a process by its cgroup; empty if that can't be read."""
    try:
        cgroup = (proc / str(pid) / "cgroup").read_text()
        mounted = hierarchies((proc / "self/mounts").read_text())
    except OSError:
        return ContainerSettings()
    found = directory("cpuset", cgroup, mounted)
    return ContainerSettings(cpus=_text(found, "cpuset.cpus"), mems=_text(found, "cpuset.mems"))


def _text(found: Path | None, file: str) -> str:
    """In v2 an empty file means that nothing was set, which is how we say it, too."""
    if found is None:
        return ""
    try:
        return (found / file).read_text().strip()
    except OSError:
        return ""
