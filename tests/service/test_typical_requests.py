"""What the fleet is typically asked for, learned from requests."""

from __future__ import annotations

from dovetail.core.request import Group, Request
from dovetail.engine.rank import Typical
from dovetail.service import typical_requests
from dovetail.service.typical_requests import TypicalRequests


def asking(vcpu: int, in_tree: str | None = None) -> Request:
    return Request(groups=(Group(resources={"VCPU": vcpu}, in_tree=in_tree),))


def counts(learned: TypicalRequests) -> dict[int, int]:
    return {r.groups[0].resources["VCPU"]: count for r, count in learned.typical.requests}


def test_nothing_is_typical_of_a_new_server() -> None:
    assert TypicalRequests().typical.requests == ()


def test_the_first_requests_are_learned_from_at_once() -> None:
    learned = TypicalRequests()
    learned.learn(asking(4))
    assert counts(learned) == {4: 1}


def test_frequent_requests_lead_and_rare_ones_are_left_out() -> None:
    learned = TypicalRequests()
    for number in range(1024):
        learned.learn(asking(1 if number % 4 else 2))
        if number % 100 == 0:
            learned.learn(asking(3))
    found = counts(learned)
    assert list(found) == [1, 2]
    assert found[1] > found[2]


def test_the_summary_stays_the_same_object_while_demand_does() -> None:
    learned = TypicalRequests()
    for _ in range(600):
        learned.learn(asking(1))
    first = learned.typical
    for _ in range(3000):
        learned.learn(asking(1))
    assert learned.typical is first
    for _ in range(3000):
        learned.learn(asking(2))
    assert set(counts(learned)) == {1, 2}


def test_requests_for_one_host_are_no_sign_of_demand() -> None:
    learned = TypicalRequests()
    learned.learn(asking(4, in_tree="somewhere"))
    assert learned.typical.requests == ()


def test_what_is_given_is_not_learned_over() -> None:
    given = Typical.of([(asking(4), 1)])
    learned = TypicalRequests(given)
    learned.learn(asking(8))
    assert learned.typical is given


def test_what_is_remembered_is_bounded() -> None:
    learned = TypicalRequests()
    for _ in range(3):
        learned.learn(asking(1))
    for number in range(3 * typical_requests.MOST_SHAPES):
        learned.learn(asking(10 + number))
    assert len(learned._counts) <= typical_requests.MOST_SHAPES


def test_large_requests_are_not_remembered_without_end() -> None:
    """A caller chooses how large its requests are; a thousand of the largest would take as many
    megabytes."""
    learned = TypicalRequests()
    for number in range(200):
        sets = [
            frozenset(f"CUSTOM_{number}_{group}_{n}" for n in range(30)) for group in range(100)
        ]
        groups = tuple(Group(suffix=f"_{n}", required=(sets[n],)) for n in range(100))
        learned.learn(Request(groups=groups))
    learned.learn(asking(1))
    assert names_remembered(learned) <= typical_requests.MOST_NAMES


def names_remembered(learned: TypicalRequests) -> int:
    return sum(
        len(names)
        for request, _ in learned._counts.values()
        for group in request.groups
        for names in group.required
    )
