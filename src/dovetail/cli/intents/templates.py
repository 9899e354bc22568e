"""Templates of emcoctl files: as much of Go's text/template as such files use; `apply` fills them.

    {{.Name}}  {{.Outer.Inner}}  {{index .List 0}}     values, by path
    {{if .A}} … {{else if eq .B "x"}} … {{else}} … {{end}}
    {{range .List}} {{.}} {{end}}  {{range $i, $each := .List}} … {{end}}
    {{- … -}}                                          with the blanks before and after it gone
    {{/* a comment */}}

Functions: and, or, not, eq, ne, index, len, quote. A value that is not there is an error with its
line: Go would write `<no value>` into the document, where nobody looks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|`[^`]*`|:=|[(),]|[^\s(),"`]+)')
MOST_PIECES = 1_000_000
"""Written out: ranges within ranges end here."""


class BadTemplate(Exception):
    """A template that cannot be filled; says the line."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(f"line {line}: {words}")


class Piece(NamedTuple):
    """A piece of text, or (`words`) an action."""

    line: int
    text: str
    words: tuple[str, ...] | None = None


class Block(msgspec.Struct):
    """What stands between an action and its end; the last branch of an `if` asks nothing."""

    piece: Piece
    branches: list[tuple[tuple[str, ...], list[Block]]] = []


def filled(template: str, values: Any) -> str:
    """The text of the template with these values. Raises BadTemplate."""
    reader = _BlockReader(list(_pieces(template)))
    blocks = reader.blocks(())
    writer = _Writer()
    writer.write(blocks, values, {"$": values})
    return "".join(writer.written)


def _pieces(template: str) -> Iterator[Piece]:
    at, is_trimming = 0, False
    for found in ACTION.finditer(template):
        text = template[at : found.start()]
        line = template.count("\n", 0, found.start()) + 1
        if is_trimming:
            text = text.lstrip()
        yield Piece(line, text.rstrip() if found[1] else text)
        inside = found[2].strip()
        if not inside.startswith("/*"):
            yield Piece(line, "", tuple(_words(line, inside)))
        at, is_trimming = found.end(), bool(found[3])
    rest = template[at:]
    yield Piece(template.count("\n", 0, at) + 1, rest.lstrip() if is_trimming else rest)


