"""Tests that are killed while they have a bed: `python -m tests.node.kubelet.killed DIRECTORY`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.support.node.kubelet.bed import node_bed

if __name__ == "__main__":
    with node_bed(Path(sys.argv[1])) as bed:
        bed.run_pod("web", role="web")
        print(bed.node.directory, bed.containerd.cgroup, bed.process_of("web"), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
