"""Messages in their envelopes."""

from __future__ import annotations

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.cri.client import LARGEST_MESSAGE_BYTES
from dovetail.node.cri_proxy.envelope import open_envelope, seal
from dovetail.wire.rpc import Refused


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=100))
def test_what_is_sealed_can_be_opened(message: bytes) -> None:
    assert open_envelope(seal(message)) == message


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", grpc.StatusCode.INVALID_ARGUMENT, "without a message"),
        (b"\0\0\0\0", grpc.StatusCode.INVALID_ARGUMENT, "without a message"),
        (b"\0\0\0\0\2x", grpc.StatusCode.INVALID_ARGUMENT, "1 bytes where one message of 2"),
        (seal(b"a") + seal(b"b"), grpc.StatusCode.INVALID_ARGUMENT, "one message of 1"),
        (b"\1\0\0\0\1x", grpc.StatusCode.UNIMPLEMENTED, "compressed"),
        (
            seal(bytes(LARGEST_MESSAGE_BYTES + 1)),
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "more than 16777216",
        ),
    ],
    ids=["nothing", "cut off", "too short", "two", "compressed", "too long"],
)
def test_anything_else_is_refused(data: bytes, code: grpc.StatusCode, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        open_envelope(data)
    assert caught.value.code is code


def test_the_largest_message_is_not_too_long() -> None:
    assert len(open_envelope(seal(bytes(LARGEST_MESSAGE_BYTES)))) == LARGEST_MESSAGE_BYTES
