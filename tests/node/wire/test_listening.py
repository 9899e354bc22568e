"""Listeners at unix sockets: one way to make and remove the socket, whatever is served at it."""
# ruff: noqa: ASYNC240 (looking at a socket does not block)

from __future__ import annotations

import asyncio
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.node.wire.listening import CannotServe, GrpcListener, ProtocolListener, answers

Listener = GrpcListener | ProtocolListener


@pytest.fixture
def path() -> Iterator[Path]:
    """Short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="dt", dir="/tmp") as directory:
        yield Path(directory) / "new" / "s.sock"


class Closing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def listener(kind: str, path: Path) -> Listener:
    return GrpcListener(path) if kind == "grpc" else ProtocolListener(path, Closing)


async def stopped(each: Listener) -> None:
    # Whoever looked whether it answers is let go first.
    await asyncio.sleep(0.01)
    if isinstance(each, GrpcListener):
        await each.stop(0)
    else:
        each.stop()


KINDS = pytest.mark.parametrize("kind", ["grpc", "protocol"])


@KINDS
async def test_the_socket_is_its_owners_and_is_gone_afterwards(kind: str, path: Path) -> None:
    served = listener(kind, path)
    await served.start()
    assert answers(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["s.sock"], "no draft is left"
    await stopped(served)
    assert not path.exists()


@KINDS
async def test_a_socket_of_one_that_died_is_replaced(kind: str, path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    served = listener(kind, path)
    await served.start()
    assert answers(path)
    await stopped(served)


@KINDS
async def test_nobody_who_serves_is_pushed_aside(kind: str, path: Path) -> None:
    first = listener(kind, path)
    await first.start()
    with pytest.raises(CannotServe, match="another process serves there"):
        await listener(kind, path).start()
    assert answers(path)
    await stopped(first)


@KINDS
async def test_where_no_socket_can_be_made_it_says_so(kind: str, path: Path) -> None:
    path.parent.touch()

    with pytest.raises(CannotServe, match="no socket can be made there"):
        await listener(kind, path).start()


@KINDS
async def test_a_name_that_is_anothers_by_now_stays(kind: str, path: Path) -> None:
    served = listener(kind, path)
    await served.start()
    path.unlink()
    path.write_text("another's")
    await stopped(served)
    assert path.exists()
