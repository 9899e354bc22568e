"""Explains an admission at the gate; `dovetail agent explain` shows it.

Nothing of this is worked out before somebody asks, but for a refusal by the topology policy, whose
words the kubelet gets.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from dovetail.core.explanation import (
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Reason,
    Stage,
    Verdict,
)
from dovetail.node.admission.admission_log import AdmissionRecord, ResourceRecord

ADMITTED = ("admitted", "skipped")
NOT_BY_WAITING = frozenset(
    (
        Reason.ANNOTATION_NOT_TRUSTED,
        Reason.BAD_REQUEST,
        Reason.CANNOT_INJECT,
        Reason.CONFLICTING_SETTINGS,
        Reason.PLUGIN_GARBAGE,
        Reason.RESIZE_OF_POD,
        Reason.UNKNOWN_PROPERTY,
    )
)
"""Whatever is freed, these stay: the pod, a plugin or the node has to change."""


def explanation_of(record: AdmissionRecord) -> Explanation:
    if record.explanation is not None:
        return replace(record.explanation, summary=record.words)
    admitted = record.result in ADMITTED
    rejection = tuple(_rejection(record))
    findings = (*rejection, *map(_of_resource, record.resources))
    return Explanation(
        verdict=_verdict(record),
        summary=record.words or f"{record.namespace}/{record.name} was {record.result}",
        of=Counted.NODES,
        total=1,
        fitting=int(admitted),
        funnel=tuple(
            Stage(
                reason=each.reason,
                group=each.group,
                constraint=each.constraint,
                left=0,
                words=each.words,
            )
            for each in rejection
        ),
        nearest=(PlaceFindings(name=None, uuid=None, fits=admitted, findings=findings),),
        relaxations=(),
    )


def _verdict(record: AdmissionRecord) -> Verdict:
    if record.result in ADMITTED:
        return Verdict.FITS
    never = record.reason in NOT_BY_WAITING and not record.later
    return Verdict.NEVER if never else Verdict.NOT_NOW


def _rejection(record: AdmissionRecord) -> Iterator[Finding]:
    """What kept the pod out, if anything did."""
    if record.result in ADMITTED:
        return
    yield Finding(
        reason=Reason(record.reason) if record.reason else Reason.AGENT_FAILED,
        group=record.container or None,
        constraint=f"{record.namespace}/{record.name}",
        met=False,
        ever=_verdict(record) is not Verdict.NEVER,
        provider=None,
        provider_uuid=None,
        words=record.words,
    )


def _of_resource(record: ResourceRecord) -> Finding:
    """What a container got of a resource, or has to do without."""
    nodes = None if record.merged is None else record.merged.nodes
    return Finding(
        reason=Reason(record.failure) if record.failure else Reason.AMOUNT,
        group=record.container or None,
        constraint=f"{record.resource}:{record.requested}",
        met=record.allocation is not None,
        ever=True,
        provider=None if nodes is None else f"node {nodes}",
        provider_uuid=None,
        words=record.missing or f"{record.resource}: wants {record.requested}",
    )
