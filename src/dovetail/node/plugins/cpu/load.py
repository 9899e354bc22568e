"""Reads how busy the CPUs of this node are, from /proc/stat and /proc/pressure/cpu."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from dovetail.core.errors import DovetailError

IDLE = slice(3, 5)
"""Of the columns of /proc/stat: idle, and idle while waiting for a disk."""
OWN = slice(0, 8)
"""Those that add up to all the time; what guests used is in the others already."""


class NoLoad(DovetailError):
    """The kernel does not tell, or not in a form that we know."""


class CpuTicks(NamedTuple):
    busy: int
    all: int


def ticks(proc: Path) -> dict[int, CpuTicks]:
    """Since the machine started, by CPU."""
    path = proc / "stat"
    found = {}
    try:
        for line in path.read_text("ascii").splitlines():
            if head := re.match(r"cpu(\d+) ", line):
                columns = [int(each) for each in line[head.end() :].split()]
                total = sum(columns[OWN])
                found[int(head[1])] = CpuTicks(total - sum(columns[IDLE]), total)
    except (OSError, ValueError) as error:
        raise NoLoad(f"{path}: {error}") from None
    return found


def use(
    before: Mapping[int, CpuTicks], after: Mapping[int, CpuTicks], cpus: Iterable[int]
) -> float:
    """Which part of their time these CPUs were busy between two looks."""
    known = [each for each in cpus if each in before and each in after]
    busy = sum(after[each].busy - before[each].busy for each in known)
    total = sum(after[each].all - before[each].all for each in known)
    return busy / total if total > 0 else 0.0


def pressure(proc: Path) -> float:
    """Percent of the last 10 s in which something waited for a CPU; 0 if the kernel has no PSI."""
    path = proc / "pressure" / "cpu"
    try:
        text = path.read_text("ascii")
    except (FileNotFoundError, NotADirectoryError):
        return 0.0
    except OSError as error:
        # Some kernels have the file but no PSI.
        raise NoLoad(f"{path}: {error}") from None
    found = re.search(r"^some avg10=([0-9.]+)", text, re.MULTILINE)
    if not found:
        raise NoLoad(f"{path}: there is no line such as some avg10=0.00")
    return float(found[1])
