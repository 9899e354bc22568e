"""gRPC's length-prefixed message framing: compressed or not, and how long. Pure."""

from __future__ import annotations

import struct

import grpc

from dovetail.node.cri.client import LARGEST_MESSAGE_BYTES
from dovetail.wire.rpc import Refused

ENVELOPE = struct.Struct(">BI")
LARGEST_SEALED_BYTES = LARGEST_MESSAGE_BYTES + ENVELOPE.size


def seal(message: bytes) -> bytes:
    return ENVELOPE.pack(0, len(message)) + message


def open_envelope(data: bytes) -> bytes:
    """The one message that a call of ours has; raises Refused.

    Kubelets do not compress. A message that did come compressed must not pass unread, and what it
    would be without is not ours to find out.
    """
    if len(data) > LARGEST_SEALED_BYTES:
        words = f"a message of more than {LARGEST_MESSAGE_BYTES} bytes"
        raise Refused(grpc.StatusCode.RESOURCE_EXHAUSTED, words)
    if len(data) < ENVELOPE.size:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "a call without a message")
    compressed, size = ENVELOPE.unpack_from(data)
    if compressed:
        words = "a compressed message, which this call can't have here"
        raise Refused(grpc.StatusCode.UNIMPLEMENTED, words)
    if size != len(data) - ENVELOPE.size:
        words = f"{len(data) - ENVELOPE.size} bytes where one message of {size} was said to be"
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, words)
    return data[ENVELOPE.size :]
