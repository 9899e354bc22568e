"""Both ends of a relay, without sockets: strict about windows, frames and packed headers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hpack import Decoder, Encoder

from dovetail.node.cri_proxy.envelope import open_envelope, seal
from dovetail.node.cri_proxy.frames import (
    END_HEADERS,
    END_STREAM,
    PREFACE,
    ErrorCode,
    Frame,
    FrameSplitter,
    FrameType,
    SettingsParameter,
    frame_bytes,
    reset,
    window_update,
)
from dovetail.node.cri_proxy.frames import SETTING as PAIR
from dovetail.node.cri_proxy.relay import Relay

WINDOW = 65535
WATCHED = "/s/Watched"
PASSED = "/s/Passed"


@dataclass
class Seen:
    """What the relay tells of calls."""

    began_: dict[int, str] = field(default_factory=dict)
    asked_: dict[int, bytes] = field(default_factory=dict)
    ended_: dict[int, bytes | None] = field(default_factory=dict)

    def began(self, stream: int, path: str) -> None:
        assert stream not in self.began_
        self.began_[stream] = path

    def asked(self, stream: int, path: str, data: bytes) -> None:
        assert path == WATCHED
        assert stream not in self.asked_
        self.asked_[stream] = data

    def ended(self, stream: int, answer: bytes | None) -> None:
        self.ended_.setdefault(stream, answer)


def data(stream: int, body: bytes, *, ends: bool = True) -> bytes:
    return frame_bytes(FrameType.DATA, END_STREAM if ends else 0, stream, body)


def patterned(size: int) -> bytes:
    """In which order shows."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def headers_of(block: bytes, decoder: Decoder) -> list[tuple[str, str]]:
    """As text, which is what the decoder gives, though it is declared to give bytes."""
    return [(str(name), str(value)) for name, value in decoder.decode(block)]


class End:
    """What both have: windows for what they send, and the other one's headers."""

    def __init__(self) -> None:
        self.encoder, self.decoder = Encoder(), Decoder()
        self.window = WINDOW
        self.frames: list[Frame] = []
        """All that came."""
        self.bodies: dict[int, bytearray] = defaultdict(bytearray)
        self.headers: dict[int, list[dict[str, str]]] = defaultdict(list)
        self.ended: set[int] = set()

    def take(self, frame: Frame) -> None:
        self.frames.append(frame)
        if frame.kind == FrameType.HEADERS:
            self.headers[frame.stream].append(dict(headers_of(frame.block, self.decoder)))
        elif frame.kind == FrameType.DATA:
            assert frame.stream not in self.ended, "DATA after the end"
            self.bodies[frame.stream] += frame.body
        if frame.kind == FrameType.RST_STREAM or (frame.kind in (0, 1) and frame.ends):
            self.ended.add(frame.stream)

    def block(self, *headers: tuple[str, str]) -> bytes:
        return self.encoder.encode(headers)


