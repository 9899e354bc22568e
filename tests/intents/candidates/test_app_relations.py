"""App-to-app relations: apart both ways round, required transitively, and when they contradict."""

from __future__ import annotations

from dovetail.intents.candidates.app_relations import AppRelations, relations_of
from dovetail.intents.candidates.partitions import AppCompatibility

APPS = ("a", "b", "c", "d")
Pairs = set[tuple[str, str]]


def relations(denied: Pairs | None = None, required: Pairs | None = None) -> AppRelations:
    answer = AppCompatibility(denied=frozenset(denied or ()), required=frozenset(required or ()))
    return relations_of([answer], APPS)


def test_apart_is_symmetric() -> None:
    assert relations({("a", "b")}).denied == (0b0010, 0b0001, 0, 0)


def test_required_is_transitive_and_not_symmetric() -> None:
    found = relations(required={("a", "b"), ("b", "c"), ("c", "b")})
    assert found.required == (0b0111, 0b0110, 0b0110, 0b1000)


def test_answers_are_merged() -> None:
    one = AppCompatibility(denied=frozenset({("a", "b")}))
    two = AppCompatibility(denied=frozenset({("b", "c")}), required=frozenset({("a", "d")}))
    assert relations_of([one, two], APPS) == relations_of([two, one], APPS)
    assert relations_of([one, two], APPS).denied[1] == 0b0101


def test_an_app_that_is_not_there() -> None:
    """Nobody meets it, so it is denied nothing; but who requires it cannot be anywhere."""
    assert relations({("a", "x")}).is_empty
    found = list(relations(required={("a", "x")}).contradictions())
    assert [(each.apps, each.words) for each in found] == [
        (("a",), "a requires x, which is no app of the group")
    ]


def test_what_an_app_requires_it_must_not_meet() -> None:
    found = list(relations({("a", "c")}, {("a", "b"), ("b", "c")}).contradictions())
    assert [each.words for each in found] == ["a requires c, and must not share a cluster with it"]


def test_what_an_app_requires_must_not_meet() -> None:
    found = list(relations({("b", "c")}, {("a", "b"), ("a", "c")}).contradictions())
    assert [(each.apps, each.words) for each in found] == [
        (("a", "b", "c"), "a requires b and c, which must not share a cluster")
    ]
