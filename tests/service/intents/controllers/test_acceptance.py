"""The acceptance scenario by all kinds of controllers at once: built in, typed, and EMCO's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.candidates.picking import Pick, pick
from dovetail.intents.controllers import CallTerms, ControllerCall, Roster
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import AppAffinityRule, DeploymentGroup
from dovetail.intents.hpa.answer import HpaAnswer, hpa_answer
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.ledger import Ledger
from dovetail.service.intents.controllers.emco import placement_callers
from dovetail.service.intents.controllers.fan_out import ControllerAnswers, ControllerFanOut
from dovetail.wire.client import GrpcEndpoint
from tests.service.intents.controllers.documented import THEIRS
from tests.service.intents.controllers.emco_side import Store
from tests.service.intents.controllers.rig import ENOUGH_SECONDS, call, controller, saying
from tests.service.intents.controllers.test_emco import Removing
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, FWALL, Scenario, base


def hpa(group: DeploymentGroup, fleet: FleetSnapshot, check: Callable[[], None]) -> HpaAnswer:
    return hpa_answer(group, fleet, HpaBudget(check=check))


def denying(app: str, *clusters: str) -> bytes:
    parts = [{"clusters": {"names": clusters, "denies": True}}]
    response = THEIRS["CandidatesResponse"](candidates=[{"apps": [{"app": app, "parts": parts}]}])
    data: bytes = response.SerializeToString()
    return data


async def answers_of(
    ledger: Ledger, scenario: Scenario, *calls: ControllerCall, etcd_port: int = 0
) -> ControllerAnswers[HpaAnswer]:
    etcd = GrpcEndpoint(host="127.0.0.1", port=etcd_port) if etcd_port else None
    controllers = ControllerFanOut(ledger, hpa, placement_callers(etcd), CallTerms(ENOUGH_SECONDS))
    try:
        found = await controllers.answers(scenario.group, scenario.fleet, Roster(placement=calls))
    finally:
        controllers.close()
    assert not found.failures
    return found


def picked(answers: ControllerAnswers[HpaAnswer], scenario: Scenario) -> Pick | NoPick:
    apps = [app.name for app in scenario.group.apps]
    combined = combine(answers.answers, apps, list(scenario.fleet.clusters))
    assert answers.hpa
    return pick(combined, answers.hpa.score_of_set)


def places(found: Pick | NoPick) -> dict[str, list[tuple[str, int]]]:
    assert isinstance(found, Pick)
    return {
        app: [(each.cluster, each.score) for each in clusters]
        for app, clusters in found.clusters.items()
    }


async def test_the_base_case(kept: Ledger) -> None:
    answers = await answers_of(kept, base())
    assert places(picked(answers, base())) == {FWALL: [(C1, 9)], ANALYTICS: [(C3, 0)]}


async def test_one_of_ours_and_one_of_emcos_have_their_say(kept: Ledger, etcd_port: int) -> None:
    """Without c1 the firewall goes to c2, and analytics has to avoid that; c3 is taken away."""
    async with (
        controller(saying(denying(FWALL, C1))) as region,
        Removing(Store(etcd_port), C3).serving() as emco,
    ):
        calls = call("region", region), call("old", emco, contract="emco")
        answers = await answers_of(kept, base(), *calls, etcd_port=etcd_port)
    found = places(picked(answers, base()))
    assert found == {FWALL: [(C2, 0)], ANALYTICS: [("p1+c4", 0)]}
    for order in permutations(answers.answers):
        apps = [app.name for app in base().group.apps]
        combined = combine(order, apps, list(base().fleet.clusters))
        assert answers.hpa
        assert places(pick(combined, answers.hpa.score_of_set)) == found


@pytest.mark.parametrize("has_generic", [True, False])
async def test_v6_together_where_generic_placement_does_not_allow_it(
    kept: Ledger, has_generic: bool
) -> None:
    rule = AppAffinityRule(app=FWALL, require=(ANALYTICS,))
    scenario = Scenario(affinity=(rule,), has_generic=has_generic)
    found = picked(await answers_of(kept, scenario), scenario)
    if has_generic:
        assert isinstance(found, NoPick)
    else:
        assert {app: [name for name, _ in each] for app, each in places(found).items()} == {
            FWALL: ["p1+c4"],
            ANALYTICS: ["p1+c4"],
        }
