"""JSON decoder of long bodies, in pieces: between any two, the event loop serves others.

`Schema.body` reads with it. A first pass makes an index of structure, as simdjson does, in vector
operations over a quarter of a megabyte at a time: which commas stand outside of strings, and how
deep. Then the document is cut at commas, the outermost first, until no piece is longer than PIECE,
and orjson decodes each piece in brackets of its own. Every byte is indexed once and decoded once,
so the time is linear; every cut leaves strictly smaller parts, so it ends. A document is accepted
only if it is JSON: each piece has to be, what is cut is checked to begin and end with brackets that
match, and between two commas there has to be something.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from dovetail.aio.pace import Pace, spare_collector

LONG_BYTES = 64 * 2**10
"""Shorter ones are decoded at once."""
PIECE_BYTES = 128 * 2**10
INDEXED_BYTES = 256 * 2**10
DEEPEST = 1024
"""As orjson has it."""
DEEPEST_CUT = 64
"""Levels at which documents are cut; no request has as many."""
MOST_CONTAINERS = 400_000
"""Objects and lists in one document. Those that mean something have fewer in eight megabytes; more
keep the garbage collector busy for seconds."""

QUOTE, BACKSLASH, COMMA = ord('"'), ord("\\"), ord(",")
BRACKETS = {ord("{"): ord("}"), ord("["): ord("]")}
KEY = re.compile(rb'[ \t\r\n]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*:', re.DOTALL)
BLANKS = b" \t\r\n"

STEPS = np.zeros(256, np.int32)
"""How a byte changes the depth."""
STEPS[[*BRACKETS]] = 1
STEPS[[*BRACKETS.values()]] = -1
STRUCTURE = STEPS != 0
"""Bytes that the index looks at."""
STRUCTURE[[QUOTE, COMMA]] = True

Work = Generator[None, None, Any]


class MalformedJson(Exception):
    """Text that is no JSON, or more of it than anybody needs."""


async def read_json(body: bytes) -> Any:
    """The document. Raises MalformedJson."""
    if len(body) <= LONG_BYTES:
        return decoded(body)
    return await Pace().run(in_pieces(body))


def read_json_in_thread(body: bytes) -> Any:
    """The same for a thread: between any two pieces, the interpreter lets others run. Raises
    MalformedJson."""
    if len(body) <= LONG_BYTES:
        return decoded(body)
    work = in_pieces(body)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        spare_collector()


def in_pieces(body: bytes) -> Work:
    index = StructureIndex()
    for start in range(0, len(body), INDEXED_BYTES):
        index.add(body[start : start + INDEXED_BYTES])
        yield
    index.finish()
    document = yield from LongDocument(body, index).value(*trimmed(body, 0, len(body)), depth=0)
    return document


def decoded(text: bytes, at: int = 0) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        where = f" (after byte {at})" if at else ""
        raise MalformedJson(f"{error}{where}") from error


class StructureIndex:
    """The commas outside of strings and their depth, found piece by piece."""

    def __init__(self) -> None:
        self._size = self._depth = self._containers = 0
        self._in_string = self._escaped = False
        self._commas: list[NDArray[np.int64]] = []
        self._depths: list[NDArray[np.int32]] = []
        self._by_depth: dict[int, NDArray[np.int64]] = {}

    def add(self, piece: bytes) -> None:
        content = np.frombuffer(piece, np.uint8)
        found = np.flatnonzero(STRUCTURE[content])
        kinds = content[found]
        quotes = kinds == QUOTE
        if self._escaped or b"\\" in piece:
            quotes &= ~self._escaped_at(content)[found]
        inside = (np.cumsum(quotes) + self._in_string) & 1
        outside = (inside == 0) & (kinds != QUOTE)
        found, kinds = found[outside], kinds[outside]
        depths = np.cumsum(STEPS[kinds], dtype=np.int32) + np.int32(self._depth)
        self._check(kinds, depths)
        commas = kinds == COMMA
        self._commas.append(found[commas] + self._size)
        self._depths.append(depths[commas])
        if len(inside):
            self._in_string = bool(inside[-1])
        if len(depths):
            self._depth = int(depths[-1])
        self._size += len(piece)

    def _escaped_at(self, content: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which bytes a backslash before them escapes: those after an odd number of them."""
        escaped = np.zeros(len(content) + 1, np.bool_)
        at = np.flatnonzero(content == BACKSLASH)
        begins = np.flatnonzero(np.diff(at, prepend=-2) != 1)
        lengths = np.diff(begins, append=len(at))
        starts = at[begins]
        if self._escaped:
            if len(starts) and starts[0] == 0:
                lengths[0] += 1
            elif len(content):
                escaped[0] = True
        ends = at[begins + np.diff(begins, append=len(at)) - 1] + 1
        escaped[ends[lengths % 2 == 1]] = True
        self._escaped = bool(escaped[len(content)])
        return escaped[:-1]

    def _check(self, kinds: NDArray[np.uint8], depths: NDArray[np.int32]) -> None:
        if len(depths) and int(depths.min()) < 0:
            raise MalformedJson("a bracket is closed that was not opened")
        if len(depths) and int(depths.max()) > DEEPEST:
            raise MalformedJson(f"nested more than {DEEPEST} levels deep")
        self._containers += int((STEPS[kinds] > 0).sum())
        if self._containers > MOST_CONTAINERS:
            raise MalformedJson(f"there are more than {MOST_CONTAINERS} objects and lists in it")

    def finish(self) -> None:
        if self._in_string or self._depth:
            raise MalformedJson("the document ends in the middle")
        self._positions = np.concatenate(self._commas)
        self._levels = np.concatenate(self._depths)

    def within(self, start: int, end: int, depth: int) -> NDArray[np.int64]:
        """The commas of a depth between two positions."""
        found = self._by_depth.get(depth)
        if found is None:
            found = self._by_depth[depth] = self._positions[self._levels == depth]
        low, high = np.searchsorted(found, (start, end))
        return found[low:high]


