"""HTTP/2 flow control towards the runtime: DATA is sent within its windows or waits here. Pure.

Both ends keep count of what may still be sent: per stream, and for all together. As long as DATA
passes as it came, what they count agrees. What we send in the name of the client is not in its
count, so we owe that much: the next increments are kept for it. Until they come the client may send
more than the runtime wants, and what is too much waits here.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.node.cri_proxy.frames import (
    END_STREAM,
    SMALLEST_FRAME_BYTES,
    Frame,
    FrameType,
    frame_bytes,
)

INITIAL_WINDOW_BYTES = 2**16 - 1
"""Bytes that may be sent, if nothing is said."""


@dataclass(slots=True)
class QueuedData:
    data: bytearray
    ends: bool
    """Whether its side of the stream is over after that."""


class FlowControlledSender:
    """Appends frames to `out`."""

    def __init__(self, out: list[bytes]) -> None:
        self._out = out
        self._initial, self._largest = INITIAL_WINDOW_BYTES, SMALLEST_FRAME_BYTES
        """What the runtime set: the window of a stream, the bytes of a frame."""
        self._window = INITIAL_WINDOW_BYTES
        """For all streams together."""
        self._owed = 0
        self._own: dict[int, int] = {}
        """By stream that we send on, what its window is beyond the initial one."""
        self._waiting: dict[int, QueuedData] = {}

    def limit(self, initial: int | None, largest: int | None) -> None:
        """The runtime set the window of a stream, or the bytes of a frame."""
        self._initial = self._initial if initial is None else initial
        self._largest = self._largest if largest is None else largest
        self._push()

    def own(self, stream: int) -> None:
        """What goes out on that stream is ours, not the client's."""
        self._own[stream] = 0

    def owns(self, stream: int) -> bool:
        return stream in self._own

    def waits(self, stream: int) -> bool:
        return stream in self._waiting

    def send(self, stream: int, data: bytes) -> None:
        """All that there is to say on a stream of ours."""
        self._waiting[stream] = QueuedData(bytearray(data), ends=True)
        self._push()

    def passed(self, frame: Frame) -> int:
        """DATA of the client; how many bytes of it, of padding, will not be sent."""
        if frame.stream not in self._waiting and frame.size <= self._window:
            self._window -= frame.size
            self._out.append(frame.raw)
            return 0
        body = frame.body
        waiting = self._waiting.setdefault(frame.stream, QueuedData(bytearray(), ends=False))
        waiting.data += body
        waiting.ends = frame.ends
        self._push()
        return frame.size - len(body)

    def drop(self, stream: int) -> int:
        """The stream is over; how many bytes of the client will not be sent."""
        waiting = self._waiting.pop(stream, None)
        ours = self._own.pop(stream, None) is not None
        return len(waiting.data) if waiting and not ours else 0

    def widen(self, stream: int, number: int) -> None:
        """The window of a stream of ours."""
        self._own[stream] += number
        self._push()

    def widen_all(self, number: int) -> int:
        """The window of all together; how much of that is for the client."""
        self._window += number
        paid = min(number, self._owed)
        self._owed -= paid
        self._push()
        return number - paid

    def _push(self) -> None:
        for stream, waiting in [*self._waiting.items()]:
            while self._sent(stream, waiting):
                pass

    def _sent(self, stream: int, waiting: QueuedData) -> bool:
        """One frame; whether there may be another."""
        room = min(self._window, self._largest)
        if stream in self._own:
            room = min(room, self._initial + self._own[stream])
        part = bytes(waiting.data[: max(room, 0)])
        if waiting.data and not part:
            return False
        del waiting.data[: len(part)]
        self._window -= len(part)
        if stream in self._own:
            self._own[stream] -= len(part)
            self._owed += len(part)
        last = waiting.ends and not waiting.data
        self._out.append(frame_bytes(FrameType.DATA, END_STREAM if last else 0, stream, part))
        if waiting.data:
            return True
        del self._waiting[stream]
        return False
