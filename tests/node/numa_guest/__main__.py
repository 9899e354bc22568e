"""`python -m tests.node.numa_guest`: build the guest, boot it, let it prove, tell the result.

It takes some two minutes: without KVM, which not every machine gives, every instruction is
translated.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.node.numa_guest import disk, inside
from tests.support import debian
from tests.support.paths import ROOT

WORK = ROOT / "var/numa-guest"
SECONDS = 900
MEGABYTES = 768
"""Of each node."""


def main() -> None:
    try:
        debian.needs("qemu-system-x86", "e2fsprogs", "busybox-static", "containerd", "runc")
    except pytest.skip.Exception as reason:
        sys.exit(f"left out: {reason}")
    WORK.mkdir(parents=True, exist_ok=True)
    kernel = disk.build(WORK)
    with subprocess.Popen(qemu(kernel), stdout=subprocess.PIPE, text=True, errors="replace") as run:
        assert run.stdout is not None
        proven = False
        for line in run.stdout:
            print(line, end="", flush=True)
            proven |= line.strip() == inside.PROVEN
    sys.exit(None if proven else "the guest did not prove it")


def qemu(kernel: Path) -> list[str]:
    nodes = [
        argument
        for node, cpus in enumerate(("0-1", "2-3"))
        for argument in (
            *("-object", f"memory-backend-ram,id=m{node},size={MEGABYTES}M"),
            *("-numa", f"node,nodeid={node},cpus={cpus},memdev=m{node}"),
        )
    ]
    return [
        *("timeout", str(SECONDS), "qemu-system-x86_64", "-accel", "tcg,thread=multi"),
        *("-machine", "q35", "-cpu", "max", "-nodefaults", "-no-reboot", "-nographic"),
        *("-serial", "stdio", "-m", str(2 * MEGABYTES), "-smp", "4,sockets=2,cores=2,threads=1"),
        *nodes,
        *("-numa", "dist,src=0,dst=1,val=21"),
        *("-kernel", str(kernel), "-initrd", str(WORK / "initrd.gz")),
        *("-append", "console=ttyS0 quiet panic=-1"),
        *("-drive", f"file={WORK / 'disk.img'},format=raw,if=virtio,snapshot=on"),
    ]


if __name__ == "__main__":
    main()
