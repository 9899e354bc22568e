"""The guest has every library that it imports; `make test-numa` itself takes a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.node.numa_guest import disk

RUN_THERE = """
from dovetail.node.cri import client
from dovetail.node.cri_proxy import proxy
from tests.support.node import containerd, cri_client, gates, pods_on
"""


def test_what_runs_in_the_guest_finds_its_libraries(tmp_path: Path) -> None:
    disk.put_ours(tmp_path)
    # Isolated, and without the site-packages of this environment.
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{RUN_THERE}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
