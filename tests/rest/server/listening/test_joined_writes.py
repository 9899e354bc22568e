"""What reaches the operating system of an answer's head and body, and when."""

from __future__ import annotations

import asyncio

from dovetail.rest.server.listening.joined_writes import LONGEST_JOINED, JoinedWrites


class Recording(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def joined() -> tuple[Recording, JoinedWrites]:
    transport = Recording()
    return transport, JoinedWrites(transport, asyncio.get_running_loop())


async def test_head_and_body_are_one_call() -> None:
    transport, writes = joined()
    writes.write(b"head ")
    assert transport.calls == []
    writes.write(b"body")
    writes.write(b"more")
    assert transport.calls == [b"head body", b"more"]
    await asyncio.sleep(0)
    assert transport.calls == [b"head body", b"more"]


async def test_a_head_without_a_body_waits_for_one_turn_of_the_loop() -> None:
    transport, writes = joined()
    writes.write(b"head ")
    await asyncio.sleep(0)
    assert transport.calls == [b"head "]
    writes.write(b"event")
    assert transport.calls == [b"head ", b"event"]


async def test_a_long_body_is_not_copied() -> None:
    transport, writes = joined()
    writes.write(b"head ")
    writes.write(body := b"x" * (LONGEST_JOINED + 1))
    assert transport.calls == [b"head ", body]


async def test_what_was_written_goes_before_the_end() -> None:
    transport, writes = joined()
    writes.write(b"head ")
    assert not writes.is_closing()
    writes.close()
    assert transport.calls == [b"head "]
    assert writes.is_closing()


async def test_an_empty_body_sends_the_head() -> None:
    transport, writes = joined()
    writes.write(b"head ")
    writes.write(b"")
    assert transport.calls == [b"head "]
