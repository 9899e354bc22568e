"""Sets of CPUs as the kernel writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.common.cpus import CPU_LIMIT, BadCpuList, CpuSet

sets = st.sets(st.integers(0, 300)).map(CpuSet)


@given(sets)
def test_there_and_back(cpus: CpuSet) -> None:
    assert CpuSet.parse(str(cpus)) == cpus
    assert CpuSet.of_mask(cpus.mask) == cpus


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", []),
        ("\n", []),
        ("0", [0]),
        ("0-3,8\n", [0, 1, 2, 3, 8]),
        ("8, 0-1", [0, 1, 8]),
        ("1-1,1", [1]),
        ("0-8:1/4", [0, 4, 8]),
        ("0-7:2/4", [0, 1, 4, 5]),
    ],
)
def test_read(text: str, members: list[int]) -> None:
    assert CpuSet.parse(text) == frozenset(members)


@pytest.mark.parametrize(
    ("members", "text"),
    [([], ""), ([5], "5"), ([1, 0], "0-1"), ([0, 2, 3, 4, 9], "0,2-4,9")],
)
def test_written(members: list[int], text: str) -> None:
    assert str(CpuSet(members)) == text


@pytest.mark.parametrize(
    "text", ["x", "1-", "-1", "3-1", "0,,1", "1-2-3", "٣", f"0-{CPU_LIMIT}", "0x1", "9" * 5000]
)
def test_no_list(text: str) -> None:
    with pytest.raises(BadCpuList):
        CpuSet.parse(text)


@given(sets, sets)
def test_operations_stay_in_the_family(one: CpuSet, other: CpuSet) -> None:
    for result, plain in (
        (one | other, set(one) | set(other)),
        (one & other, set(one) & set(other)),
        (one - other, set(one) - set(other)),
    ):
        assert isinstance(result, CpuSet)
        assert result == frozenset(plain)


def test_with_other_kinds_of_sets() -> None:
    keys = {1: "", 5: ""}.keys()
    cpus = CpuSet({0, 1})
    assert (str(cpus | keys), str(cpus & keys), str(cpus - keys)) == ("0-1,5", "1", "0")
