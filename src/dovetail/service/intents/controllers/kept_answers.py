"""Last answers of controllers, kept in the ledger for those whose policy falls back on them.

The fan-out keeps an answer when it comes and looks for one when none does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from dovetail.aio.thread_results import result_of
from dovetail.intents.candidates.partitions import (
    AppCompatibility,
    ClusterRefusal,
    ControllerAnswer,
    PartitionCandidates,
)
from dovetail.intents.group import DeploymentGroup
from dovetail.intents.names import ClusterName
from dovetail.ledger import Ledger
from dovetail.ledger.intents import controller_answers


class AnswerDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer as it is kept: what a union is, is told by the name of its field."""

    apps: tuple[str, ...]
    """That it was asked about: of others it says nothing."""
    partitions: PartitionCandidates | None = None
    compatibility: AppCompatibility | None = None
    scores: Mapping[str, Mapping[ClusterName, int]] = {}
    refusals: Mapping[str, Mapping[ClusterName, ClusterRefusal]] = {}


async def keep(ledger: Ledger, group: DeploymentGroup, answer: ControllerAnswer) -> None:
    document = msgspec.json.encode(document_of(answer, [app.name for app in group.apps])).decode()
    await result_of(
        ledger.write(
            lambda tx: controller_answers.keep(tx, answer.controller, group.name, document)
        )
    )


async def last_answer(
    ledger: Ledger, group: DeploymentGroup, controller: str
) -> tuple[ControllerAnswer, int] | None:
    """With the time it was given; None if there is none about all apps of the group."""
    found = await result_of(
        ledger.read(lambda tx: controller_answers.find(tx, controller, group.name))
    )
    if found is None:
        return None
    document = msgspec.json.decode(found.document, type=AnswerDocument)
    if not {app.name for app in group.apps} <= set(document.apps):
        return None
    return answer_in(document, controller), found.answered_at


def document_of(answer: ControllerAnswer, apps: Collection[str]) -> AnswerDocument:
    found = answer.candidates
    return AnswerDocument(
        apps=tuple(apps),
        partitions=found if isinstance(found, PartitionCandidates) else None,
        compatibility=found if isinstance(found, AppCompatibility) else None,
        scores=answer.scores,
        refusals=answer.refusals,
    )


def answer_in(document: AnswerDocument, controller: str) -> ControllerAnswer:
    candidates = document.partitions or document.compatibility
    assert candidates is not None, "an answer is one or the other"
    return ControllerAnswer(
        controller=controller,
        candidates=candidates,
        scores=document.scores,
        refusals=document.refusals,
        is_last_known=True,
    )
