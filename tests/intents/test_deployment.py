"""The state machine of deployments, as a table of what may follow what."""

from __future__ import annotations

import pytest

from dovetail.intents.deployment import (
    ALLOWED,
    DeploymentAction,
    DeploymentState,
    ObjectKey,
    ObjectState,
    apply_rank,
    leaving,
    outcome,
    state_after,
    wrong_state_words,
)

S, A, Obj = DeploymentState, DeploymentAction, ObjectState


@pytest.mark.parametrize(
    ("action", "state", "after"),
    [
        (A.APPROVE, S.CREATED, S.APPROVED),
        (A.APPROVE, S.TERMINATED, S.APPROVED),
        (A.INSTANTIATE, S.CREATED, None),
        (A.INSTANTIATE, S.APPROVED, S.INSTANTIATING),
        (A.INSTANTIATE, S.INSTANTIATED, None),
        (A.INSTANTIATE, S.INSTANTIATE_FAILED, S.INSTANTIATING),
        (A.UPDATE, S.APPROVED, None),
        (A.UPDATE, S.INSTANTIATED, S.UPDATING),
        (A.TERMINATE, S.APPROVED, None),
        (A.TERMINATE, S.UPDATING, S.TERMINATING),
        (A.TERMINATE, S.TERMINATED, None),
    ],
)
def test_what_an_action_leads_to(
    action: DeploymentAction, state: DeploymentState, after: DeploymentState | None
) -> None:
    assert state_after(action, state) is after


def test_whatever_runs_can_be_terminated() -> None:
    running = {S.INSTANTIATING, S.INSTANTIATED, S.UPDATING, S.UPDATE_FAILED}
    assert running <= ALLOWED[A.TERMINATE].keys()


def test_a_wrong_state_says_which_would_be_right() -> None:
    assert "Approved" in wrong_state_words(A.INSTANTIATE, S.CREATED)


@pytest.mark.parametrize(
    ("state", "objects", "late", "refused", "after"),
    [
        (S.INSTANTIATING, [Obj.APPLIED, Obj.APPLYING], False, False, S.INSTANTIATING),
        (S.INSTANTIATING, [Obj.APPLIED, Obj.SKIPPED], False, False, S.INSTANTIATED),
        (S.INSTANTIATING, [], False, False, S.INSTANTIATED),
        (S.INSTANTIATING, [Obj.APPLIED], True, False, S.INSTANTIATED),
        (S.INSTANTIATING, [Obj.APPLIED, Obj.PENDING], True, False, S.INSTANTIATE_FAILED),
        (S.INSTANTIATING, [Obj.APPLIED, Obj.APPLYING], False, True, S.INSTANTIATE_FAILED),
        (S.UPDATING, [Obj.APPLIED, Obj.DELETING], False, False, S.UPDATING),
        (S.UPDATING, [Obj.APPLIED, Obj.DELETED], False, False, S.INSTANTIATED),
        (S.UPDATING, [Obj.APPLIED, Obj.REPLACING], True, False, S.UPDATE_FAILED),
        (S.TERMINATING, [Obj.DELETED, Obj.DELETING], True, True, S.TERMINATING),
        (S.TERMINATING, [Obj.DELETED], False, False, S.TERMINATED),
        (S.INSTANTIATE_FAILED, [Obj.DELETED], True, False, S.INSTANTIATE_FAILED),
    ],
)
def test_what_becomes_of_a_deployment(
    state: DeploymentState,
    objects: list[ObjectState],
    late: bool,
    refused: bool,
    after: DeploymentState,
) -> None:
    assert outcome(state, objects, is_late=late, is_refused=refused) is after


def test_what_was_never_sent_is_gone_at_once_and_the_rest_has_to_be_deleted() -> None:
    assert leaving(Obj.PENDING) is leaving(Obj.SKIPPED) is Obj.DELETED
    assert leaving(Obj.APPLYING) is leaving(Obj.APPLIED) is leaving(Obj.REPLACING) is Obj.DELETING


def test_what_others_rest_on_comes_first() -> None:
    kinds = ["Deployment", "ConfigMap", "Namespace", "Ingress", "Widget", "Service"]
    in_order = ["Namespace", "ConfigMap", "Service", "Widget", "Deployment", "Ingress"]
    assert sorted(kinds, key=apply_rank) == in_order


def test_a_key_is_read_as_it_was_written() -> None:
    key = ObjectKey("apps/v1", "Deployment", "default", "web")
    assert ObjectKey.of_text(key.text) == key
    assert ObjectKey.of_text("v1/ConfigMap//x") == ObjectKey("v1", "ConfigMap", "", "x")
