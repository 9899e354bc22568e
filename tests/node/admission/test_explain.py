"""An admission, explained as everything is."""

from __future__ import annotations

import pytest

from dovetail.core.explanation import Counted, Reason, Verdict
from dovetail.node.admission.admission_log import AdmissionRecord, HintRecord, ResourceRecord
from dovetail.node.admission.explain import explanation_of
from dovetail.node.wire.resource_plugin import ResourceAllocationInfo


def record(
    result: str, reason: str = "", words: str = "", *, later: bool = False
) -> AdmissionRecord:
    return AdmissionRecord(
        uid="u",
        namespace="default",
        name="one",
        at=0.0,
        result=result,
        reason=reason,
        words=words,
        later=later,
    )


def test_what_was_admitted_fits_and_says_what_it_got() -> None:
    admitted = record("admitted", "plugin_down", "the plugin for memory is not there")
    given = ResourceAllocationInfo(allocated_quantity=2)
    admitted.resources = [
        ResourceRecord(
            resource="cpu",
            container="main",
            requested="2",
            merged=HintRecord(nodes="1", preferred=True),
            allocation=given,
        ),
        ResourceRecord(
            resource="memory",
            container="main",
            requested="1Gi",
            failure="plugin_down",
            missing="the plugin for memory is not there",
        ),
    ]
    explanation = explanation_of(admitted)
    assert (explanation.verdict, explanation.of) == (Verdict.FITS, Counted.NODES)
    assert (explanation.total, explanation.fitting, explanation.funnel) == (1, 1, ())
    (place,) = explanation.nearest
    assert place.fits
    assert [(each.reason, each.constraint, each.met) for each in place.findings] == [
        (Reason.AMOUNT, "cpu:2", True),
        (Reason.PLUGIN_DOWN, "memory:1Gi", False),
    ]
    assert [each.provider for each in place.findings] == ["node 1", None]


@pytest.mark.parametrize(
    ("reason", "later", "verdict"),
    [
        ("plugin_refused", False, Verdict.NOT_NOW),
        ("plugin_down", True, Verdict.NOT_NOW),
        ("bad_request", False, Verdict.NEVER),
        ("conflicting_settings", False, Verdict.NEVER),
        ("plugin_garbage", True, Verdict.NOT_NOW),
    ],
)
def test_what_was_rejected_says_whether_waiting_helps(
    reason: str, later: bool, verdict: Verdict
) -> None:
    explanation = explanation_of(record("rejected", reason, "some words", later=later))
    assert (explanation.verdict, explanation.summary) == (verdict, "some words")
    (stage,), (place,) = explanation.funnel, explanation.nearest
    assert (stage.reason, stage.left, explanation.fitting) == (reason, 0, 0)
    assert place.findings[0].ever == (verdict is Verdict.NOT_NOW)


def test_a_fault_of_the_agents_own_has_a_token_too() -> None:
    (finding,) = explanation_of(record("failed", words="KeyError()")).nearest[0].findings
    assert finding.reason is Reason.AGENT_FAILED


def test_without_words_the_summary_says_what_happened() -> None:
    assert explanation_of(record("skipped")).summary == "default/one was skipped"
