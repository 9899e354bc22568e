"""Implication between selectors, for any device there could be; and contradictions in themselves.

Lint asks it which classes contain others. Each key of a branch becomes an interval or a set of
values, and these are compared: sound, not complete. What is claimed here is certain; what is true
but hard to see may be missed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dovetail.core.device import RESERVED
from dovetail.core.selectors import amount
from dovetail.core.selectors.amount import Amount, Dimension
from dovetail.core.selectors.selector import (
    ORDERED,
    Condition,
    Expression,
    Operator,
    Selector,
    condition,
)

Size = int | tuple[int, ...]


class Bound(msgspec.Struct, frozen=True):
    """One end of a range; `open` if the size itself is outside."""

    size: Size
    open: bool


class Facts(msgspec.Struct, frozen=True):
    """Everything that the expressions of one selector say about one key."""

    expressions: tuple[Expression, ...]
    present: bool
    absent: bool
    allowed: frozenset[str] | None
    """The only values there can be; None if they are not listed."""
    dimension: Dimension | None
    """Of the amount there has to be."""
    low: Bound | None
    high: Bound | None
    clash: bool
    """Amounts of different dimensions are asked for."""

    @property
    def is_impossible(self) -> bool:
        if self.clash or (self.present and self.absent):
            return True
        if self.allowed is not None:
            return not self.allowed
        return _is_crossed(self.low, self.high)


class ImpliedExpression(msgspec.Struct, frozen=True):
    """An expression that may be implied."""

    expression: Expression
    met: Condition
    wanted: Amount | None


class Meaning:
    """A selector worked out, to be compared with many others."""

    def __init__(self, selector: Selector) -> None:
        worked_out = [(branch, facts_of(branch)) for branch in selector if branch]
        self.branches = [known for _, known in worked_out if not _has_contradiction(known)]
        """Those that a device could meet."""
        self._targets = [
            [ImpliedExpression(each, condition(each), _amount(each)) for each in branch]
            for branch, _ in worked_out
        ]

    @property
    def is_never(self) -> bool:
        """No device can ever be selected."""
        return not self.branches

    def implies(self, wide: Meaning) -> bool:
        """Whatever this selects the other does, too, for sure."""
        return all(
            any(_branch_implies(known, target) for target in wide._targets)
            for known in self.branches
        )


def is_impossible(branch: tuple[Expression, ...]) -> bool:
    """No device can ever meet all of these."""
    return not branch or _has_contradiction(facts_of(branch))


def _has_contradiction(known: dict[str, Facts]) -> bool:
    return any(facts.is_impossible for facts in known.values())


def facts_of(branch: tuple[Expression, ...]) -> dict[str, Facts]:
    keys = dict.fromkeys(each.key for each in branch)
    return {key: _facts(key, [each for each in branch if each.key == key]) for key in keys}


def _facts(key: str, expressions: Iterable[Expression]) -> Facts:
    said = tuple(expressions)
    absent = any(each.operator is Operator.DOES_NOT_EXIST for each in said)
    demands = [each for each in said if each.operator not in PERMIT_ABSENCE]
    amounts = [(each, wanted) for each in said if (wanted := _amount(each)) is not None]
    dimensions = {wanted.dimension for _, wanted in amounts}
    return Facts(
        said,
        bool(demands) or key in RESERVED,
        absent,
        _allowed_values(said),
        next(iter(dimensions), None),
        _bound(amounts, upper=False) if len(dimensions) == 1 else None,
        _bound(amounts, upper=True) if len(dimensions) == 1 else None,
        len(dimensions) > 1,
    )


PERMIT_ABSENCE = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
UPWARDS = (Operator.GT, Operator.GT_EQ, Operator.EQ)
DOWNWARDS = (Operator.LT, Operator.LT_EQ, Operator.EQ)
STRICT = (Operator.GT, Operator.LT)


def _amount(expression: Expression) -> Amount | None:
    """The amount it compares with; None if it compares text or nothing."""
    if expression.operator not in ORDERED and expression.operator is not Operator.EQ:
        return None
    wanted = amount.read(expression.values[0])
    compares = wanted and (expression.operator in ORDERED or wanted.has_unit)
    return wanted if compares else None


def _allowed_values(said: tuple[Expression, ...]) -> frozenset[str] | None:
    lists = [
        frozenset(each.values)
        for each in said
        if each.operator is Operator.IN or (each.operator is Operator.EQ and _amount(each) is None)
    ]
    if not lists:
        return None
    tests = [condition(each) for each in said]
    return frozenset(
        value for value in frozenset.intersection(*lists) if all(met(value) for met in tests)
    )


def _bound(amounts: list[tuple[Expression, Amount]], *, upper: bool) -> Bound | None:
    """The tightest."""
    kinds = DOWNWARDS if upper else UPWARDS
    found = [
        Bound(wanted.size, each.operator in STRICT)
        for each, wanted in amounts
        if each.operator in kinds
    ]
    if not found:
        return None
    if upper:
        return min(found, key=lambda bound: (bound.size, not bound.open))
    return max(found, key=lambda bound: (bound.size, bound.open))


def _is_crossed(low: Bound | None, high: Bound | None) -> bool:
    if low is None or high is None:
        return False
    if low.size == high.size:
        return low.open or high.open
    if low.open and high.open and isinstance(low.size, int) and isinstance(high.size, int):
        # Nothing is finer than one: between neighbours there is no room.
        return high.size - low.size <= 1
    return low.size > high.size  # type: ignore[operator]


def _branch_implies(known: dict[str, Facts], target: list[ImpliedExpression]) -> bool:
    return all(_is_implied(known.get(each.expression.key), each) for each in target)


def _is_implied(facts: Facts | None, target: ImpliedExpression) -> bool:
    kind = target.expression.operator
    if facts is None:
        return kind is Operator.EXISTS and target.expression.key in RESERVED
    if facts.absent:
        return kind in PERMIT_ABSENCE
    if kind is Operator.EXISTS:
        return facts.present
    if facts.allowed is not None:
        return all(map(target.met, facts.allowed))
    if kind is Operator.NOT_IN:
        tests = [condition(each) for each in facts.expressions]
        return all(any(not met(value) for met in tests) for value in target.expression.values)
    wanted = target.wanted
    return wanted is not None and wanted.dimension is facts.dimension and _is_within(facts, target)


def _is_within(facts: Facts, target: ImpliedExpression) -> bool:
    """The range is on the right side of the target's amount."""
    assert target.wanted is not None
    kind = target.expression.operator
    limit = Bound(target.wanted.size, kind in STRICT)
    above = kind not in UPWARDS or _is_tighter(facts.low, limit, upper=False)
    below = kind not in DOWNWARDS or _is_tighter(facts.high, limit, upper=True)
    return above and below


def _is_tighter(known: Bound | None, limit: Bound, *, upper: bool) -> bool:
    if known is None:
        return False
    if known.size == limit.size:
        return known.open or not limit.open
    smaller: bool = known.size < limit.size  # type: ignore[operator]
    return smaller if upper else not smaller
