"""A container engine of the tests' own: podman with its storage in a directory, and a base image.

The base is made here, of Debian's packages, for the recipe's usual one would have to be fetched;
packages of Python come from a folder, for inside of a build nobody's settings of pip are known.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.dist import steps
from tests.support import debian
from tests.support.kube import assets

BASE = "localhost/python:3.11"
SUITE = "bookworm"
"""Of Debian: its Python is that of the recipe."""
PACKAGES = "python3,python3-venv,python-is-python3"
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
"""The usual ones are more than a root without CAP_SYS_RESOURCE may give."""


class Engine:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.programs = directory / "bin"
        self.programs.mkdir()
        self._shim = self.programs / "podman"

    def prepare(self, python: Path) -> None:
        """The base image, what is to be installed in it, and `podman` for those who call it."""
        wheels = self.directory / "wheels"
        asked = ("--require-hashes", "--only-binary=:all:", "--python-version=3.11")
        wanted = " ".join([*asked, "-r requirements/runtime.txt", f"-d {wheels}"])
        steps.play(f"{python} -m pip download -q {wanted}")
        settings = self.directory / "pip.conf"
        settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
        build = (
            *("--isolation=chroot", "--network=host", f"--build-arg=BASE={BASE}"),
            *(f"--volume={wheels}:/wheels:ro", f"--volume={settings}:/etc/pip.conf:ro"),
        )
        run = ("--network=host", *LIMITS)
        self._shim.write_text(self._script(" ".join(build), " ".join(run)))
        self._shim.chmod(0o755)
        self("import", str(base()), BASE)

    def _script(self, build: str, run: str) -> str:
        """Everything of the page's, and what this machine wants in addition."""
        places = f"--root={self.directory}/r --runroot={self.directory}/s"
        options = f"{places} --tmpdir={self.directory}/t --cgroup-manager=cgroupfs --runtime=runc"
        lines = [
            "#!/bin/sh",
            "verb=$1; shift",
            f'case $verb in build) set -- {build} "$@";; run) set -- {run} "$@";; esac',
            f'exec /usr/bin/podman {options} "$verb" "$@"',
        ]
        return "\n".join(lines) + "\n"

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._shim, *arguments], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self) -> None:
        if self._shim.exists():
            self("rm", "--all", "--force", "--time=0")
            self("rmi", "--all", "--force")
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            where = line.split()[1]
            if where.startswith(f"{self.directory}/"):
                subprocess.run(["umount", "-l", where], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)


def base() -> Path:
    """An archive of a small Debian with Python, made once on a machine."""
    place = assets.cache().parents[1] / "container-base" / f"{SUITE}.tar"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            root, archive = Path(directory) / "root", Path(directory) / "base.tar"
            steps.play(f"debootstrap --variant=minbase --include={PACKAGES} {SUITE} {root}")
            steps.play(f"rm -rf {root}/var/cache/apt {root}/var/lib/apt/lists")
            steps.play(f"tar -C {root} -cf {archive} .")
            archive.rename(place)
    return place


@contextmanager
def running(python: Path) -> Iterator[Engine]:
    debian.needs("podman", "runc", "debootstrap")
    # Not where pytest keeps its folders: sockets are made in it, and others than root look in.
    engine = Engine(Path(tempfile.mkdtemp(prefix="dt", dir="/tmp")))
    engine.directory.chmod(0o755)
    try:
        engine.prepare(python)
        yield engine
    finally:
        engine.end()
