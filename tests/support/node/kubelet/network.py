"""A network of a bed's own: its loopback device, and addresses on it that are no loopback's.

The thread that asks for it is in it, and so are the programs and threads that it starts: they find
each other at 127.0.0.1 and at ports of their choice, and reach nobody else. The kernel takes it
away with the last of them, however that ended.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
OWN = Path("/proc/thread-self/ns/net")

_libc = ctypes.CDLL(None, use_errno=True)


def address(number: int) -> str:
    """Of a node; the range is one that no network routes. A kubelet refuses loopback's."""
    return f"198.18.0.{number + 1}"


def number_of(process: str = "thread-self") -> int:
    """The kernel's number of the network that a process is in."""
    return Path(f"/proc/{process}/ns/net").stat().st_ino


@contextmanager
def own_network(nodes: int) -> Iterator[int]:
    """With the addresses of so many nodes; the number of the one before.

    Not for two beds of one thread at a time. What is to outlive the bed must not be started in it.
    """
    before, number = os.open(OWN, os.O_RDONLY), number_of()
    try:
        _checked(_libc.unshare(CLONE_NEWNET))
        try:
            _ip("link", "set", "lo", "up")
            for each in range(nodes):
                _ip("address", "add", f"{address(each)}/32", "dev", "lo")
            yield number
        finally:
            _checked(_libc.setns(before, CLONE_NEWNET))
    finally:
        os.close(before)


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
