"""Pools by load: when they grow, when they shrink, and what the load is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.node.plugins.common.roles import AdjusterRule, CpuPool
from dovetail.node.plugins.cpu.adjuster import PoolAdjustment, PoolLoad, adjust
from dovetail.node.plugins.cpu.load import CpuTicks, NoLoad, pressure, ticks, use

RULE = AdjusterRule(pool="online", donor="offline", step=4, patience=2)
"""Grows above 0.8 or 20 % of pressure, shrinks below 0.5."""
POOLS = {"online": CpuPool(size=10, min=4, max=20), "offline": CpuPool(size=10, min=4)}


def decided(
    use: float,
    pressure: float = 0,
    *,
    online: int = 10,
    offline: int = 10,
    quiet: int = 0,
    shared: int = 0,
) -> PoolAdjustment:
    """`shared`: CPUs that the pool's containers share, if not all of them."""
    sizes = {"online": online, "offline": offline, "other": 3}
    return adjust(RULE, POOLS, sizes, PoolLoad(use, shared or online, pressure), quiet)


class TestGrowing:
    def test_at_once_when_it_is_busy(self) -> None:
        assert decided(0.9) == ({"online": 14, "offline": 6}, 0)

    def test_when_somebody_waits_and_it_is_not_idle(self) -> None:
        assert decided(0.6, 30).sizes == {"online": 14, "offline": 6}
        assert decided(0.6, 10).sizes == {}
        assert decided(0.3, 30).sizes == {}

    def test_as_far_as_its_own_most_allows(self) -> None:
        assert decided(0.9, online=19).sizes == {"online": 20, "offline": 9}
        assert decided(0.9, online=20).sizes == {}

    def test_as_far_as_the_donor_s_least_allows(self) -> None:
        assert decided(0.9, offline=5).sizes == {"online": 11, "offline": 4}
        assert decided(0.9, offline=4).sizes == {}


class TestShrinking:
    def test_with_patience(self) -> None:
        assert decided(0.2) == ({}, 1)
        assert decided(0.2, quiet=1) == ({"online": 6, "offline": 14}, 0)

    def test_patience_starts_anew_when_it_is_busy(self) -> None:
        assert decided(0.6, quiet=1) == ({}, 0)
        assert decided(0.9, quiet=1).quiet == 0

    def test_down_to_its_least(self) -> None:
        assert decided(0.1, online=6, quiet=1).sizes == {"online": 4, "offline": 12}
        assert decided(0.1, online=4, quiet=1).sizes == {}

    def test_not_to_where_it_would_grow_again(self) -> None:
        """0.49 of 10 CPUs are 0.82 of 6."""
        assert decided(0.49, quiet=1) == ({}, 0)
        assert decided(0.47, quiet=1).sizes == {"online": 6, "offline": 14}

    def test_not_to_where_pressure_would_have_it_grow_again(self) -> None:
        """Batch work that waits for CPUs is pressure as well: it must not make the pool swing.

        0.4 of 10 CPUs are 0.67 of 6, which is not idle.
        """
        assert decided(0.4, 30, quiet=1) == ({}, 0)
        assert decided(0.4, 10, quiet=1).sizes == {"online": 6, "offline": 14}
        assert decided(0.2, 30, quiet=1).sizes == {"online": 6, "offline": 14}

    def test_cpus_of_somebody_s_own_do_not_serve_the_others(self) -> None:
        """0.4 of the 7 CPUs that are shared are 0.93 of 3."""
        assert decided(0.4, quiet=1).sizes
        assert decided(0.4, quiet=1, shared=7) == ({}, 0)
        assert decided(0.1, quiet=1, shared=4) == ({}, 0), "none would be left"


class TestLoad:
    STAT = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 20 60 10 0 0 0 7 0\ncpu1 1 0 0 1\nintr 5\n"

    def test_ticks_are_busy_or_idle(self, tmp_path: Path) -> None:
        (tmp_path / "stat").write_text(self.STAT)
        assert ticks(tmp_path) == {0: CpuTicks(30, 100), 1: CpuTicks(1, 2)}

    def test_use_is_between_two_looks(self) -> None:
        before = {0: CpuTicks(30, 100), 1: CpuTicks(0, 100), 2: CpuTicks(0, 0)}
        after = {0: CpuTicks(130, 200), 1: CpuTicks(0, 200), 3: CpuTicks(9, 9)}
        assert use(before, after, [0]) == 1
        assert use(before, after, [0, 1, 2, 3]) == 0.5
        assert use(before, after, []) == 0

    def test_pressure(self, tmp_path: Path) -> None:
        assert pressure(tmp_path) == 0, "a kernel without PSI"
        (tmp_path / "pressure").mkdir()
        (tmp_path / "pressure" / "cpu").write_text("some avg10=12.34 avg60=0.00\nfull avg10=0.00\n")
        assert pressure(tmp_path) == 12.34

    def test_what_is_no_load(self, tmp_path: Path) -> None:
        with pytest.raises(NoLoad, match="stat"):
            ticks(tmp_path)
        (tmp_path / "stat").write_text("cpu0 a b\n")
        with pytest.raises(NoLoad, match="stat"):
            ticks(tmp_path)
        (tmp_path / "pressure").mkdir()
        (tmp_path / "pressure" / "cpu").write_text("")
        with pytest.raises(NoLoad, match="there is no line such as some avg10"):
            pressure(tmp_path)

    def test_of_this_machine(self) -> None:
        assert ticks(Path("/proc"))
