"""Tokens of CEL text, which know where they stand; the parser reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dovetail.core.errors import Malformed

LONGEST = 10 * 1024
"""Characters that Kubernetes takes in one expression."""

FORM = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<triple>[rRbB]*(?:\"\"\"|'''))
    |(?P<bytes>[bB][rR]?["'])
    |(?P<raw>[rR](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+)
    |(?P<unsigned>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<number>0x[0-9a-fA-F]+|\d+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark>&&|\|\||[=!<>]=|[<>!.,()\[\]-])""",
    re.VERBOSE | re.ASCII,
)
UNSUPPORTED = {
    "triple": "text in three quotes",
    "bytes": "bytes",
    "double": "a number with a point or an exponent",
    "unsigned": "an unsigned number",
}
ESCAPE = re.compile(
    r"""\\(?:([abfnrtv\\?"'`])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))""",
    re.DOTALL,
)
SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadCel(Malformed):
    """Text that is no CEL, or CEL that is not understood here; says at which character."""

    def __init__(self, at: int, message: str) -> None:
        self.at = at
        super().__init__(f"at character {at + 1}: {message}")


class Token(msgspec.Struct, frozen=True):
    kind: str
    """name, text, number, mark or end."""
    value: str | int
    at: int


def tokens(text: str) -> Iterator[Token]:
    """The last is of the kind `end`."""
    if len(text) > LONGEST:
        raise BadCel(LONGEST, f"Kubernetes takes at most {LONGEST} characters")
    at = 0
    while at < len(text):
        found = FORM.match(text, at)
        if found is None or found.lastgroup is None:
            raise BadCel(at, f"{text[at]!r} is not expected here")
        if found.lastgroup in UNSUPPORTED:
            raise BadCel(at, f"{UNSUPPORTED[found.lastgroup]} is not understood here")
        if found.lastgroup != "blank":
            yield _token(found.lastgroup, found[0], at)
        at = found.end()
    yield Token("end", "", at)


def _token(kind: str, text: str, at: int) -> Token:
    match kind:
        case "number":
            return Token(kind, int(text, 0) if text.startswith("0x") else int(text), at)
        case "raw":
            return Token("text", text[2:-1], at)
        case "text":
            return Token(kind, _unescape(text[1:-1], at + 1), at)
        case _:
            return Token(kind, text, at)


def _unescape(text: str, at: int) -> str:
    def replaced(found: re.Match[str]) -> str:
        simple, *codes, octal, other = found.groups()
        if other is not None:
            raise BadCel(at + found.start(), f"{found[0]!r} stands for nothing")
        if simple is not None:
            return SIMPLE.get(simple, simple)
        code = int(octal, 8) if octal else int(next(filter(None, codes)), 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise BadCel(at + found.start(), f"{found[0]!r} is no character")
        return chr(code)

    return ESCAPE.sub(replaced, text)


def quote(text: str) -> str:
    """As CEL writes it."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
