"""HPACK headers of calls, for the relay: read beside two ends that pack them, or made.

Packed headers refer to those before them. Who reads one block has to read all, in order; who puts
one in between must not be referred to, or both ends would mean different things ever after.
"""

from __future__ import annotations

from string import ascii_letters, digits, punctuation
from urllib.parse import quote

import grpc
from hpack import Decoder, Encoder, HPACKError

from dovetail.node.cri_proxy.frames import BadFrames

PLAIN = f"{ascii_letters}{digits}{punctuation} ".replace("%", "")
"""Characters that stand for themselves in the words of a status."""


class HeaderReader:
    """Follows what one side says."""

    def __init__(self) -> None:
        self._decoder = Decoder()

    def path(self, block: bytes) -> str:
        """Which method is called; nothing if the headers are no call's. Raises BadFrames."""
        try:
            headers = self._decoder.decode(block, raw=True)
        except HPACKError as error:
            raise BadFrames(f"headers that can't be unpacked: {error}") from None
        return next((str(value, "latin-1") for name, value in headers if name == b":path"), "")

    def allow(self, size: int) -> None:
        """The other side lets it refer to that many bytes of headers; what it once did holds on.

        When a smaller size comes into force is between the two of them.
        """
        allowed = max(size, self._decoder.max_allowed_table_size)
        self._decoder.max_allowed_table_size = allowed


def refusal(code: grpc.StatusCode, words: str, *, begun: bool) -> bytes:
    """The end of an answer that is an error, and all of it unless it has `begun`.

    By a packer of its own, which is told that nothing may be kept.
    """
    first = ((":status", "200"), ("content-type", "application/grpc"))
    last = (("grpc-status", str(code.value[0])), ("grpc-message", quote(words, safe=PLAIN)))
    headers = last if begun else first + last
    return Encoder().encode([(name, value, True) for name, value in headers], huffman=False)
