"""Two sides that are joined: one is heard only as fast as the other takes it."""

from __future__ import annotations

import asyncio

from dovetail.node.cri_proxy.joined_socket import JoinedSocket


class Pipe(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.reading, self.closing = True, False
        self.written: list[bytes] = []

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))


class Joined:
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.lost = 0
        self.one, self.other = (
            JoinedSocket(self.heard.append, self.lose),
            JoinedSocket(self.heard.append, self.lose),
        )
        self.one.join(self.other)
        self.pipes = Pipe(), Pipe()

    def lose(self) -> None:
        self.lost += 1


def test_nobody_is_heard_before_there_is_another_side() -> None:
    joined = Joined()
    joined.one.connection_made(joined.pipes[0])
    assert not joined.pipes[0].reading
    waiting = [b"a", b"b"]
    joined.other.write(waiting)
    assert waiting == [b"a", b"b"], "it waits for the connection"
    joined.other.connection_made(joined.pipes[1])
    joined.one.listen()
    joined.other.write(waiting)
    assert joined.pipes[0].reading
    assert (joined.pipes[1].written, waiting) == ([b"ab"], [])


def test_side_is_heard_again_when_the_other_takes_more() -> None:
    joined = Joined()
    joined.one.connection_made(joined.pipes[0])
    joined.other.connection_made(joined.pipes[1])
    joined.one.listen()
    joined.other.pause_writing()
    assert [each.reading for each in joined.pipes] == [False, True]
    joined.other.resume_writing()
    assert [each.reading for each in joined.pipes] == [True, True]


def test_side_that_was_closed_before_it_came_is_not_kept() -> None:
    joined = Joined()
    joined.other.close()
    joined.other.connection_made(joined.pipes[1])
    assert joined.pipes[1].closing
    joined.other.connection_lost(None)
    assert (joined.other.gone, joined.lost) == (True, 1)


def test_what_is_written_to_a_closed_side_is_dropped() -> None:
    joined = Joined()
    joined.one.connection_made(joined.pipes[0])
    joined.one.close()
    waiting = [b"late"]
    joined.one.write(waiting)
    assert (waiting, joined.pipes[0].written) == ([], [])
