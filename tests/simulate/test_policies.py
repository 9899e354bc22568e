"""Policies as they are written on the command line."""

from __future__ import annotations

import pytest

from dovetail.simulate.errors import BadPlan
from dovetail.simulate.policies import terms_of


def test_weights_are_one_unless_said() -> None:
    assert terms_of("best-fit, spread:3") == (("best-fit", 1), ("spread", 3))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("luck", "no such policy: 'luck'; there are first-fit, "),
        ("", "no such policy: ''"),
        ("pack:0", "a weight is a whole number from 1 to 1000"),
        ("pack:x", "a weight is a whole number from 1 to 1000"),
        ("pack,pack:2", "each policy may stand there only once"),
    ],
)
def test_a_bad_policy_is_refused_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(BadPlan) as caught:
        terms_of(text)
    assert complaint in str(caught.value)
