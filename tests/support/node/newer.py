"""Programs of a newer Debian, unpacked beside the installed ones: nothing is installed.

The mirror is the one that this machine's own sources name. What was unpacked stays in `var/`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.paths import ROOT

CACHE = ROOT / "var/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpacked(suite: str, *packages: str) -> Path:
    """The root below which they are; without a Debian to get them from the test is left out."""
    if not shutil.which("apt-get"):
        _without("needs a Debian, for its packages")
    directory = CACHE / suite
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for package in packages:
            done = directory / f"{package}.done"
            if not done.exists():
                try:
                    _unpack(directory, suite, package)
                except (LookupError, RuntimeError) as error:
                    _without(f"could not get {package} of Debian {suite}: {error}")
                done.touch()
    return directory / "root"


def _unpack(directory: Path, suite: str, package: str) -> None:
    for each in ("parts", "lists/partial", "cache/archives/partial", "packages"):
        (directory / each).mkdir(parents=True, exist_ok=True)
    (directory / "parts/newer.list").write_text(
        f"deb [signed-by={KEYS}] {_mirror()} {suite} main\n"
    )
    apt = [
        "apt-get",
        "-qq",
        *("-o", "Dir::Etc::sourcelist=/dev/null"),
        *("-o", f"Dir::Etc::sourceparts={directory}/parts"),
        *("-o", f"Dir::State::lists={directory}/lists"),
        *("-o", f"Dir::Cache={directory}/cache"),
        *("-o", "APT::Sandbox::User=root"),
    ]
    print(f"fetching {package} of Debian {suite}", flush=True)
    _run([*apt, "update"], directory)
    _run([*apt, "download", package], directory / "packages")
    (file,) = (directory / "packages").glob(f"{package}_*.deb")
    _run(["dpkg", "-x", str(file), str(directory / "root")], directory)
    for each in ("lists", "cache", "packages"):
        shutil.rmtree(directory / each)


def _mirror() -> str:
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    for uri in _run(command, Path()).split():
        if uri.rstrip("/").endswith("/debian"):
            return uri
    raise LookupError("apt's sources name no Debian mirror")


def _run(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _without(reason: str) -> NoReturn:
    """In CI nothing may be left out."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
