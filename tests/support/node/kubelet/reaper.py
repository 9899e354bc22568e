"""Ends what is left of a bed whose tests were killed: no handler of theirs could do that.

The bed starts it as a process of its own, and tells it what there is. When nobody is there any more
to say that all is done, it ends every process in the bed's network and in its cgroups.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.node.kubelet.network import number_of
from tests.support.paths import ROOT
from tests.support.processes import Process

CGROUPS = Path("/sys/fs/cgroup")
DONE = "done"
SECONDS = 30.0


class Reaper(Process):
    """To be started in the bed's network; `outside` is the number of the one that it is not."""

    def __init__(self, log: Path, outside: int) -> None:
        program = [sys.executable, "-m", __name__, outside]
        super().__init__(program, log, name="reaper", cwd=ROOT, own_group=True, pipes=True)

    def note(self, directory: Path, cgroup: str) -> None:
        """What a node has."""
        if not self.ask(f"{directory} {cgroup}".encode()):
            raise self.error("does not answer")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ask(DONE.encode())
        self.stop()


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Else it would end all there is on the machine.
    assert number_of() != int(sys.argv[1])
    nodes = []
    for line in sys.stdin:
        if line.strip() == DONE:
            return 0
        directory, cgroup = line.split()
        nodes.append((Path(directory), cgroup.strip("/")))
        print("noted", flush=True)
    groups = [cgroup for _, cgroup in nodes]
    # Shims that are asked to end take their sockets with them.
    for how in (signal.SIGTERM, signal.SIGKILL):
        end(groups, how)
    for group in groups:
        remove(group)
    for directory, _ in nodes:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def end(groups: list[str], how: int) -> None:
    deadline = time.monotonic() + (SECONDS if how == signal.SIGKILL else 3)
    while time.monotonic() < deadline and (left := [*in_network(), *in_cgroups(groups)]):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        time.sleep(0.2)


def in_network() -> Iterator[int]:
    own = number_of()
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(each.name) != os.getpid() and number_of(each.name) == own:
                yield int(each.name)


def in_cgroups(groups: list[str]) -> Iterator[int]:
    """Pods have networks of their own."""
    for file in (file for group in groups for file in tops(group, "**/cgroup.procs")):
        with suppress(OSError):
            yield from map(int, file.read_text().split())


def remove(group: str) -> None:
    for top in tops(group, ""):
        for path, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):
                Path(path).rmdir()


def tops(group: str, pattern: str) -> Iterator[Path]:
    """Of all hierarchies, whether there is one or many of them."""
    for top in (CGROUPS / group, *CGROUPS.glob(f"*/{group}")):
        if top.is_dir():
            yield from top.glob(pattern) if pattern else [top]


if __name__ == "__main__":
    sys.exit(main())
