"""Topology hints of a counted resource (CPUs, bytes) from what is free on each NUMA node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from dovetail.node.hints.hint import Hint, mask_of

Amount = int | Fraction


def masks_with_enough(
    free: Mapping[int, Amount],
    wanted: Amount,
    total: Mapping[int, Amount],
    *,
    must: Iterable[int] = (),
) -> list[Hint]:
    """Every set of nodes with enough free; fewest nodes first, none if nowhere is enough.

    Preferred are those with as many nodes as it would take if nothing were in use (`total`): so on
    a machine that is busy, a container waits for its node rather than being spread, if the policy
    says so. `must`: nodes that have to be among them, for they hold what is to be reused.
    """
    needed = fewest(total, wanted)
    held = mask_of(must)
    sums: dict[int, Amount] = {0: 0}
    for node in sorted(free):
        sums |= {mask | 1 << node: amount + free[node] for mask, amount in sums.items()}
    enough = [
        mask for mask, amount in sums.items() if mask and amount >= wanted and mask & held == held
    ]
    return [
        Hint(mask, preferred=mask.bit_count() == needed)
        for mask in sorted(enough, key=lambda mask: (mask.bit_count(), mask))
    ]


def fewest(total: Mapping[int, Amount], wanted: Amount) -> int | None:
    """How many nodes have this much at least; None if all together have less."""
    amount: Amount = 0
    for count, each in enumerate(sorted(total.values(), reverse=True), 1):
        amount += each
        if amount >= wanted:
            return count
    return None
