"""Programs of Debian that some tests need: installed when they are missing and that is possible."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

# Another process may be installing something.
APT = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120")
LOCK = Path(tempfile.gettempdir()) / f"dovetail-apt-{os.getuid()}.lock"


def needs(*packages: str) -> None:
    """See that these are installed. If they cannot be: fail in CI, leave the test out elsewhere."""
    if not missing(packages):
        return
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another worker may have done it meanwhile.
        lacking = missing(packages)
        if not lacking:
            return
        problem = install(lacking)
    if problem:
        stop = pytest.fail if in_ci() else pytest.skip
        stop(f"needs Debian's {' '.join(lacking)}: {problem}")


def missing(packages: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in packages if not installed(each))


def installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    asking = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}", package]
    found = subprocess.run(asking, capture_output=True, text=True, check=False)
    return found.stdout == "installed"


def install(packages: tuple[str, ...]) -> str:
    """What went wrong, or nothing."""
    if shutil.which("apt-get") is None:
        return "this is no Debian"
    if os.getuid() != 0:
        return f"only root can install it, with apt-get install {' '.join(packages)}"
    wanted = (*APT, "--no-install-recommends", "install", *packages)
    print(f"installing {' '.join(packages)}")
    # The list of packages may be there already and good enough.
    problem = run(*wanted)
    if problem:
        problem = run(*APT, "update") or run(*wanted)
    return problem


def run(*command: str) -> str:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    return "" if done.returncode == 0 else f"{' '.join(command)}: {done.stderr.strip()[-500:]}"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}
