"""CEL's logic in disjunctive normal form: an OR of ANDs, as selectors are."""

from __future__ import annotations

from dovetail.core.selectors.selector import Operator
from dovetail.devices.classes.cel.syntax import BadCel, Chain, Literal, Node, Not
from dovetail.devices.classes.dra.atoms import Atom, atoms

Branch = tuple[Atom, ...]

MOST_BRANCHES = 256
"""Alternatives. Those of an AND of ORs multiply."""


def branches_of(node: Node, wanted: bool) -> list[Branch]:
    """The ways in which the node can be as wanted. Raises BadCel."""
    match node:
        case Literal(bool(value)):
            return [()] if value is wanted else []
        case Not(operand):
            return branches_of(operand, not wanted)
        case Chain(operator, operands, at):
            together = (operator == "&&") is wanted
            found: list[Branch] = [()] if together else []
            for operand in operands:
                more = branches_of(operand, wanted)
                found = both(found, more, at) if together else either(found, more)
            return found
    return [*atoms(node, wanted)]


def both(left: list[Branch], right: list[Branch], at: int) -> list[Branch]:
    if len(left) * len(right) > MOST_BRANCHES:
        raise BadCel(at, f"this makes more than {MOST_BRANCHES} alternatives")
    return [(*one, *other) for one in left for other in right]


def either(left: list[Branch], right: list[Branch]) -> list[Branch]:
    """`!there || value != x` is what NotIn says; as two alternatives it would grow on and on."""
    found = [*left]
    for branch in right:
        at = next((at for at, other in enumerate(found) if _completes(other, branch)), None)
        if at is None:
            found.append(branch)
        else:
            found[at] = branch[1:] if len(branch) > 1 else found[at][1:]
    return found


def _completes(one: Branch, other: Branch) -> bool:
    """One says the key is missing, the other that it is there and none of some values."""
    short, long = sorted((one, other), key=len)
    if len(short) != 1 or len(long) != 2:
        return False
    missing, there, differs = short[0].expression, long[0].expression, long[1].expression
    return (
        missing is not None
        and missing.operator is Operator.DOES_NOT_EXIST
        and there is None
        and differs is not None
        and differs.operator is Operator.NOT_IN
        and missing.key == differs.key == long[0].place.key
    )
