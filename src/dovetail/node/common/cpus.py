"""Sets of CPUs or NUMA nodes as the kernel writes them: "0-3,8"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import chain, groupby

from dovetail.core.errors import DovetailError

CPU_LIMIT = 2**16
"""No kernel numbers that many CPUs: what is above is a mistake, and would fill the memory."""

PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9})/(\d{1,9}))?)?", re.ASCII)


class BadCpuList(DovetailError):
    """Text that is no list of CPUs."""


class CpuSet(frozenset[int]):
    """An immutable set that is written as the kernel does. Also used for sets of NUMA nodes."""

    @classmethod
    def parse(cls, text: str) -> CpuSet:
        """Of a list such as "0-3,8" or "0-31:1/4" (of each 4 the first)."""
        text = text.strip()
        return cls(chain.from_iterable(map(_part, text.split(",")))) if text else cls()

    @classmethod
    def of_mask(cls, mask: int) -> CpuSet:
        """Of a number whose bits tell."""
        return cls(at for at in range(mask.bit_length()) if mask >> at & 1)

    @property
    def mask(self) -> int:
        return sum(1 << each for each in self)

    def __str__(self) -> str:
        """The shortest list, ascending."""
        return ",".join(
            f"{low}-{high}" if low != high else f"{low}" for low, high in _runs(sorted(self))
        )

    def __repr__(self) -> str:
        return f"CpuSet({str(self)!r})"

    def __or__(self, other: AbstractSet[int]) -> CpuSet:  # type: ignore[override]
        return CpuSet(self.union(other))

    def __and__(self, other: AbstractSet[object]) -> CpuSet:
        return CpuSet(self.intersection(other))

    def __sub__(self, other: AbstractSet[object]) -> CpuSet:
        return CpuSet(self.difference(other))


def _part(text: str) -> Iterable[int]:
    found = PART.fullmatch(text.strip())
    if not found:
        raise BadCpuList(f"{text!r} is no CPU, nor a range of CPUs such as 0-3")
    low, high, used, group = (None if each is None else int(each) for each in found.groups())
    assert low is not None
    high = low if high is None else high
    if high < low or high >= CPU_LIMIT:
        raise BadCpuList(f"{text!r} is no range of CPUs: it ends at {high}")
    if not group:
        return range(low, high + 1)
    return [at for at in range(low, high + 1) if (at - low) % group < (used or 0)]


def _runs(ascending: list[int]) -> Iterable[tuple[int, int]]:
    for _, run in groupby(enumerate(ascending), key=lambda each: each[1] - each[0]):
        members = [number for _, number in run]
        yield members[0], members[-1]
