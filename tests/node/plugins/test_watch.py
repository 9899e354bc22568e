"""What a plugin does by itself: files that change, wishes, ramps and load."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.node.plugins import running
from dovetail.node.plugins.common.role_file import parse
from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.plugins.cpu.plugin import CpuPlugin
from dovetail.node.plugins.watch import PoolWatch, RoleWatch
from dovetail.node.topology import synthetic
from tests.node.plugins.rig import ask, directory

MACHINE = synthetic(sockets=2, cores=10, threads=2)
"""0-19 and 20-39."""

ROLES = """
[pools.online]
size = 20
min = 2
[pools.offline]
size = 10
max = 38
[roles.web]
cpu = { pool = "online" }
[roles.own]
cpu = { pool = "online", exclusive = true }
"""


def made(tmp_path: Path, roles: str = ROLES) -> CpuPlugin:
    return CpuPlugin(MACHINE, parse(roles, MACHINE), PluginStore(tmp_path / "cpu.json"))


def sizes(plugin: CpuPlugin) -> tuple[int, int]:
    return len(plugin.state.pools["online"]), len(plugin.state.pools["offline"])


class TestRoles:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "roles.toml"
        file.write_text(ROLES)
        return file

    def test_a_size_that_changes_in_the_file_counts(self, tmp_path: Path, file: Path) -> None:
        plugin = made(tmp_path)
        watch = RoleWatch(plugin, file)
        plugin.want({"offline": 12})
        file.write_text(ROLES.replace("size = 20", "size = 8"))
        watch.look()
        assert sizes(plugin) == (8, 12), "what was set since stays"

    def test_what_was_set_stays_over_a_restart_unless_the_file_changed(
        self, tmp_path: Path
    ) -> None:
        made(tmp_path).want({"online": 24})
        assert sizes(made(tmp_path)) == (24, 10)
        assert sizes(made(tmp_path, ROLES.replace("size = 20", "size = 18"))) == (18, 10)

    def test_a_wrong_file_changes_nothing(self, tmp_path: Path, file: Path) -> None:
        plugin = made(tmp_path)
        before = plugin.state, plugin.book
        watch = RoleWatch(plugin, file)
        file.write_text("[pools.online]\nsize = 99\n")
        watch.look()
        assert (plugin.state, plugin.book) == before
        file.unlink()
        watch.look()
        assert (plugin.state, plugin.book) == before

    def test_it_is_read_only_if_it_changed_or_somebody_asks(
        self, tmp_path: Path, file: Path
    ) -> None:
        plugin = made(tmp_path)
        watch = RoleWatch(plugin, file)
        stamp = file.stat()
        file.write_text(ROLES.replace("size = 20", "size = 22"))
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        watch.look()
        assert sizes(plugin) == (20, 10)
        watch.asked.set()
        watch.look()
        assert sizes(plugin) == (22, 10)


class TestWishes:
    def test_a_wish_counts_once_even_if_it_came_before_we_did(self, tmp_path: Path) -> None:
        (tmp_path / "pools.json").write_text('{"online": 8}')
        plugin = made(tmp_path)
        watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
        watch.look()
        assert sizes(plugin) == (8, 10)
        plugin.want({"online": 20})
        watch.look()
        assert sizes(plugin) == (20, 10)

    @pytest.mark.parametrize(
        "wish",
        [
            '{"online": 1}',
            '{"offline": 39}',
            '{"nobody": 3}',
            '{"online": 31}',
            '{"online": true}',
            '{"online": "8"}',
            "[]",
            "garbage",
            "",
            pytest.param("[" * 100_000, id="deep"),
        ],
    )
    def test_a_wish_that_cannot_be_met_changes_nothing(self, tmp_path: Path, wish: str) -> None:
        plugin = made(tmp_path)
        (tmp_path / "pools.json").write_text(wish)
        before = plugin.state
        PoolWatch(plugin, tmp_path / "pools.json", tmp_path).look()
        assert plugin.state == before
        assert not (tmp_path / "pools.json").exists()

    def test_a_wish_that_cannot_be_kept_is_tried_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise StateNotSaved("no space")

        plugin = made(tmp_path)
        watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
        (tmp_path / "pools.json").write_text('{"online": 8}')
        with monkeypatch.context() as broken:
            broken.setattr(PluginStore, "save", full)
            watch.look()
        assert sizes(plugin) == (20, 10)
        watch.look()
        assert sizes(plugin) == (8, 10)


def test_pools_with_a_ramp_get_there_by_and_by(tmp_path: Path) -> None:
    plugin = made(tmp_path, ROLES.replace("min = 2", "min = 2\nramp = 4"))
    watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
    plugin.want({"online": 10, "offline": 20})
    seen = [sizes(plugin)]
    for _ in range(4):
        watch.look()
        seen.append(sizes(plugin))
    assert seen == [(16, 20), (12, 20), (10, 20), (10, 20), (10, 20)]


def test_pools_wait_until_nobody_would_be_left_without_cpus(tmp_path: Path) -> None:
    plugin = made(tmp_path)
    web, own = plugin.book.roles["web"], plugin.book.roles["own"]
    plugin.keep(plugin.cpus.allocate(plugin.state, ask("shares", web, 1)))
    plugin.keep(plugin.cpus.allocate(plugin.state, ask("owns", own, 16)))
    plugin.want({"online": 17})
    assert sizes(plugin) == (20, 10), "min is 2, and 16 are somebody's own"
    plugin.keep(plugin.state.without("owns"))
    plugin.step()
    assert sizes(plugin) == (17, 10)


def proc_with(proc: Path, busy: int, idle: int) -> None:
    """So many ticks more on every CPU."""
    lines = [f"cpu{at} {busy} 0 0 {idle} 0 0 0 0" for at in range(40)]
    (proc / "stat").write_text("\n".join(lines))


def test_the_adjuster_follows_the_load(tmp_path: Path) -> None:
    adjuster = '[adjuster]\npool = "online"\ndonor = "offline"\nstep = 2\npatience = 2\n'
    plugin = made(tmp_path, ROLES + adjuster)
    watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
    seen = []
    for busy, idle in ((0, 0), (95, 5), (190, 10), (190, 110), (190, 210), (190, 310)):
        proc_with(tmp_path, busy, idle)
        watch.look()
        seen.append(sizes(plugin))
    assert seen == [(20, 10), (22, 8), (24, 6), (24, 6), (22, 8), (22, 8)]


def test_without_load_there_is_no_adjustment(tmp_path: Path) -> None:
    plugin = made(tmp_path, ROLES + '[adjuster]\npool = "online"\ndonor = "offline"\n')
    before = plugin.state
    PoolWatch(plugin, tmp_path / "pools.json", tmp_path / "nowhere").look()
    assert plugin.state == before


async def test_a_plugin_that_cannot_look_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise pools would stay as they are, and nobody would know."""

    async def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(running, "keep_looking", broken)
    with directory() as made_here:
        setup = running.PluginSetup(
            kind="cpu",
            resource="cpu",
            roles=tmp_path / "roles.toml",
            socket_directory=made_here,
            state_directory=tmp_path,
            sysfs=tmp_path,
            proc=tmp_path,
            period=1,
        )
        with pytest.raises(RuntimeError, match="a fault"):
            await running.run(setup, made(tmp_path))


