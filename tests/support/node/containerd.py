"""A containerd of the tests' own: its root, state, sockets and cgroups are nobody else's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.node import image
from tests.support.processes import START_SECONDS, Process

CONFIG = """\
version = 2
root = "{directory}/root"
state = "{directory}/state"
disabled_plugins = [
  "io.containerd.internal.v1.restart", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{directory}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE a score below our own is refused, and runc gives up.
  restrict_oom_score_adj = true
{more}  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{directory}/cni/bin"
    conf_dir = "{directory}/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""

NRI = """\
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "{directory}/nri.sock"
  plugin_path = "{directory}/nri/plugins"
  plugin_config_path = "{directory}/nri/conf.d"
"""

FOR_KUBELET = """\
  netns_mounts_under_state_dir = true
  enable_cdi = true
  cdi_spec_dirs = ["{directory}/cdi"]
"""

CONFLIST = '{"cniVersion": "0.4.0", "name": "nothing", "plugins": [{"type": "nothing"}]}'

CNI_PLUGIN = """\
#!/bin/sh
# Gives a pod an address that nobody can reach, and its loopback device.
if [ "$CNI_COMMAND" = ADD ]; then
  nsenter --net="$CNI_NETNS" ip link set lo up
  third=$((0x$(echo "$CNI_CONTAINERID" | cut -c1-2)))
  fourth=$((0x$(echo "$CNI_CONTAINERID" | cut -c3-4)))
  echo '{"cniVersion": "0.4.0",
    "interfaces": [{"name": "'"$CNI_IFNAME"'", "sandbox": "'"$CNI_NETNS"'"}],
    "ips": [{"version": "4", "address": "10.88.'"$third.$fourth"'/32", "interface": 0}]}'
elif [ "$CNI_COMMAND" = VERSION ]; then
  echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.1", "0.4.0"]}'
fi
"""

RUNC_STATE = "/run/containerd/runc/k8s.io"
"""Of all containerds of a machine, whatever their configuration: ids are unique."""


class Containerd(Process):
    def __init__(
        self,
        directory: Path,
        binaries: Path,
        *,
        nri: bool,
        ready_seconds: float = START_SECONDS,
        for_kubelet: bool = False,
        prefix: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        """With all `for_kubelet`, CDI and a network for pods; `prefix` is how it is started."""
        self.directory, self._binaries = directory, binaries
        self.program = binaries / "containerd"
        self._ready_seconds = ready_seconds
        self.socket = directory / "c.sock"
        self.nri_socket = directory / "nri.sock"
        self.cgroup = f"/dovetail-{uuid.uuid4().hex[:8]}"
        """The parent of all cgroups of its pods."""
        super().__init__(
            [*prefix, self.program, "--config", directory / "config.toml"],
            log or directory / "log",
            name="containerd",
            environment={"PATH": f"{binaries}:{os.environ['PATH']}"},
            own_group=True,
        )
        self.cdi = directory / "cdi"
        """Of the descriptions of CDI devices."""
        text = (CONFIG + (NRI if nri else "")).format(
            directory=directory,
            image=image.REFERENCE,
            more=FOR_KUBELET.format(directory=directory) if for_kubelet else "",
        )
        (directory / "config.toml").write_text(text)
        if for_kubelet:
            self._prepare_network()

    def _prepare_network(self) -> None:
        self.cdi.mkdir()
        settings, programs = self.directory / "cni/net.d", self.directory / "cni/bin"
        settings.mkdir(parents=True)
        programs.mkdir(parents=True)
        (settings / "10-nothing.conflist").write_text(CONFLIST)
        for name in ("nothing", "loopback"):
            (programs / name).write_text(CNI_PLUGIN)
            (programs / name).chmod(0o755)

    def start(self) -> None:
        super().start()
        self.await_ready(lambda: self._ctr("version").returncode == 0, self._ready_seconds)

    def load_image(self) -> None:
        archive = self.directory / "image.tar"
        image.write(archive)
        done = self._ctr("-n", "k8s.io", "images", "import", str(archive))
        if done.returncode:
            raise RuntimeError(f"the image was not imported: {done.stderr.decode()}")

    def restart(self) -> None:
        """The daemon only: containers live on."""
        self.stop()
        self.start()

    def end(self) -> None:
        """With everything that it started, also if a test left its pods behind."""
        listed = self._ctr("-n", "k8s.io", "containers", "list", "-q")
        self.stop()
        for id_ in listed.stdout.decode().split():
            command = ["runc", "--root", RUNC_STATE, "delete", "--force", id_]
            subprocess.run(command, capture_output=True, check=False)
        for pid in list(self._shims()):
            _end(pid)
        self._remove_cgroups()

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [str(self._binaries / "ctr"), "-a", str(self.socket), *arguments]
        seconds = self._ready_seconds
        return subprocess.run(command, capture_output=True, timeout=seconds, check=False)

    def _shims(self) -> Iterator[int]:
        """They are told our socket when they are started, and belong to init afterwards."""
        for directory in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (directory / "cmdline").read_bytes().split(b"\0")
                if b"containerd-shim" in words[0] and str(self.socket).encode() in words:
                    yield int(directory.name)

    def cgroups(self) -> list[Path]:
        """Of its pods, deepest first."""
        name = self.cgroup.lstrip("/")
        tops = [top / name for top in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*/"))]
        return [
            Path(path) for top in tops if top.is_dir() for path, _, _ in os.walk(top, topdown=False)
        ]

    def _remove_cgroups(self) -> None:
        until = time.monotonic() + 10
        while (left := self.cgroups()) and time.monotonic() < until:
            for each in left:
                with suppress(OSError):
                    each.rmdir()
            time.sleep(0.05)


def _end(pid: int) -> None:
    """Gently first: a shim then takes its socket with it."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(50):
            time.sleep(0.05)
            os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)


@contextmanager
def running(
    binaries: Path = Path("/usr/bin"), *, nri: bool = False, ready_seconds: float = START_SECONDS
) -> Iterator[Containerd]:
    """Started, with the image of the tests; gone afterwards."""
    # Not where pytest keeps its folders: a socket's path has to be short.
    directory = Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    server = Containerd(directory, binaries, nri=nri, ready_seconds=ready_seconds)
    try:
        server.start()
        try:
            server.load_image()
            yield server
        finally:
            server.end()
    finally:
        _unmount_below(directory)
        shutil.rmtree(directory, ignore_errors=True)


def _unmount_below(directory: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for each in reversed(mounts):
        if each.startswith(f"{directory}/"):
            subprocess.run(["umount", "-l", each], check=False)
