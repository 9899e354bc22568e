"""JSON encoder of long answers, in pieces: between any two, the event loop serves others.

Handlers hand over documents whose long members are LongList or LongObject: their elements are made
when it is their turn, so neither making nor encoding a hundred thousand of them is one long step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dovetail.aio.pace import Pace

PIECE_BYTES = 128 * 2**10
ENCODER = msgspec.json.Encoder()


class LongList(msgspec.Struct, frozen=True):
    """A list of which each element is encoded by itself."""

    elements: Iterable[Any]


class LongObject(msgspec.Struct, frozen=True):
    """An object of which each member is encoded by itself."""

    members: Iterable[tuple[str, Any]]


async def written_json(document: Any) -> list[bytes]:
    """The text, in pieces. `document` is long, or an object with members that are."""
    return await gathered(texts(document))


async def gathered(parts: Iterable[bytes | memoryview]) -> list[bytes]:
    """What the parts make together, in pieces of about PIECE_BYTES; others are served while parts
    are made."""
    pace, pieces, piece, size = Pace(), list[bytes](), list[bytes | memoryview](), 0
    for part in parts:
        piece.append(part)
        size += len(part)
        if size > PIECE_BYTES:
            pieces.append(b"".join(piece))
            piece, size = [], 0
        await pace.give_way()
    return [*pieces, b"".join(piece)]


def texts(document: Any) -> Iterator[bytes]:
    match document:
        case LongList():
            yield b"["
            yield from separated(ENCODER.encode(each) for each in document.elements)
            yield b"]"
        case LongObject():
            yield b"{"
            yield from separated(
                b"%s:%s" % (ENCODER.encode(key), ENCODER.encode(value))
                for key, value in document.members
            )
            yield b"}"
        case Mapping():
            yield b"{"
            for at, (key, value) in enumerate(document.items()):
                yield b"%s%s:" % (b"," if at else b"", ENCODER.encode(key))
                yield from texts(value)
            yield b"}"
        case _:
            yield ENCODER.encode(document)


def separated(parts: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for part in parts:
        yield part if first else b"," + part
        first = False
