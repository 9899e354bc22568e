"""A mount namespace of a node's own, shared by its kubelet, its containerd and whoever joins them.

Some paths of a kubelet are fixed: the directory of device plugins below /var/lib/kubelet, and
settings of the kernel that it changes when it starts. In here both are files of the node.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import Process

ROOT = Path("/var/lib/kubelet")

KERNEL = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""What a kubelet wants of the kernel."""

READY = "ready"

SCRIPT = f"""
if ! [ -d {ROOT} ]; then
  # Only in here: the machine has no such directory, and shall not have one.
  mount -t overlay -o "lowerdir=/var/lib,upperdir=$1/upper,workdir=$1/work" overlay /var/lib
  mkdir {ROOT}
fi
mount --bind "$1/root" {ROOT}
for name in {" ".join(KERNEL)}; do
  mount --bind "$1/kernel/$name" "/proc/sys/$name"
done
echo {READY}
exec sleep infinity
"""


class MountNamespace(Process):
    """Held by a program that sleeps; `root` is /var/lib/kubelet, seen from outside."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        for each in (self.root, directory / "upper", directory / "work"):
            each.mkdir(parents=True)
        for name, value in KERNEL.items():
            file = directory / "kernel" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
        unshare = ("unshare", "--mount", "--propagation", "private")
        super().__init__(
            [*unshare, "sh", "-ec", SCRIPT, "sh", directory],
            directory / "log",
            name="mount namespace",
        )

    def start(self) -> None:
        super().start()
        self.await_ready(lambda: self.output.strip() == READY)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Of a command that is to run in it."""
        return ("nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--")
