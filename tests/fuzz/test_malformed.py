"""Requests that are not HTTP, or not all of it: refused or hung up on, and nothing happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.examiner import Examiner
from tests.fuzz.message import Message
from tests.fuzz.routes import ALLOCATIONS, WITH_BODY

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

WHOLE = ALLOCATIONS[1].message()
LINES = (
    *(b"GET / HTTP/0.9", b"GET / HTTP/3.0", b"GET / HTTP/1.1.1", b"GET /", b"GET", b"", b"\0"),
    *(b"GET * HTTP/1.1", b"GET http://other/resource_providers HTTP/1.1", b"GET traits HTTP/1.1"),
    *(b"CONNECT localhost:1 HTTP/1.1", b"CONNECT / HTTP/1.1", b"FOO / HTTP/1.1", b"get / HTTP/1.1"),
    *(b"GET /traits/\xff\xfe HTTP/1.1", b"GET /a b HTTP/1.1", b"GET /traits?name=\xff HTTP/1.1"),
    *(b"GET /\0 HTTP/1.1", b"GET /traits#x HTTP/1.1", b"GET //// HTTP/1.1", b"GET  / HTTP/1.1"),
    *(b"GET /" + b"a" * length + b" HTTP/1.1" for length in (9000, 70_000, 300_000)),
    *(b"GET /traits?" + b"a" * length + b" HTTP/1.1" for length in (9000, 70_000, 300_000)),
)
HEADERS = (
    *(
        b"no colon",
        b": no name",
        b"A b: c",
        b"X: \0",
        b"X:\x01",
        b" folded",
        b"X: a\rb",
        b"\xff: x",
    ),
    *(
        b"Host: other",
        b"X-Long: " + b"a" * 200_000,
        b"\r\n".join(b"X-%d: y" % n for n in range(999)),
    ),
    *(b"Content-Length: x", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 5, 6"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 10000", b"Content-Length: 1"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Transfer-Encoding: x, chunked"),
)
CHUNKS = (
    *(b"x\r\n{}\r\n0\r\n\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n{}", b"5\r\n{}\r\n0\r\n\r\n"),
    *(
        b"2\r\n{}",
        b"2\r\n{}\r\n",
        b"2;" + b"a" * 9000 + b"\r\n{}\r\n0\r\n\r\n",
        b"0\r\nX: y\r\n\r\n",
    ),
)


def test_broken_requests(examiner: Examiner) -> None:
    @examiner.examples(120)
    @given(broken_requests())
    def check(request: bytes) -> None:
        examiner.examine_bytes(request)

    check()


def test_a_request_cut_short_does_nothing(examiner: Examiner) -> None:
    whole = [call.message() for call in WITH_BODY]
    whole += [message._replace(chunks=3) for message in whole]

    @examiner.examples(80)
    @given(st.sampled_from(whole), st.integers(1, 400))
    def check(message: Message, missing: int) -> None:
        reply = examiner.examine_bytes(message.encoded()[:-missing])
        assert reply is None or reply.status >= 300, (message, reply)

    check()


@st.composite
def broken_requests(draw: st.DrawFn) -> bytes:
    line, *headers = WHOLE._replace(body=None).encoded().rstrip().split(b"\r\n")
    headers.insert(draw(st.integers(0, len(headers))), draw(st.sampled_from(HEADERS)))
    if draw(st.booleans()):
        line = draw(st.one_of(st.sampled_from(LINES), st.binary(max_size=40)))
    body = draw(
        st.one_of(st.sampled_from(CHUNKS), st.just(WHOLE.body or b""), st.binary(max_size=40))
    )
    return b"\r\n".join([line, *headers, b"", body])
