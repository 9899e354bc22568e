"""Frames, cut from bytes that come in any pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.cri_proxy import frames
from dovetail.node.cri_proxy.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY,
    BadFrames,
    ErrorCode,
    Frame,
    FrameSplitter,
    FrameType,
    frame_bytes,
)

STREAMS = st.integers(0, 2**31 - 1)
PLAIN = st.builds(
    frame_bytes,
    st.integers(0, 255).filter(lambda kind: kind not in (1, 5, 9)),
    st.integers(0, 255),
    STREAMS,
    st.binary(max_size=40),
)


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """HEADERS or a promise, with as many continuations as it likes."""
    stream, parts = draw(STREAMS), draw(st.lists(st.binary(max_size=20), min_size=1, max_size=4))
    kinds = [draw(st.sampled_from([FrameType.HEADERS, FrameType.PUSH_PROMISE]))]
    kinds += [FrameType.CONTINUATION] * (len(parts) - 1)
    last = len(parts) - 1
    return b"".join(
        frame_bytes(kind, END_HEADERS if turn == last else 0, stream, part)
        for turn, (kind, part) in enumerate(zip(kinds, parts, strict=True))
    )


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[one:other] for one, other in pairwise(places)]


@settings(max_examples=80, deadline=None)
@given(st.lists(PLAIN | headers(), max_size=8), st.lists(st.integers(0, 10**6), max_size=12))
def test_frames_are_the_same_however_they_come(said: list[bytes], cuts: list[int]) -> None:
    cutter = FrameSplitter(PREFACE)
    data = PREFACE + b"".join(said)
    found = [frame for piece in pieces(data, cuts) for frame in cutter.feed(piece)]
    assert [frame.raw for frame in found] == said
    (whole,) = (list(FrameSplitter().feed(b"".join(said))),)
    assert found == whole


def only(data: bytes) -> Frame:
    (frame,) = FrameSplitter().feed(data)
    return frame


def test_a_frame_knows_its_parts() -> None:
    frame = only(frame_bytes(FrameType.DATA, END_STREAM | PADDED, 7, b"\x03bodypad"))
    assert (frame.kind, frame.stream, frame.ends) == (FrameType.DATA, 7, True)
    assert (frame.body, frame.size) == (b"body", 8), "padding counts in flow control"
    assert only(frames.window_update(5, 1000)).number == 1000
    assert only(frame_bytes(FrameType.SETTINGS, 0, 0, bytes.fromhex("000400010000"))).settings == {
        4: 65536
    }


def test_headers_that_go_on_are_one_piece() -> None:
    first = frame_bytes(
        FrameType.HEADERS, END_STREAM | PADDED | PRIORITY, 3, b"\x02" + b"prior" + b"ab" + b".."
    )
    data = (
        first
        + frame_bytes(FrameType.CONTINUATION, 0, 3, b"cd")
        + frame_bytes(FrameType.CONTINUATION, 4, 3, b"ef")
    )
    frame = only(data)
    assert (frame.kind, frame.ends, frame.block, frame.raw) == (
        FrameType.HEADERS,
        True,
        b"abcdef",
        data,
    )


@pytest.mark.parametrize("size", [0, 1, 2**14, 2**14 + 1, 40_000])
def test_last_headers_take_as_many_frames_as_they_need(size: int) -> None:
    block = bytes(turn % 251 for turn in range(size)) or b"x"
    frame = only(frames.last_headers(9, block))
    assert (frame.stream, frame.ends, frame.block) == (9, True, block)


def test_what_is_made_is_understood() -> None:
    reset = only(frames.reset(3, ErrorCode.CANCEL))
    assert (reset.kind, reset.stream, reset.raw[9:]) == (FrameType.RST_STREAM, 3, b"\0\0\0\x08")
    leaving = only(frames.goaway(5, ErrorCode.PROTOCOL_ERROR))
    assert (leaving.kind, leaving.raw[9:]) == (FrameType.GOAWAY, b"\0\0\0\x05\0\0\0\x01")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame_bytes(FrameType.CONTINUATION, END_HEADERS, 1), "headers begin or go on"),
        (
            frame_bytes(FrameType.HEADERS, 0, 1) + frame_bytes(FrameType.DATA, 0, 1),
            "headers begin or go on",
        ),
        (
            frame_bytes(FrameType.HEADERS, 0, 1) + frame_bytes(FrameType.HEADERS, 0, 1),
            "headers begin or go on",
        ),
        (
            frame_bytes(FrameType.HEADERS, 0, 1) + frame_bytes(FrameType.CONTINUATION, 0, 3),
            "headers begin or go on",
        ),
        (
            frame_bytes(FrameType.HEADERS, 0, 1)
            + frame_bytes(FrameType.CONTINUATION, 0, 1, bytes(2**20)),
            "more than",
        ),
    ],
)
def test_headers_out_of_order_are_an_error(data: bytes, words: str) -> None:
    with pytest.raises(BadFrames, match=words):
        list(FrameSplitter().feed(data))


def test_parts_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(BadFrames, match="padding"):
        _ = only(frame_bytes(FrameType.DATA, PADDED, 1, b"\x05abc")).body
    with pytest.raises(BadFrames, match="padding"):
        _ = only(frame_bytes(FrameType.DATA, PADDED, 1)).body
    with pytest.raises(BadFrames, match="4 are right"):
        _ = only(frame_bytes(FrameType.WINDOW_UPDATE, 0, 1, b"abc")).number
    with pytest.raises(BadFrames, match="multiples of 6"):
        _ = only(frame_bytes(FrameType.SETTINGS, 0, 0, b"abc")).settings


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/1", b"\x16\x03\x01"])
def test_what_is_not_http2_is_told_as_soon_as_it_is_seen(data: bytes) -> None:
    with pytest.raises(BadFrames, match="does not speak"):
        list(FrameSplitter(PREFACE).feed(data))
