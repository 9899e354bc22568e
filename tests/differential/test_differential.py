"""A few hundred random cases: Dovetail answers rightly, and as the real Placement does."""

from __future__ import annotations

from tests.differential.campaign import Campaign
from tests.differential.wire import Pair

CASES = 240
SEED = 2026


def test_dovetail_answers_as_the_real_placement_does(pair: Pair) -> None:
    tally = Campaign(pair, print).run(CASES, SEED)

    assert tally.cases == CASES
    assert not tally.mismatches, "\n".join(map(str, tally.mismatches))
    assert tally.defects, "no case met a defect of the reference: the questions are too tame"