def test_the_adjuster_does_not_run_ahead_of_a_ramp(tmp_path: Path) -> None:
    """It asks for a step more than the pool has, and the pool goes a ramp at each look."""
    adjuster = '[adjuster]\npool = "online"\ndonor = "offline"\nstep = 4\n'
    plugin = made(tmp_path, ROLES.replace("min = 2", "min = 2\nramp = 1") + adjuster)
    watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
    seen = []
    for busy, idle in ((0, 0), (95, 5), (190, 10), (255, 45)):
        proc_with(tmp_path, busy, idle)
        watch.look()
        seen.append((sizes(plugin)[0], plugin.state.wanted["online"]))
    assert seen == [(20, 20), (21, 24), (22, 25), (23, 25)]


def test_the_adjuster_looks_at_cpus_that_are_shared(tmp_path: Path) -> None:
    """A container that spins on its own CPUs does not make the pool grow."""
    plugin = made(tmp_path, ROLES + '[adjuster]\npool = "online"\ndonor = "offline"\n')
    plugin.keep(plugin.cpus.allocate(plugin.state, ask("owns", plugin.book.roles["own"], 18)))
    watch = PoolWatch(plugin, tmp_path / "pools.json", tmp_path)
    for ticks in (0, 100):
        lines = [
            f"cpu{at} {ticks} 0 0 0" if at in plugin.state.held else f"cpu{at} 0 0 0 {ticks}"
            for at in range(40)
        ]
        (tmp_path / "stat").write_text("\n".join(lines))
        watch.look()
    assert sizes(plugin) == (20, 10)
