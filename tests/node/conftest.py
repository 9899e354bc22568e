"""A real containerd, one for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import debian
from tests.support.node import containerd, newer


@pytest.fixture(scope="session")
def server() -> Iterator[containerd.Containerd]:
    debian.needs("containerd", "runc", "busybox-static")
    with containerd.running() as server:
        yield server


@pytest.fixture(scope="session")
def newer_server() -> Iterator[containerd.Containerd]:
    """One that has NRI, which Debian 12's has not; runc is the installed one."""
    debian.needs("containerd", "runc", "busybox-static")
    binaries = newer.unpacked("trixie", "containerd") / "usr/bin"
    with containerd.running(binaries, nri=True) as server:
        yield server
