"""Headers, methods and ways of transfer gone wrong, on requests that are otherwise valid."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.fuzz.message import Message
from tests.fuzz.routes import CALLS, JSON, PATHS

VERSIONS = (
    *(b"placement latest", b"placement 1.40", b"placement 2.0", b"placement 0.9", b"placement 1"),
    *(b"placement", b"placement ", b"", b"1.39", b"latest", b"placement one", b"placement 1.-1"),
    *(b"placement 1.39 ", b"placement  1.39", b"placement 1.039", b"placement 01.39"),
    *(b"placement 1.39x", b"placement 1.3.9", b"placement 1." + b"9" * 4400, b"PLACEMENT 1.39"),
    *(b"compute 2.1", b"compute 2.1, placement 1.30", b"placement 1.1, placement 1.39", b","),
    *("placement 1.\u0663".encode(), b"placement 1.\xff", b"placement 1.1_0", b"placement +1.1"),
)
MEDIA_TYPES = (
    *(b"", b"text/plain", b"application/json; charset=utf-8", b"application/json;charset=utf-16"),
    *(
        b"APPLICATION/JSON",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
    ),
    *(
        b"application/json, text/html",
        b"/",
        b";",
        b"\xff",
        b"application/jsonx",
        b"application/x-ndjson",
    ),
    *(
        b"application/json;",
        b"json",
        b"application/vnd.api+json",
        b"application/json; charset=nope",
    ),
)
ACCEPTS = (
    *(b"*/*", b"application/json", b"text/html", b"text/plain", b"application/xml", b"image/*"),
    *(b"application/json;q=0", b"", b";;;", b"application/*", b"text/html, application/json;q=0.1"),
    *(b"*/*;q=x", b"application/json;q=1e999", b",,,", b"\xff", b"application/json/x"),
)
OTHERS = (
    *((b"X-Auth-Token", token) for token in (b"", b"other", b"admin:project", b":", b"\xff")),
    (b"X-Auth-Token", b"x" * 5000),
    *((b"X-Roles", roles) for roles in (b"", b"reader", b",,", b"admin,\xff", b"member,reader")),
    *((b"Content-Encoding", coding) for coding in (b"gzip", b"identity", b"nope")),
    (b"Expect", b"100-continue"),
    (b"X-Openstack-Request-Id", b"\xff'\"<>"),
    (b"X-Openstack-Request-Id", b"req-" + b"a" * 3000),
    (b"Range", b"bytes=0-1"),
    (b"If-Match", b'"x"'),
    (b"If-Modified-Since", b"never"),
    (b"Origin", b"http://other.example"),
    (b"Access-Control-Request-Method", b"PUT"),
    (b"X-Forwarded-For", b"\xff"),
    (b"X-HTTP-Method-Override", b"DELETE"),
    (b"Cookie", b"=;=;"),
    (b"Upgrade", b"websocket"),
    (b"Accept-Language", b"*" * 500),
    (b"Accept-Charset", b"utf-7"),
)
METHODS = (
    *(b"GET", b"PUT", b"POST", b"DELETE", b"HEAD", b"PATCH", b"OPTIONS", b"TRACE"),
    *(b"PROPFIND", b"LOCK", b"SEARCH"),
)
BODIES = (None, b"", b"{}", b"null", b"[]", b"x", b"\0" * 10, b"\xff" * 10, b"{}" * 50000)

Bend = Callable[[Message], Message]


def _set(name: bytes, value: bytes) -> Bend:
    return lambda message: message.without(name.lower()).with_header(name, value)


def _add(name: bytes, value: bytes) -> Bend:
    return lambda message: message.with_header(name, value)


def _drop(name: bytes) -> Bend:
    return lambda message: message.without(name)


def _method(value: bytes) -> Bend:
    return lambda message: message._replace(method=value)


def _body(value: bytes | None) -> Bend:
    return lambda message: message._replace(body=value)


def _chunked(count: int) -> Bend:
    return lambda message: message._replace(chunks=count)


bends = st.one_of(
    st.builds(
        lambda minor: _set(b"OpenStack-API-Version", b"placement 1.%d" % minor), st.integers(0, 41)
    ),
    st.sampled_from([_set(b"OpenStack-API-Version", value) for value in VERSIONS]),
    st.sampled_from([_set(b"Content-Type", value) for value in MEDIA_TYPES]),
    st.sampled_from([_set(b"Accept", value) for value in ACCEPTS]),
    st.sampled_from([_set(*header) for header in OTHERS]),
    st.sampled_from([_add(*header) for header in OTHERS]),
    st.sampled_from(
        [_drop(b"openstack-api-version"), _drop(b"content-type"), _drop(b"x-auth-token")]
    ),
    st.sampled_from([_method(value) for value in METHODS]),
    st.sampled_from([_body(value) for value in BODIES]),
    st.sampled_from([_chunked(1), _chunked(7)]),
)


@st.composite
def bent_messages(draw: st.DrawFn) -> Message:
    message: Message = draw(st.sampled_from(CALLS)).message()
    for bend in draw(st.lists(bends, min_size=1, max_size=3)):
        message = bend(message)
    return message


def every_method() -> list[Message]:
    """Each path with each method, with and without a body."""
    plain = CALLS[0].message()
    bodies = ((None, ()), (b"{}", ((b"Content-Type", JSON),)))
    return [
        plain._replace(
            method=method, target=path.encode(), headers=plain.headers + extra, body=body
        )
        for path in PATHS
        for method in METHODS
        for body, extra in bodies
    ]
