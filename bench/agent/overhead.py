"""A unary call of CRI to a real containerd, directly and through the proxy, in turn."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from tests.support.node import containerd
from tests.support.processes import Process

from .times import Times

VERSION = "/runtime.v1.RuntimeService/Version"
WARM_UP = 200


def measure(calls: int) -> tuple[Times, Times]:
    """In turn, so that whatever else the machine does meets both."""
    with containerd.running() as server, proxy(server) as socket:
        ways = (asking(server.socket), asking(socket))
        for _ in range(WARM_UP):
            for ask in ways:
                ask()
        times = (Times(), Times())
        for _ in range(calls):
            for ask, found in zip(ways, times, strict=True):
                with found.one():
                    ask()
        return times


def asking(socket: Path) -> Callable[[], object]:
    channel = grpc.insecure_channel(f"unix:{socket}")
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(VERSION)
    return lambda: call(b"", timeout=10, wait_for_ready=True)


@contextmanager
def proxy(server: containerd.Containerd) -> Iterator[Path]:
    """In a process of its own, as it is in real life."""
    socket = server.directory / "p.sock"
    command = [sys.executable, "-m", "bench.agent.served", str(socket), str(server.socket)]
    with Process(command, server.directory / "proxy.log"):
        yield socket
