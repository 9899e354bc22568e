"""JSON gone wrong: a valid value with a few of its places replaced, dropped, doubled or bent.

Values that Python's own encoder would not write (`1e999`, a key given twice, bytes that are not
UTF-8) are written down as they shall appear on the wire.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.fuzz.names import KNOWN, NAMES


class Raw(NamedTuple):
    """A piece of text that stands for a value."""

    text: bytes


class Pairs(NamedTuple):
    """An object, in which a key may be given twice."""

    items: tuple[tuple[str, Any], ...]


NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30),
    *(0.0, -0.0, 1.0, 1.5, -2.0, 1e-320, 1e18, 1e19, 1e308),
    *(Raw(text) for text in (b"1E5", b"1e-9999", b"9" * 5000, b"1." + b"0" * 400)),
)
UNREADABLE = tuple(
    Raw(text)
    for text in (
        *(b"1e999", b"-1e999", b"NaN", b"Infinity", b"-Infinity", b"01", b"+1", b"0x10", b"1_0"),
        *(b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\x"', b'"\x01"', b"-", b"'a'", b'"a'),
        *(b"nul", b"", b"/* */ 1", b"\xef\xbb\xbf1", b"[" * 100_000 + b"]" * 100_000),
    )
)
SHAPES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], [{}], {"": ""}, {"a": {"b": {"c": [1]}}}),
    *(Raw(b"[" * depth + b"]" * depth) for depth in (50, 900, 5000)),
    *(Raw(b'{"a":' * depth + b"1" + b"}" * depth) for depth in (50, 900, 5000)),
    Pairs((("a", 1), ("a", 2))),
    list(range(2000)),
)

odd_values = st.one_of(
    st.sampled_from((*KNOWN, *range(6))),  # what is known, but does not belong here
    st.sampled_from(NUMBERS),
    st.sampled_from(NAMES),
    st.sampled_from(SHAPES),
    st.text(max_size=8),
    st.sampled_from(UNREADABLE),
)
odd_keys = st.one_of(
    st.sampled_from(KNOWN),
    st.sampled_from(NAMES),
    st.sampled_from(["uuid", "name", "generation", "resources", "links", "id", "__proto__"]),
)

Path = tuple[Any, ...]
GONE = Raw(b"")


def encoded(value: Any) -> bytes:
    match value:
        case Raw(text):
            return text
        case Pairs(items):
            return b"{" + b",".join(_member(*item) for item in items) + b"}"
        case dict():
            return encoded(Pairs(tuple(value.items())))
        case list():
            return b"[" + b",".join(encoded(one) for one in value) + b"]"
        case _:
            return json.dumps(value).encode()


@st.composite
def noisy(draw: st.DrawFn, value: Any) -> Any:
    """The value with one to three changes."""
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        path = draw(st.sampled_from(_paths(value)))
        here = _at(value, path)
        value = _changed(value, path, draw(st.one_of(_alike(here), _unlike(here))))
    return value


def _alike(here: Any) -> st.SearchStrategy[Any]:
    """Another value of the same kind, such as gets past the first look."""
    match here:
        case int():
            return st.sampled_from((*range(9), here + 1, -here, float(here), 2**31 - 1))
        case str():
            return st.sampled_from(KNOWN)
        case dict() if here:
            return st.builds(
                _renamed, st.just(here), st.sampled_from([*here]), st.sampled_from(KNOWN)
            )
        case list():
            return st.sampled_from(([], here * 2, here[1:], [*here, *KNOWN[:2]]))
        case _:
            return st.sampled_from((None, 0, 1, KNOWN[0]))


@st.composite
def _unlike(draw: st.DrawFn, here: Any) -> Any:
    """Something else in place of the value, or the value as it should not be."""
    odd, key = draw(odd_values), draw(odd_keys)
    others = [odd, odd, odd, odd, GONE, [here], {key: here}, json.dumps(here, default=str)]
    if isinstance(here, dict) and here:
        items = tuple(here.items())
        others += [
            here | {key: odd},
            Pairs((*items, items[0])),
            Pairs((*items, (items[-1][0], odd))),
        ]
    elif isinstance(here, list):
        others += [[*here, odd]]
    return draw(st.sampled_from(others))


def _renamed(members: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {(new if key == old else key): member for key, member in members.items()}


def _paths(value: Any) -> list[Path]:
    """The places of a value, itself first."""
    paths: list[Path] = [()]
    members = dict(enumerate(value)) if isinstance(value, list) and len(value) < 100 else value
    for key, member in members.items() if isinstance(members, dict) else ():
        paths += [(key, *path) for path in _paths(member)]
    return paths


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    inner = _changed(value[path[0]], path[1:], new)
    members = dict(enumerate(value)) if isinstance(value, list) else dict(value)
    members[path[0]] = inner
    if inner is GONE:
        del members[path[0]]
    return list(members.values()) if isinstance(value, list) else members


def _member(key: str, value: Any) -> bytes:
    return json.dumps(key).encode() + b":" + encoded(value)
