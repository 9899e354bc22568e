"""The affinity controller: deny and allow are read both ways round, require one way."""

from __future__ import annotations

import pytest

from dovetail.core.errors import Malformed
from dovetail.intents.affinity import affinity_answer
from dovetail.intents.candidates.partitions import AppCompatibility
from dovetail.intents.group import AppAffinityRule, DeploymentGroup, GroupApp


def compatibility(*rules: AppAffinityRule) -> AppCompatibility:
    apps = tuple(GroupApp(name=name) for name in ("fwall", "analytics", "cache"))
    answer = affinity_answer(DeploymentGroup(name="g", apps=apps, affinity=rules))
    assert answer.controller == "affinity"
    assert isinstance(answer.candidates, AppCompatibility)
    return answer.candidates


def test_without_rules_every_app_may_meet_every_other() -> None:
    assert compatibility() == AppCompatibility()


def test_v5_what_one_denies_is_denied_to_both() -> None:
    rule = AppAffinityRule(app="fwall", deny=("analytics",))
    assert compatibility(rule).denied == {("analytics", "fwall")}


def test_all_that_are_not_allowed_are_denied() -> None:
    rule = AppAffinityRule(app="fwall", allow=("cache",))
    assert compatibility(rule).denied == {("analytics", "fwall")}
    alone = AppAffinityRule(app="fwall", allow=())
    assert compatibility(alone).denied == {("analytics", "fwall"), ("cache", "fwall")}


def test_both_have_to_allow_each_other_and_deny_wins() -> None:
    one_sided = (
        AppAffinityRule(app="fwall", allow=("cache", "analytics")),
        AppAffinityRule(app="cache", allow=("analytics",)),
    )
    assert compatibility(*one_sided).denied == {("cache", "fwall")}
    contradictory = AppAffinityRule(app="fwall", allow=("cache",), deny=("cache",))
    assert ("cache", "fwall") in compatibility(contradictory).denied


def test_v6_require_goes_one_way() -> None:
    rule = AppAffinityRule(app="fwall", require=("analytics", "fwall"))
    assert compatibility(rule) == AppCompatibility(required=frozenset({("fwall", "analytics")}))


@pytest.mark.parametrize("field", ["allow", "deny", "require"])
def test_an_app_that_is_not_there_is_refused(field: str) -> None:
    with pytest.raises(Malformed, match="fwall names moon"):
        compatibility(AppAffinityRule(**{"app": "fwall", field: ("moon",)}))  # type: ignore[arg-type]
