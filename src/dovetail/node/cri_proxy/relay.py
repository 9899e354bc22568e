"""HTTP/2 frame relay: what passes between a client and the runtime; the CRI proxy feeds it.

Pure: bytes in, bytes out. Frames pass as they came. Of a call that is watched, DATA of the question
stays here until somebody says what is to be sent instead, or refuses the call; the answer passes,
and is read on its way.

Headers always pass, at once and in order, in both directions: each end unpacks them by those that
came before. So a watched call begins at the runtime before it is decided, and one that is refused
is cancelled there, without a question. If the runtime has answered by then (the deadline is over,
the method unknown), the client gets headers on a stream that is closed: gRPC ignores those.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Protocol

import grpc

from dovetail.node.cri_proxy import frames
from dovetail.node.cri_proxy.envelope import LARGEST_SEALED_BYTES, seal
from dovetail.node.cri_proxy.flow_control import FlowControlledSender
from dovetail.node.cri_proxy.frames import (
    PREFACE,
    BadFrames,
    ErrorCode,
    Frame,
    FrameSplitter,
    FrameType,
    SettingsParameter,
)
from dovetail.node.cri_proxy.headers import HeaderReader, refusal


class CallObserver(Protocol):
    """Who is told of calls; not to call back meanwhile."""

    def began(self, stream: int, path: str) -> None: ...

    def asked(self, stream: int, path: str, data: bytes) -> None:
        """The question of a watched call is here, in its envelope: `send` or `refuse` it."""
        ...

    def ended(self, stream: int, answer: bytes | None) -> None:
        """With the answer, in its envelope, of a watched call that was sent and has one.

        What comes after it waits until the call is `settled`.
        """
        ...


@dataclass(slots=True)
class HeldCall:
    path: str
    question: bytearray = field(default_factory=bytearray)
    answer: bytearray = field(default_factory=bytearray)
    asked: bool = False
    sent: bool = False
    begun: bool = False
    """Whether the answer has."""


class Relay:
    def __init__(self, watched: Container[str], calls: CallObserver) -> None:
        self._watched, self._calls = watched, calls
        self.to_client: list[bytes] = []
        self.to_runtime: list[bytes] = [PREFACE]
        """What is to be written; whoever did takes it out."""
        self.last = 0
        """The latest stream."""
        self._client, self._runtime = FrameSplitter(PREFACE), FrameSplitter()
        self._headers = HeaderReader()
        self._outlet = FlowControlledSender(self.to_runtime)
        self._held: dict[int, HeldCall] = {}
        self._unsettled: set[int] = set()
        self._backlog: list[bytes] = []
        """For the client, when all is settled."""

    def from_client(self, data: bytes) -> None:
        """Raises BadFrames."""
        for frame in self._client.feed(data):
            if frame.kind == FrameType.HEADERS:
                self._question_headers(frame)
            elif frame.kind == FrameType.DATA:
                self._question_data(frame)
            else:
                self.to_runtime.append(frame.raw)
                if frame.kind == FrameType.RST_STREAM:
                    self._end(frame.stream, None)

    def from_runtime(self, data: bytes) -> None:
        """Raises BadFrames."""
        for frame in self._runtime.feed(data):
            if frame.kind in (FrameType.HEADERS, FrameType.DATA, FrameType.RST_STREAM):
                self._answer(frame)
            elif frame.kind == FrameType.WINDOW_UPDATE:
                self._widen(frame)
            else:
                if frame.kind == FrameType.SETTINGS:
                    self._set(frame)
                self._down(frame.raw)

    def send(self, stream: int, message: bytes) -> None:
        """The question that the runtime gets."""
        held = self._held.get(stream)
        if held:
            held.sent = True
            self._outlet.send(stream, seal(message))

    def refuse(self, stream: int, code: grpc.StatusCode, words: str) -> bool:
        """Answer it ourselves; the runtime does not get the question. Whether it can be, still."""
        held = self._held.pop(stream, None)
        if held is None:
            return False
        self._outlet.drop(stream)
        self.to_runtime.append(frames.reset(stream, ErrorCode.CANCEL))
        self._down(frames.last_headers(stream, refusal(code, words, begun=held.begun)))
        return True

    def settled(self, stream: int) -> None:
        """The client may see the answer."""
        self._unsettled.discard(stream)
        if not self._unsettled:
            self.to_client += self._backlog
            self._backlog = []

    def leave(self, last: int, code: ErrorCode) -> None:
        """Tell the client not to begin anything after the stream `last`."""
        self._down(frames.goaway(last, code))

    def _question_headers(self, frame: Frame) -> None:
        path = self._headers.path(frame.block)
        if self._outlet.owns(frame.stream) or self._outlet.waits(frame.stream):
            raise BadFrames("headers in the middle of a question")
        self.to_runtime.append(frame.raw)
        if frame.stream <= self.last:
            return
        self.last = frame.stream
        self._calls.began(frame.stream, path)
        # A question that is over already has no message; the runtime knows what to say to that.
        if path in self._watched and not frame.ends:
            self._held[frame.stream] = HeldCall(path)
            self._outlet.own(frame.stream)

    def _question_data(self, frame: Frame) -> None:
        held = self._held.get(frame.stream)
        if held is None:
            self._give_back(frame.stream, self._outlet.passed(frame))
            return
        # The runtime does not see it, so it would never ask for more.
        self._give_back(0 if frame.ends else frame.stream, frame.size)
        if held.asked:
            return
        held.question += frame.body
        if frame.ends or len(held.question) > LARGEST_SEALED_BYTES:
            held.asked = True
            self._calls.asked(frame.stream, held.path, bytes(held.question))
            held.question.clear()

    def _answer(self, frame: Frame) -> None:
        held = self._held.get(frame.stream)
        if held:
            held.begun = True
            if frame.kind == FrameType.DATA and len(held.answer) <= LARGEST_SEALED_BYTES:
                held.answer += frame.body
        if frame.kind == FrameType.RST_STREAM:
            self._end(frame.stream, None)
        elif frame.ends:
            # Errors have no message.
            self._end(frame.stream, bytes(held.answer) if held and held.sent else None)
        self._down(frame.raw)

    def _end(self, stream: int, answer: bytes | None) -> None:
        self._held.pop(stream, None)
        self._give_back(0, self._outlet.drop(stream))
        if answer:
            self._unsettled.add(stream)
        self._calls.ended(stream, answer or None)

    def _widen(self, frame: Frame) -> None:
        if frame.stream == 0:
            rest = self._outlet.widen_all(frame.number)
            if rest == frame.number:
                self._down(frame.raw)
            elif rest:
                self._down(frames.window_update(0, rest))
        elif self._outlet.owns(frame.stream):
            self._outlet.widen(frame.stream, frame.number)
        else:
            self._down(frame.raw)

    def _give_back(self, stream: int, number: int) -> None:
        """Bytes that the client sent and the runtime does not get may be sent again."""
        if number:
            for each in {0, stream}:
                self._down(frames.window_update(each, number))

    def _set(self, frame: Frame) -> None:
        if frame.flags & frames.ACK:
            return
        settings = frame.settings
        self._headers.allow(settings.get(SettingsParameter.HEADER_TABLE_SIZE, 0))
        self._outlet.limit(
            settings.get(SettingsParameter.INITIAL_WINDOW_SIZE),
            settings.get(SettingsParameter.MAX_FRAME_SIZE),
        )

    def _down(self, raw: bytes) -> None:
        (self._backlog if self._unsettled else self.to_client).append(raw)
