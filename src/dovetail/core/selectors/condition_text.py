"""Conditions on attributes as people and query strings write them: Kubernetes' label selectors, and
comparisons of amounts.

    Kind=nvidia-gpu,memory>=30G,ecc,!mig,Family in (Pascal,Volta),Vendor!="A, B & Co"

`read` and `write` are each other's inverse. What has blanks or marks in it stands in double quotes,
where a backslash goes before a quote or a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dovetail.core.errors import Malformed
from dovetail.core.selectors.attributes import LONGEST_KEY, LONGEST_VALUE
from dovetail.core.selectors.selector import Expression, Operator, problems_of

MARKS = {
    "==": Operator.EQ,
    "=": Operator.EQ,
    "!=": Operator.NOT_IN,
    ">=": Operator.GT_EQ,
    "<=": Operator.LT_EQ,
    ">": Operator.GT,
    "<": Operator.LT,
}
WORDS = {"in": Operator.IN, "notin": Operator.NOT_IN}
SIGNS = {kind: mark for mark, kind in MARKS.items() if kind is not Operator.NOT_IN}
NAMES = {kind: name for name, kind in WORDS.items()}

BARE = re.compile(r"[^\s,()\"<>=!\\]+")
TOKEN = re.compile(rf'\s*({BARE.pattern}|"(?:[^"\\]|\\.)*"|[<>!=]=|[<>=!,()])\s*', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
PUNCTUATION = frozenset((*MARKS, "!", ",", "(", ")"))


class BadCondition(Malformed):
    """Text that is no list of conditions, with the place in it."""


def read(text: str) -> tuple[Expression, ...]:
    """The conditions, all of which are wanted. Raises BadCondition."""
    return _Reader(text).conditions()


def write(expressions: Iterable[Expression]) -> str:
    return ",".join(map(written, expressions))


def written(expression: Expression) -> str:
    key, kind = _word(expression.key), expression.operator
    match kind:
        case Operator.EXISTS:
            return key
        case Operator.DOES_NOT_EXIST:
            return f"!{key}"
        case Operator.IN | Operator.NOT_IN:
            return f"{key} {NAMES[kind]} ({','.join(map(_word, expression.values))})"
        case _:
            return f"{key}{SIGNS[kind]}{_word(expression.values[0])}"


def faults_of(expression: Expression) -> Iterator[str]:
    """Why it cannot be asked; what is too long for any attribute is not looked at further."""
    if len(expression.key) > LONGEST_KEY:
        yield f"a key of {len(expression.key)} characters; attributes have at most {LONGEST_KEY}"
    elif (longest := max(map(len, expression.values), default=0)) > LONGEST_VALUE:
        yield f"a value of {longest} characters; attributes have at most {LONGEST_VALUE}"
    else:
        yield from (f"{written(expression)}: {fault.message}" for fault in problems_of(expression))


def _word(text: str) -> str:
    if BARE.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class _Reader:
    """Goes through the text from token to token."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._token = self._found()

    def conditions(self) -> tuple[Expression, ...]:
        found = [self._condition()]
        while self._taken(","):
            found.append(self._condition())
        if self._token:
            raise self._wrong("a comma or the end")
        return tuple(found)

    def _condition(self) -> Expression:
        start = self._at
        absent = self._taken("!")
        key = self._word("a key")
        expression = Expression(key, Operator.DOES_NOT_EXIST) if absent else self._demand(key)
        for message in faults_of(expression):
            raise BadCondition(f"at character {start + 1}: {message}")
        return expression

    def _demand(self, key: str) -> Expression:
        for mark, kind in MARKS.items():
            if self._taken(mark):
                return Expression(key, kind, (self._word("a value"),))
        for name, kind in WORDS.items():
            if self._taken(name):
                return Expression(key, kind, self._values())
        return Expression(key, Operator.EXISTS)

    def _values(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._word("a value")]
        while self._taken(","):
            found.append(self._word("a value"))
        self._expect(")")
        return tuple(found)

    def _expect(self, mark: str) -> None:
        if not self._taken(mark):
            raise self._wrong(f"`{mark}`")

    def _word(self, what: str) -> str:
        token = self._token
        if not token or token in PUNCTUATION:
            raise self._wrong(what)
        self._advance()
        return ESCAPED.sub(r"\1", token[1:-1]) if token.startswith('"') else token

    def _taken(self, token: str) -> bool:
        if self._token != token:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        match = TOKEN.match(self._text, self._at)
        assert match
        self._at = match.end()
        self._token = self._found()

    def _found(self) -> str:
        match = TOKEN.match(self._text, self._at)
        if match:
            return match[1]
        if self._text[self._at :].strip():
            raise self._wrong("a key, a value or a mark; what has blanks or marks stands in quotes")
        return ""

    def _wrong(self, expected: str) -> BadCondition:
        rest = self._text[self._at :].strip()
        got = f"{rest[:20]!r}" if rest else "the end"
        return BadCondition(f"at character {self._at + 1}: expected {expected}, got {got}")
