"""The bed itself: what is left of it when nobody could clear up."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.support.node.kubelet.mounts import KERNEL
from tests.support.node.kubelet.mounts import ROOT as KUBELET_ROOT
from tests.support.paths import ROOT
from tests.support.processes import Process

WITHIN = 60.0


def test_tests_that_are_killed_leave_nothing_behind(tmp_path: Path) -> None:
    before, had = kernel_settings(), KUBELET_ROOT.exists()
    log = tmp_path / "killed.log"
    program = [sys.executable, "-m", "tests.node.kubelet.killed", tmp_path]
    with Process(program, log, cwd=ROOT) as killed:
        killed.wait(4 * WITHIN)
    words = log.read_text().split()
    assert len(words) == 3, words
    directory, cgroup, pid = Path(words[0]), words[1], words[2]

    def left() -> list[Path]:
        places = [directory, Path("/proc") / pid, *Path("/sys/fs/cgroup").glob(f"*{cgroup}")]
        return [each for each in places if each.exists()]

    deadline = time.monotonic() + WITHIN
    while left() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left() == []
    assert kernel_settings() == before
    assert KUBELET_ROOT.exists() == had


def kernel_settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in KERNEL}
