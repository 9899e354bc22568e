"""Parser of CEL: expressions as trees, by recursive descent.

Every node knows where it stands in the text. Depth is bounded, so hostile text ends, too.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dovetail.devices.classes.cel.tokens import BadCel, Token, tokens

__all__ = [
    "BadCel",
    "Binary",
    "CallExpression",
    "Chain",
    "Index",
    "Items",
    "Literal",
    "Name",
    "Node",
    "Not",
    "Select",
    "parse",
]

RELATIONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
DEEPEST = 64
"""Levels of brackets; negations and fields in a row."""


class Literal(msgspec.Struct, frozen=True):
    value: str | int | bool
    at: int


class Name(msgspec.Struct, frozen=True):
    name: str
    at: int


class Select(msgspec.Struct, frozen=True):
    """operand.field"""

    operand: Node
    field: str
    at: int


class Index(msgspec.Struct, frozen=True):
    """operand[key]"""

    operand: Node
    key: Node
    at: int


class CallExpression(msgspec.Struct, frozen=True):
    """function(arguments), or target.function(arguments)"""

    function: str
    target: Node | None
    arguments: tuple[Node, ...]
    at: int


class Items(msgspec.Struct, frozen=True):
    """[items, ...]"""

    items: tuple[Node, ...]
    at: int


class Not(msgspec.Struct, frozen=True):
    operand: Node
    at: int


class Chain(msgspec.Struct, frozen=True):
    """All operands with && or || between them: long ones are wide, not deep."""

    operator: str
    operands: tuple[Node, ...]
    at: int


class Binary(msgspec.Struct, frozen=True):
    """A comparison. `at` is where the operator stands."""

    operator: str
    left: Node
    right: Node
    at: int


Node = Literal | Name | Select | Index | CallExpression | Items | Not | Binary | Chain


def parse(text: str) -> Node:
    """Raises BadCel."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._either()
        if self._token.kind != "end":
            raise self._wrong("an operator or the end")
        return node

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise BadCel(self._token.at, f"brackets go deeper than {DEEPEST} levels")
        node = self._chain("||", self._both)
        self._depth -= 1
        return node

    def _both(self) -> Node:
        return self._chain("&&", self._relation)

    def _chain(self, operator: str, operand: Callable[[], Node]) -> Node:
        at = self._token.at
        operands = [operand()]
        while self._taken(operator):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Chain(operator, tuple(operands), at)

    def _relation(self) -> Node:
        node = self._negation()
        if not self._at_relation:
            return node
        token = self._advance()
        node = Binary(str(token.value), node, self._negation(), token.at)
        if self._at_relation:
            raise BadCel(self._token.at, "a comparison of a comparison is not understood here")
        return node

    @property
    def _at_relation(self) -> bool:
        return self._token.kind in ("mark", "name") and self._token.value in RELATIONS

    def _negation(self) -> Node:
        marks = []
        while token := self._taken("!"):
            marks.append(token.at)
        if len(marks) > DEEPEST:
            raise BadCel(marks[-1], f"more than {DEEPEST} negations in a row")
        node = self._member()
        for at in reversed(marks):
            node = Not(node, at)
        return node

    def _member(self) -> Node:
        node = self._primary()
        for _ in range(DEEPEST):
            if token := self._taken("."):
                field = self._name("a field's name")
                if self._taken("("):
                    node = CallExpression(field, node, self._list(")"), token.at)
                else:
                    node = Select(node, field, token.at)
            elif token := self._taken("["):
                node = Index(node, self._either(), token.at)
                self._expect("]")
            else:
                return node
        raise BadCel(self._token.at, f"more than {DEEPEST} fields in a row")

    def _primary(self) -> Node:
        token = self._token
        if token.kind in ("text", "number"):
            self._advance()
            return Literal(token.value, token.at)
        if self._taken("-"):
            return Literal(-self._number(), token.at)
        if self._taken("("):
            node = self._either()
            self._expect(")")
            return node
        if self._taken("["):
            return Items(self._list("]"), token.at)
        name = self._name("a value")
        if name in ("true", "false"):
            return Literal(name == "true", token.at)
        if self._taken("("):
            return CallExpression(name, None, self._list(")"), token.at)
        return Name(name, token.at)

    def _list(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._taken(end):
            if found:
                self._expect(",")
            found.append(self._either())
        return tuple(found)

    def _name(self, what: str) -> str:
        if self._token.kind != "name" or self._token.value == "in":
            raise self._wrong(what)
        return str(self._advance().value)

    def _number(self) -> int:
        if self._token.kind != "number":
            raise self._wrong("a number")
        value = self._advance().value
        assert isinstance(value, int)
        return value

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _taken(self, mark: str) -> Token | None:
        if self._token.kind == "mark" and self._token.value == mark:
            return self._advance()
        return None

    def _expect(self, mark: str) -> None:
        if not self._taken(mark):
            raise self._wrong(f"`{mark}`")

    def _wrong(self, expected: str) -> BadCel:
        got = "the end" if self._token.kind == "end" else repr(self._token.value)
        return BadCel(self._token.at, f"expected {expected}, got {got}")
