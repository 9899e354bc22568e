"""Headers read on their way, and an answer put between others."""

from __future__ import annotations

from urllib.parse import unquote

import grpc
import pytest
from hpack import Decoder, Encoder
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.cri_proxy.frames import BadFrames
from dovetail.node.cri_proxy.headers import HeaderReader, refusal
from tests.node.cri_proxy.ends import headers_of

CODE = grpc.StatusCode.FAILED_PRECONDITION


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["/a/B", "/a/C", "/d/E"]), max_size=8))
def test_paths_are_read_though_later_blocks_refer_to_earlier_ones(paths: list[str]) -> None:
    encoder, reader = Encoder(), HeaderReader()
    for path in paths:
        call = [(":method", "POST"), (":path", path), ("grpc-timeout", "9S")]
        assert reader.path(encoder.encode(call)) == path
        assert reader.path(encoder.encode([("not", "a call")])) == ""


def test_a_client_refers_to_as_much_as_the_runtime_allows() -> None:
    encoder, reader = Encoder(), HeaderReader()
    reader.allow(100_000)
    reader.allow(0)
    encoder.header_table_size = 65536
    for turn in (1, 2):
        long = [(":path", "/a/B"), *((f"h{each}", "v" * 50) for each in range(200))]
        assert reader.path(encoder.encode(long)) == "/a/B", turn


def test_a_client_that_refers_to_more_is_not_understood() -> None:
    encoder = Encoder()
    encoder.header_table_size = 65536
    with pytest.raises(BadFrames, match="can't be unpacked"):
        HeaderReader().path(encoder.encode([(":path", "/a/B")]))


def test_a_refusal_of_what_has_begun_is_only_its_end() -> None:
    status = dict(headers_of(refusal(CODE, "no", begun=True), Decoder()))
    assert status == {"grpc-status": "9", "grpc-message": "no"}


@pytest.mark.parametrize("block", [b"\xff\xff\xff\xff", b"\xbe", b"\x40\x0aab"])
def test_garbage_is_told(block: bytes) -> None:
    with pytest.raises(BadFrames, match="can't be unpacked"):
        HeaderReader().path(block)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_a_refusal_has_its_words_and_leaves_no_trace(words: str) -> None:
    ours, theirs = Decoder(), Encoder()
    before = [(":status", "200"), ("kept", "x")]
    assert headers_of(theirs.encode(before), ours) == before
    status = dict(headers_of(refusal(CODE, words, begun=False), ours))
    assert [*status] == [":status", "content-type", "grpc-status", "grpc-message"]
    assert (status[":status"], status["grpc-status"]) == ("200", "9")
    assert status["content-type"] == "application/grpc"
    assert status["grpc-message"].isascii()
    assert status["grpc-message"].isprintable()
    assert unquote(status["grpc-message"]) == words
    # What they refer to is still where it was.
    assert headers_of(theirs.encode(before), ours) == before