class LongDocument:
    """A document, decoded by cutting."""

    def __init__(self, body: bytes, index: StructureIndex) -> None:
        self._body, self._index = body, index

    def value(self, start: int, end: int, depth: int) -> Work:
        """What stands between two positions, without blanks around it."""
        body = self._body
        if end - start <= PIECE_BYTES or body[start] not in BRACKETS:
            yield
            return decoded(body[start:end], start)
        if body[end - 1] != BRACKETS[body[start]]:
            raise MalformedJson(f"the bracket at byte {start} is not closed by its like")
        if depth >= DEEPEST_CUT:
            raise MalformedJson(f"long more than {DEEPEST_CUT} levels deep (byte {start})")
        into: dict[str, Any] | list[Any] = {} if body[start] == ord("{") else []
        if not body[start + 1 : end - 1].strip(BLANKS):
            return into
        commas = self._index.within(start, end, depth + 1)
        edges = np.concatenate(([start], commas, [end - 1]))
        at, last = 0, len(edges) - 1
        while at < last:
            reach = int(np.searchsorted(edges, edges[at] + PIECE_BYTES, "right")) - 1
            to = max(at + 1, reach)
            yield from self._take(into, int(edges[at]) + 1, int(edges[to]), depth)
            at = to
        return into

    def _take(self, into: dict[str, Any] | list[Any], start: int, end: int, depth: int) -> Work:
        """Add the elements between two positions, which are one if they are long."""
        body = self._body
        if end - start <= PIECE_BYTES:
            text = body[start:end]
            if not text.strip(BLANKS):
                raise MalformedJson(f"something is missing before byte {end}")
            if isinstance(into, dict):
                into.update(decoded(b"{%s}" % text, start))
            else:
                into.extend(decoded(b"[%s]" % text, start))
            yield
        elif isinstance(into, list):
            into.append((yield from self.value(*trimmed(body, start, end), depth + 1)))
        else:
            key = KEY.match(body, start, end)
            if key is None:
                raise MalformedJson(f"a key is expected after byte {start}")
            span = trimmed(body, key.end(), end)
            into[decoded(key.group(1))] = yield from self.value(*span, depth + 1)


def trimmed(body: bytes, start: int, end: int) -> tuple[int, int]:
    """The span without blanks at its ends. Raises MalformedJson if there is nothing else."""
    text = body[start:end]
    left = text.lstrip(BLANKS)
    if not left:
        raise MalformedJson(f"something is missing after byte {start}")
    return start + len(text) - len(left), end - (len(text) - len(text.rstrip(BLANKS)))
