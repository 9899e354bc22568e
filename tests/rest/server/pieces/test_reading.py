"""Long bodies are decoded in pieces, and come out as if they had been decoded at once."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from dovetail.rest.server.pieces import reading as json_reading
from dovetail.rest.server.pieces.reading import MalformedJson, read_json

SCALARS = (1, -2.5, None, True, "", "a,b", 'q"q', "\\", '\\\\"', "{[}]é€", "x" * 19)
KEYS = ("a", "b", 'c"', "d\\", "a long key, with", "")
SPOILERS = b'{}[],:"\\ 1a'


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is long then, and cut wherever it can be."""
    monkeypatch.setattr(json_reading, "LONG_BYTES", 0)
    monkeypatch.setattr(json_reading, "PIECE_BYTES", 8)
    monkeypatch.setattr(json_reading, "INDEXED_BYTES", 5)


def document(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(SCALARS)
    if kind < 0.65:
        return [document(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    return {
        f"{rng.choice(KEYS)}{rng.randint(0, 3)}": document(rng, depth - 1)
        for _ in range(rng.randint(0, 4))
    }


def texts(seed: int, count: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        indent = rng.choice([None, 1])
        text = json.dumps(document(rng, 4), indent=indent, ensure_ascii=rng.random() < 0.5)
        yield text.encode()


def spoilt(rng: random.Random, text: bytes) -> bytes:
    changed = bytearray(text)
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(changed) + 1)
        how = rng.random()
        if how < 0.4:
            del changed[at : at + 1]
        else:
            changed[at : at + (how < 0.8)] = bytes([rng.choice(SPOILERS)])
    return bytes(changed)


@pytest.mark.usefixtures("tiny_pieces")
def test_documents_are_the_same_in_pieces_as_at_once() -> None:
    for text in texts(seed=1, count=2_000):
        assert asyncio.run(read_json(text)) == orjson.loads(text), text


@pytest.mark.usefixtures("tiny_pieces")
def test_what_is_no_json_at_once_is_none_in_pieces() -> None:
    rng, refused = random.Random(3), 0
    for text in texts(seed=2, count=2_000):
        changed = spoilt(rng, text)
        try:
            expected = orjson.loads(changed)
        except orjson.JSONDecodeError:
            refused += 1
            with pytest.raises(MalformedJson):
                asyncio.run(read_json(changed))
        else:
            assert asyncio.run(read_json(changed)) == expected, changed
    assert refused > 500


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"[" * 2_000_000 + b"]" * 2_000_000, "nested more than 1024 levels"),
        (b'{"a":[%s[]]}' % (b"[]," * 500_000), "more than 400000 objects and lists"),
        (b'{"a":"%s' % (b"x" * 100_000), "ends in the middle"),
        (b"[%s]]" % (b"1," * 100_000), "closed that was not opened"),
        (b"[" * 900 + b"1," * 100_000 + b"1" + b"]" * 900, "long more than 64 levels deep"),
        (b'{"a":%s}' % (b"9" * 100_000), "number is infinity"),
    ],
    ids=["deep", "many", "unfinished", "unopened", "deep and long", "number"],
)
def test_bombs_are_refused_with_a_reason(body: bytes, complaint: str) -> None:
    with pytest.raises(MalformedJson, match=complaint):
        asyncio.run(read_json(body))


def test_no_piece_is_longer_than_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded at once bounds how long others wait."""
    longest = 0
    loads = orjson.loads

    def measured(text: bytes) -> Any:
        nonlocal longest
        longest = max(longest, len(text))
        return loads(text)

    monkeypatch.setattr(orjson, "loads", measured)
    members = {f"{n:036}": {"resources": {"VCPU": n}} for n in range(40_000)}
    body = orjson.dumps({"allocations": members, "inventories": {"one": {"items": [members]}}})
    assert asyncio.run(read_json(body)) == loads(body)
    assert longest <= json_reading.PIECE_BYTES + 2
