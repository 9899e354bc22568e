"""Rankings as people write them."""

from __future__ import annotations

import pytest

from dovetail.engine.rank.parse import BadRanking, parse_ranking


def test_weights_are_one_unless_said() -> None:
    assert parse_ranking("best-fit, spread:3") == (("best-fit", 1), ("spread", 3))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("luck", "No such policy: 'luck'. There are: first-fit, "),
        ("", "No such policy: ''"),
        ("pack:0", "whole number from 1 to 1000"),
        ("pack:x", "whole number from 1 to 1000"),
        ("pack,pack:2", "may stand in a ranking only once"),
    ],
)
def test_a_bad_policy_is_refused_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(BadRanking) as caught:
        parse_ranking(text)
    assert complaint in str(caught.value)
