"""HTTP/2 framing (RFC 9113): frames split off a stream of bytes, and made; for the relay. Pure.

A frame is kept as the bytes that it came in, so that it can be passed on as it was. Headers that go
on in CONTINUATION frames are one piece here: nothing else may come between them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from dovetail.core.errors import DovetailError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client says first."""

HEAD = struct.Struct(">BHBBI")
"""Length in three bytes, kind, flags, stream."""

SETTING = struct.Struct(">HI")
NUMBER = struct.Struct(">I")
LAST_STREAM = 2**31 - 1
SMALLEST_FRAME_BYTES = 2**14
"""Bytes that everybody takes in one frame."""

LARGEST_HEADERS_BYTES = 2**20
"""Bytes of headers, packed."""


ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20
"""Flags, as plain numbers: they are looked at for each frame."""


class FrameType(IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class SettingsParameter(IntEnum):
    HEADER_TABLE_SIZE = 1
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    CANCEL = 8


class BadFrames(DovetailError):
    """Bytes that are not HTTP/2, after which nothing on that connection can be understood."""


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    raw: bytes
    """All of it, with its head; headers with their continuations."""

    @property
    def ends(self) -> bool:
        """Whether it is the last of its side of the stream; for DATA and HEADERS."""
        return bool(self.flags & END_STREAM)

    @property
    def size(self) -> int:
        """What it counts for in flow control."""
        return len(self.raw) - HEAD.size

    @property
    def body(self) -> bytes:
        """Of DATA, what is left without padding."""
        return _unpadded(self.raw, self.flags)

    @property
    def block(self) -> bytes:
        """Of HEADERS, all that is to be unpacked."""
        stop = _stop(self.raw, 0)
        first = _unpadded(self.raw[:stop], self.flags)
        parts = [first[5:] if self.flags & PRIORITY else first]
        while stop < len(self.raw):
            start, stop = stop + HEAD.size, _stop(self.raw, stop)
            parts.append(self.raw[start:stop])
        return b"".join(parts)

    @property
    def number(self) -> int:
        """Of WINDOW_UPDATE, by how much."""
        if self.size != NUMBER.size:
            raise BadFrames(f"a WINDOW_UPDATE of {self.size} bytes, where 4 are right")
        (number,) = NUMBER.unpack_from(self.raw, HEAD.size)
        return int(number) & LAST_STREAM

    @property
    def settings(self) -> Mapping[int, int]:
        if self.size % SETTING.size:
            raise BadFrames(f"SETTINGS of {self.size} bytes, where multiples of 6 are right")
        return dict(SETTING.iter_unpack(self.raw[HEAD.size :]))


class FrameSplitter:
    """Cuts what one side says into frames, however the bytes come in."""

    def __init__(self, preface: bytes = b"") -> None:
        self._preface, self._rest = preface, b""
        self._open: list[Frame] = []
        """Headers that are to be continued."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Raises BadFrames, after those before it."""
        if self._rest:
            data = self._rest + data
        at = self._begin(data) if self._preface else 0
        end = len(data)
        while end - at >= HEAD.size:
            high, low, kind, flags, stream = HEAD.unpack_from(data, at)
            stop = at + HEAD.size + (high << 16) + low
            if stop > end:
                break
            frame = Frame(kind, flags, stream & LAST_STREAM, data[at:stop])
            at = stop
            if self._open or kind in (
                FrameType.HEADERS,
                FrameType.PUSH_PROMISE,
                FrameType.CONTINUATION,
            ):
                whole = self._gathered(frame)
                if whole:
                    yield whole
            else:
                yield frame
        self._rest = data[at:]

    def _begin(self, data: bytes) -> int:
        """Where frames start, if that is known already."""
        if not data.startswith(self._preface[: len(data)]):
            raise BadFrames("a client that does not speak HTTP/2")
        if len(data) < len(self._preface):
            return 0
        at, self._preface = len(self._preface), b""
        return at

    def _gathered(self, frame: Frame) -> Frame | None:
        first = self._open[0] if self._open else frame
        goes_on = frame.kind == FrameType.CONTINUATION
        if goes_on != bool(self._open) or frame.stream != first.stream:
            raise BadFrames(f"a frame of kind {frame.kind} where headers begin or go on")
        self._open.append(frame)
        if sum(len(each.raw) for each in self._open) > LARGEST_HEADERS_BYTES:
            raise BadFrames(f"headers of more than {LARGEST_HEADERS_BYTES} bytes")
        if not frame.flags & END_HEADERS:
            return None
        whole = first._replace(raw=b"".join(each.raw for each in self._open))
        self._open = []
        return whole


def frame_bytes(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    size = len(payload)
    return HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream) + payload


def window_update(stream: int, number: int) -> bytes:
    return frame_bytes(FrameType.WINDOW_UPDATE, 0, stream, NUMBER.pack(number))


def reset(stream: int, code: ErrorCode) -> bytes:
    return frame_bytes(FrameType.RST_STREAM, 0, stream, NUMBER.pack(code))


def goaway(last: int, code: ErrorCode) -> bytes:
    """No calls after the stream `last` will be answered."""
    return frame_bytes(FrameType.GOAWAY, 0, 0, NUMBER.pack(last) + NUMBER.pack(code))


def last_headers(stream: int, block: bytes) -> bytes:
    """Headers that end the stream, in as many frames as it takes."""
    parts = [
        block[at : at + SMALLEST_FRAME_BYTES] for at in range(0, len(block), SMALLEST_FRAME_BYTES)
    ]
    kinds = [FrameType.HEADERS] + [FrameType.CONTINUATION] * (len(parts) - 1)
    flags = [END_STREAM] + [0] * (len(parts) - 1)
    flags[-1] |= END_HEADERS
    return b"".join(
        frame_bytes(kind, flag, stream, part)
        for kind, flag, part in zip(kinds, flags, parts, strict=True)
    )


def _stop(raw: bytes, at: int) -> int:
    high, low, *_ = HEAD.unpack_from(raw, at)
    return at + HEAD.size + (int(high) << 16) + int(low)


def _unpadded(raw: bytes, flags: int) -> bytes:
    if not flags & PADDED:
        return raw[HEAD.size :]
    stop = len(raw) - (raw[HEAD.size] if len(raw) > HEAD.size else len(raw))
    if stop <= HEAD.size:
        raise BadFrames("padding that is longer than its frame")
    return raw[HEAD.size + 1 : stop]
