"""Small files of sysfs: one value each, which may be missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import BadCpuList, CpuSet

T = TypeVar("T")


class BadSysfs(DovetailError):
    """A directory that is no sysfs, or one that says something impossible."""


def text(file: Path) -> str | None:
    """Nothing if there is no such file, or the kernel does not know: a NIC without link."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(file: Path) -> int | None:
    return _parsed(file, int, "an integer")


def cpu_list(file: Path) -> CpuSet | None:
    return _parsed(file, CpuSet.parse, "a list of CPUs such as 0-3,8")


def cpu_map(file: Path) -> CpuSet | None:
    """Hexadecimal words of 32 bits with commas between them."""
    return _parsed(
        file, lambda words: CpuSet.of_mask(int(words.replace(",", ""), 16)), "a map of CPUs"
    )


def cpu_set(*names: tuple[Path, Path]) -> CpuSet | None:
    """The first there is of pairs of a list and a map: older kernels have only the map."""
    for as_list, as_map in names:
        for found in (cpu_list(as_list), cpu_map(as_map)):
            if found is not None:
                return found
    return None


def numbered(directory: Path, prefix: str) -> Iterator[tuple[int, Path]]:
    """Directories such as cpu7, in the order of their numbers."""
    name = re.compile(re.escape(prefix) + r"(\d+)", re.ASCII)
    found = ((name.fullmatch(each.name), each) for each in children(directory))
    return iter(sorted((int(match[1]), each) for match, each in found if match))


def children(directory: Path) -> list[Path]:
    """By name; none if there is no such directory."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _parsed(file: Path, parse: Callable[[str], T], what: str) -> T | None:
    written = text(file)
    if written is None:
        return None
    try:
        return parse(written)
    except (ValueError, BadCpuList):
        raise BadSysfs(f"{file} has {written[:80]!r}, which is not {what}") from None
