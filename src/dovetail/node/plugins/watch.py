"""Periodic looks of a plugin: at its role file, and at who resizes pools (wishes, load, ramps).

Files are looked at every period. One that is wrong is told once, and all stays as it was.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import structlog

from dovetail.node.plugins.common import role_file
from dovetail.node.plugins.common.role_file import BadRoles
from dovetail.node.plugins.common.serving import RolePlugin
from dovetail.node.plugins.common.store import StateNotSaved
from dovetail.node.plugins.cpu import sizes
from dovetail.node.plugins.cpu.adjuster import PoolLoad, adjust
from dovetail.node.plugins.cpu.load import CpuTicks, NoLoad, pressure, ticks, use
from dovetail.node.plugins.cpu.plugin import CpuPlugin

LOG = structlog.get_logger("dovetail.node.plugins")

WISHES = "pools.json"
"""In the state directory: sizes of pools by name, for whoever wants to resize them."""


class WatchedFile:
    """A file, and whether it is another than at the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen = self.stamp()

    def changed(self) -> bool:
        before, self.seen = self.seen, self.stamp()
        return self.seen != before and self.seen is not None

    def stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size


class RoleWatch:
    """Has a plugin follow its file of roles."""

    def __init__(self, plugin: RolePlugin[Any], path: Path) -> None:
        self.plugin, self.file = plugin, WatchedFile(path)
        self.asked = asyncio.Event()
        """Set to have the file read although it looks the same."""

    def look(self) -> None:
        if not self.file.changed() and not self.asked.is_set():
            return
        self.asked.clear()
        try:
            self.plugin.adopt(role_file.read(self.file.path, self.plugin.machine))
        except (BadRoles, StateNotSaved) as error:
            LOG.error("roles stay as they were", error=str(error))
        else:
            LOG.info("roles read", file=str(self.file.path))


class PoolWatch:
    """Has the pools of a plugin follow wishes, load and ramps."""

    def __init__(self, plugin: CpuPlugin, wishes: Path, proc: Path) -> None:
        self.plugin, self.wishes, self.proc = plugin, wishes, proc
        self.before: dict[int, CpuTicks] = {}
        self.quiet = 0
        self.reported = ""
        """Why the load was not known at the last look."""

    def look(self) -> None:
        try:
            # One step of a ramp at each look, whoever asked for it.
            if not (self.wish() or self.adjust()):
                self.plugin.step()
        except StateNotSaved as error:
            LOG.error("pools stay as they are", error=str(error))

    def wish(self) -> bool:
        """Whether there was one that counts.

        It is taken from the directory, so it counts once, even if it came while we slept.
        """
        taken = self.wishes.with_name(f".{self.wishes.name}.taken")
        if self.wishes.is_file():
            self.wishes.replace(taken)
        if not taken.exists():
            return False
        try:
            wanted = read_wishes(taken)
            wrong = sizes.faults(self.plugin.cpus, {**self.plugin.state.wanted, **wanted})
        except (OSError, ValueError, RecursionError) as error:
            wanted, wrong = {}, [str(error)]
        if wrong:
            LOG.error("sizes of pools refused", error="; ".join(wrong))
        else:
            LOG.info("sizes of pools wished", sizes=wanted)
            self.plugin.want(wanted)
        taken.unlink()
        return not wrong

    def adjust(self) -> bool:
        """Whether the load had the pools resized."""
        rule, state = self.plugin.book.adjuster, self.plugin.state
        if rule is None:
            return False
        try:
            now, waiting = ticks(self.proc), pressure(self.proc)
        except NoLoad as error:
            if str(error) != self.reported:
                LOG.warning("load not known", error=str(error))
            self.reported = str(error)
            return False
        self.reported = ""
        before, self.before = self.before, now
        if not before:
            return False
        # What is somebody's own says nothing about those who share.
        shared = state.pools[rule.pool] - state.held
        load = PoolLoad(use(before, now, shared), len(shared), waiting)
        # As they are: who follows a ramp must not ask for more because it is on the way.
        have = {name: len(cpus) for name, cpus in state.pools.items()}
        decision = adjust(rule, self.plugin.book.pools, have, load, self.quiet)
        self.quiet = decision.quiet
        if decision.sizes:
            LOG.info("adjusted", sizes=dict(decision.sizes), use=load.use, pressure=load.pressure)
            self.plugin.want(decision.sizes)
        return bool(decision.sizes)


def read_wishes(path: Path) -> dict[str, int]:
    """Raises OSError or ValueError."""
    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError("it is no object of sizes by name")
    for name, size in found.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise ValueError(f"{name} is {size!r}, which is no number of CPUs")
    return found


async def keep_looking(watches: list[RoleWatch | PoolWatch], period: float) -> None:
    while True:
        await asyncio.sleep(period)
        for each in watches:
            each.look()