def _words(line: int, text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = WORD.match(text, at)
        if found is None:
            raise BadTemplate(line, f"{{{{{text}}}}} cannot be read")
        yield found[1]
        at = found.end()


class _BlockReader:
    """Reads pieces into nested blocks; ends because each call takes a piece or returns."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces, self._at = pieces, 0

    def blocks(self, until: tuple[str, ...]) -> list[Block]:
        found: list[Block] = []
        while self._at < len(self._pieces):
            piece = self._pieces[self._at]
            first = piece.words[0] if piece.words else ""
            if first in ("end", "else"):
                if first not in until:
                    raise BadTemplate(piece.line, f"{{{{{first}}}}} ends nothing")
                return found
            self._at += 1
            if first in ("if", "range"):
                found.append(self._block(piece))
            else:
                found.append(Block(piece))
        if until:
            line = self._pieces[-1].line
            raise BadTemplate(line, "{{end}} is missing")
        return found

    def _block(self, piece: Piece) -> Block:
        assert piece.words is not None
        block = Block(piece)
        asked = piece.words[1:]
        while True:
            inner = self.blocks(("end", "else"))
            block.branches.append((asked, inner))
            words = self._pieces[self._at].words
            assert words is not None
            self._at += 1
            if words[0] == "end":
                return block
            asked = words[2:] if words[1:2] == ("if",) else ()


class _Writer:
    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, blocks: Sequence[Block], dot: Any, names: Mapping[str, Any]) -> None:
        for block in blocks:
            piece = block.piece
            if len(self.written) > MOST_PIECES:
                raise BadTemplate(piece.line, "writes more than anybody would read")
            if block.branches and piece.words is not None:
                write = self._range if piece.words[0] == "range" else self._choose
                write(block, dot, names)
            elif piece.words is None:
                self.written.append(piece.text)
            else:
                self.written.append(_text(_value(piece.line, piece.words, dot, names)))

    def _choose(self, block: Block, dot: Any, names: Mapping[str, Any]) -> None:
        for asked, inner in block.branches:
            if not asked or _value(block.piece.line, asked, dot, names, is_asked=True):
                self.write(inner, dot, names)
                return

    def _range(self, block: Block, dot: Any, names: Mapping[str, Any]) -> None:
        line = block.piece.line
        (asked, inner), *others = block.branches
        variables: tuple[str, ...] = ()
        if ":=" in asked:
            sign = asked.index(":=")
            variables = tuple(word for word in asked[:sign] if word != ",")
            asked = asked[sign + 1 :]
        over = _value(line, asked, dot, names)
        if not isinstance(over, list | dict):
            raise BadTemplate(line, f"range over {' '.join(asked)}, which is no list")
        # Go goes through maps in the order of their keys.
        items = sorted(over.items()) if isinstance(over, dict) else list(enumerate(over))
        for key, each in items:
            bound = dict(zip(variables[::-1], (each, key), strict=False))
            self.write(inner, each, {**names, **bound})
        if not items and others:
            self.write(others[0][1], dot, names)


def _value(
    line: int, words: Sequence[str], dot: Any, names: Mapping[str, Any], *, is_asked: bool = False
) -> Any:
    """Of one operand, or of a function and its operands. `is_asked`: what is not there is False."""
    operands = list(_operands(line, words, dot, names, is_asked=is_asked))
    if not operands:
        raise BadTemplate(line, "an action that says nothing")
    function = FUNCTIONS.get(words[0])
    if function is None:
        if len(operands) > 1:
            known = ", ".join(FUNCTIONS)
            raise BadTemplate(line, f"{words[0]} is no function; there are {known}")
        return operands[0]
    try:
        return function(operands)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise BadTemplate(line, f"{' '.join(words)}: {error!r}") from error


def _operands(
    line: int, words: Sequence[str], dot: Any, names: Mapping[str, Any], *, is_asked: bool
) -> Iterator[Any]:
    at = 1 if words and words[0] in FUNCTIONS else 0
    while at < len(words):
        if words[at] == "(":
            end = _closing(line, words, at)
            yield _value(line, words[at + 1 : end], dot, names, is_asked=is_asked)
            at = end
        else:
            yield _operand(line, words[at], dot, names, is_asked=is_asked)
        at += 1


def _closing(line: int, words: Sequence[str], start: int) -> int:
    depth = 0
    for at in range(start, len(words)):
        depth += {"(": 1, ")": -1}.get(words[at], 0)
        if depth == 0:
            return at
    raise BadTemplate(line, "a bracket is not closed")


def _operand(line: int, word: str, dot: Any, names: Mapping[str, Any], *, is_asked: bool) -> Any:
    if word[0] in '"`':
        return msgspec.json.decode(word) if word[0] == '"' else word[1:-1]
    if word in ("true", "false"):
        return word == "true"
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    name, *path = word.split(".")
    if name.startswith("$") and name in names:
        found = names[name]
    elif not name and word.startswith("."):
        found = dot
    else:
        raise BadTemplate(line, f"{word} is neither a value (.Name) nor a function")
    for step in filter(None, path):
        if not isinstance(found, dict) or step not in found:
            if is_asked:
                return None
            raise BadTemplate(line, f"there is no value for {word}")
        found = found[step]
    return found


def _index(operands: list[Any]) -> Any:
    found, *path = operands
    for step in path:
        found = found[step]
    return found


def _all_equal(operands: list[Any]) -> bool:
    return any(operands[0] == each for each in operands[1:])


FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "and": lambda operands: next((each for each in operands if not each), operands[-1]),
    "or": lambda operands: next((each for each in operands if each), operands[-1]),
    "not": lambda operands: not operands[0],
    "eq": _all_equal,
    "ne": lambda operands: operands[0] != operands[1],
    "index": _index,
    "len": lambda operands: len(operands[0]),
    "quote": lambda operands: msgspec.json.encode(str(operands[0])).decode(),
}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
