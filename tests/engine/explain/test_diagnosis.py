"""What people read of a diagnosis: names in place of UUIDs."""

from __future__ import annotations

from uuid import UUID

from dovetail.core.explanation import (
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Reason,
    Stage,
    Verdict,
)
from dovetail.engine.explain.diagnosis import in_names
from tests.engine.test_giving_way import most_calls

KNOWN, UNKNOWN, OTHER = (str(UUID(int=number << 64)) for number in (10, 11, 12))


def explanation(*words: str) -> Explanation:
    findings = [
        Finding(
            reason=Reason.IN_TREE,
            group="",
            constraint=KNOWN,
            met=False,
            ever=False,
            provider=None,
            provider_uuid=None,
            words=text,
        )
        for text in words
    ]
    stage = Stage(reason=Reason.IN_TREE, group="", constraint=KNOWN, left=0, words=words[0])
    return Explanation(
        verdict=Verdict.NEVER,
        summary=words[0],
        of=Counted.HOSTS,
        total=1,
        hosts=1,
        fitting=0,
        funnel=(stage,),
        nearest=(PlaceFindings(name=None, uuid=KNOWN, fits=False, findings=tuple(findings)),),
        relaxations=(),
    )


def told(text: str, **names: str) -> str:
    found = in_names(explanation(text), {**names, KNOWN: "rack1", OTHER: "rack2"})
    assert found.summary == found.funnel[0].words == found.nearest[0].findings[0].words
    return found.summary


def test_uuids_of_known_providers_become_names_wherever_they_are() -> None:
    assert told(f"not in {KNOWN}") == "not in rack1"
    assert told(f"in_tree={KNOWN},{OTHER}; {KNOWN}.") == "in_tree=rack1,rack2; rack1."
    assert told(f"a{KNOWN}b") == "arack1b"
    assert told("no provider") == "no provider"


def test_uuids_of_others_stay() -> None:
    assert told(f"aggregate {UNKNOWN} beside {KNOWN}") == f"aggregate {UNKNOWN} beside rack1"


def test_a_name_is_told_as_it_is_although_it_reads_like_another_uuid() -> None:
    assert told(f"not in {UNKNOWN}", **{UNKNOWN: OTHER}) == f"not in {OTHER}"


def test_names_are_not_tried_one_by_one() -> None:
    """A hundred texts and a thousand names are not a hundred thousand looks."""
    long = explanation(*[f"not in {KNOWN}"] * 100)
    names = {str(UUID(int=number)): f"n{number}" for number in range(1000)}
    assert most_calls(map(in_names, [long], [names])) < 10_000