class Client(End):
    def __init__(self) -> None:
        super().__init__()
        self.initial = WINDOW
        self.credit: dict[int, int] = {}
        """By stream, beyond the initial window."""
        self.unsent: dict[int, bytearray] = {}
        self.next = 1

    def call(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The stream, and what begins it; the body is sent as windows allow."""
        stream, self.next = self.next, self.next + 2
        self.credit[stream], self.unsent[stream] = 0, bytearray(body)
        block = self.block((":path", path), ("grpc-timeout", f"{stream}S"))
        return stream, frame_bytes(FrameType.HEADERS, END_HEADERS, stream, block)

    def more(self, largest: int = 16384) -> bytes:
        """As much as it may send now."""
        sent = []
        for stream, body in [*self.unsent.items()]:
            while True:
                room = max(0, min(self.window, self.initial + self.credit[stream], largest))
                part = bytes(body[:room])
                if body and not part:
                    break
                del body[: len(part)]
                self.window -= len(part)
                self.credit[stream] -= len(part)
                sent.append(data(stream, part, ends=not body))
                if not body:
                    del self.unsent[stream]
                    break
        return b"".join(sent)

    def cancel(self, stream: int) -> bytes:
        self.unsent.pop(stream, None)
        return reset(stream, ErrorCode.CANCEL)

    def take(self, frame: Frame) -> None:
        super().take(frame)
        if frame.kind == FrameType.WINDOW_UPDATE and frame.stream == 0:
            self.window += frame.number
        elif frame.kind == FrameType.WINDOW_UPDATE:
            self.credit[frame.stream] += frame.number
        elif frame.kind == FrameType.SETTINGS:
            self.initial = frame.settings.get(SettingsParameter.INITIAL_WINDOW_SIZE, self.initial)
        elif frame.stream in self.ended:
            self.unsent.pop(frame.stream, None)


class Server(End):
    """`window` is what the other side may send to it."""

    def __init__(self) -> None:
        super().__init__()
        self.initial, self.largest = WINDOW, 16384
        self.room: dict[int, int] = {}
        """By stream, beyond the initial window."""
        self.kept: dict[int, int] = defaultdict(int)
        """Bytes taken that may be sent again, when it says so; 0 for all streams."""

    def take(self, frame: Frame) -> None:
        super().take(frame)
        if frame.kind == FrameType.HEADERS:
            self.room.setdefault(frame.stream, 0)
        if frame.kind == FrameType.DATA:
            assert frame.size <= self.largest
            self.window -= frame.size
            self.room[frame.stream] -= frame.size
            assert self.window >= 0, "more than all streams together may send"
            assert self.initial + self.room[frame.stream] >= 0, "more than the stream may send"
            self.kept[0] += frame.size
            self.kept[frame.stream] += frame.size

    def set(self, initial: int) -> bytes:
        self.initial = initial
        return frame_bytes(
            FrameType.SETTINGS, 0, 0, PAIR.pack(SettingsParameter.INITIAL_WINDOW_SIZE, initial)
        )

    def give(self) -> bytes:
        """All that may be sent again."""
        said = []
        for stream, number in self.kept.items():
            if number and (stream == 0 or stream not in self.ended):
                said.append(window_update(stream, number))
                if stream:
                    self.room[stream] += number
        self.window += self.kept[0]
        self.kept.clear()
        return b"".join(said)

    def answer(self, stream: int, message: bytes) -> bytes:
        first = self.block((":status", "200"), ("content-type", "application/grpc"))
        last = self.block(("grpc-status", "0"), ("stream", str(stream)))
        return (
            frame_bytes(FrameType.HEADERS, END_HEADERS, stream, first)
            + data(stream, seal(message), ends=False)
            + frame_bytes(FrameType.HEADERS, END_HEADERS | END_STREAM, stream, last)
        )

    def fail(self, stream: int) -> bytes:
        """An error, with nothing before it."""
        block = self.block((":status", "200"), ("grpc-status", "12"), ("stream", str(stream)))
        return frame_bytes(FrameType.HEADERS, END_HEADERS | END_STREAM, stream, block)


class World:
    """A client and a runtime, and the relay between them."""

    def __init__(self) -> None:
        self.seen, self.client, self.server = Seen(), Client(), Server()
        self.relay = Relay({WATCHED}, self.seen)
        self._heard, self._served = FrameSplitter(), FrameSplitter(PREFACE)
        self.up(PREFACE)

    def up(self, said: bytes) -> None:
        """The client says something."""
        self.relay.from_client(said)
        self.deliver()

    def down(self, said: bytes) -> None:
        self.relay.from_runtime(said)
        self.deliver()

    def deliver(self) -> None:
        for out, cutter, end in (
            (self.relay.to_runtime, self._served, self.server),
            (self.relay.to_client, self._heard, self.client),
        ):
            said = b"".join(out)
            out.clear()
            for frame in cutter.feed(said):
                end.take(frame)

    def call(self, path: str, message: bytes) -> int:
        stream, begin = self.client.call(path, seal(message))
        self.up(begin)
        self.up(self.client.more())
        return stream

    def send(self, stream: int, message: bytes) -> None:
        self.relay.send(stream, message)
        self.deliver()

    def got(self, stream: int) -> bytes:
        """The message that arrived at the runtime."""
        assert stream in self.server.ended
        return open_envelope(bytes(self.server.bodies[stream]))
