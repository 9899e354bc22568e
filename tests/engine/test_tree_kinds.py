"""Trees of a kind are alike; what is worked out for one of each kind is what each would have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.columns import FIRST_TABLE
from dovetail.core.request import Affinity, Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.combine.offers import offers_in_steps
from dovetail.engine.inventories import NEVER
from dovetail.engine.journal import Journal
from dovetail.engine.kept_options import feasible_among
from dovetail.engine.rank import Ranking, Typical, best
from dovetail.engine.rank.best_per_tree import BestPerTree
from dovetail.engine.tree_kinds import kinds_in_steps, warm
from dovetail.engine.work import finished
from tests.engine import oracle
from tests.engine.answers import ask, by_uuid, carry_over, loaded
from tests.engine.forest import Forest, grow, node
from tests.engine.rank.test_ranking import ids, ranked, terms, typicals
from tests.engine.strategies import (
    alike_forests,
    examples,
    forests,
    histories,
    related_requests,
    requests,
    spread_requests,
)

any_requests = st.one_of(requests(), related_requests(), spread_requests())
fleets = st.one_of(forests(), alike_forests())


@contextmanager
def always_by_kind() -> Iterator[None]:
    """However few trees there are."""
    with (
        patch("dovetail.engine.combine.combiner.WORTH_KINDS", 0),
        patch("dovetail.engine.rank.best_per_tree.WORTH_KINDS", 0),
        patch("dovetail.engine.tree_kinds.WORTH_SPREADING", 0),
        patch("dovetail.engine.combine.combiner.LARGEST_BATCH", 1),
        patch("dovetail.engine.rank.trees.ROWS_PER_SEARCH", 0),
    ):
        yield


def warmed(forest: Forest) -> Snapshot:
    """As those who take in a fleet leave it."""
    snapshot = loaded(forest)
    warm(snapshot)
    return snapshot


def state(snapshot: Snapshot, tree: int) -> Hashable:
    """All that is known of a tree but for names and ids."""
    rows = snapshot.rows_of(tree)
    return tuple(
        (
            int(snapshot.parent.values[row]) - rows.start if row != rows.start else None,
            frozenset(snapshot.trait_sets.members(int(snapshot.traits.values[row]))),
            frozenset(snapshot.aggregate_sets.members(int(snapshot.aggregates.values[row]))),
            frozenset(snapshot.attribute_sets.members(int(snapshot.attributes.values[row]))),
            tuple(inventories_of(snapshot, row)),
        )
        for row in rows
    )


def inventories_of(snapshot: Snapshot, row: int) -> Iterator[Hashable]:
    for class_id, inventories in sorted(snapshot.inventories.items()):
        at = inventories.entry(row)
        if at is not None and inventories.free.values[at] != NEVER:
            yield class_id, *(int(column.values[at]) for column in inventories.columns()[1:])


def states_by_kind(snapshot: Snapshot) -> dict[int, set[Hashable]]:
    found = defaultdict[int, set[Hashable]](set)
    kinds = finished(kinds_in_steps(snapshot))
    assert len(kinds) == snapshot.tree_size.size
    for tree, kind in enumerate(kinds.tolist()):
        if snapshot.tree_size.values[tree]:
            found[kind].add(state(snapshot, tree))
    return found


@examples(200)
@given(fleets)
def test_a_kind_is_all_the_trees_that_are_alike(forest: Forest) -> None:
    kinds = states_by_kind(loaded(forest))
    assert all(len(states) == 1 for states in kinds.values())
    assert len({next(iter(states)) for states in kinds.values()}) == len(kinds)


@examples(200)
@given(histories(), st.data())
def test_trees_of_a_kind_stay_alike_after_any_history(
    history: list[Forest], data: st.DataObject
) -> None:
    """Asked now and then, so that one or several changes lie between two looks."""
    snapshot = loaded(history[0])
    for before, after in pairwise(history):
        carry_over(snapshot, before, after)
        if data.draw(st.booleans()):
            assert all(len(states) == 1 for states in states_by_kind(snapshot).values())
    assert all(len(states) == 1 for states in states_by_kind(snapshot).values())


def test_what_differs_in_one_amount_is_of_another_kind() -> None:
    forest = grow(*(node(f"host{at}", node(f"numa{at}", VCPU=8)) for at in range(3)))
    snapshot = loaded(forest)
    assert len(states_by_kind(snapshot)) == 1
    numa = int(snapshot.provider_id.values[snapshot.rows_of(1)[1]])
    (class_id,) = snapshot.inventories
    snapshot.update_usage([(numa, class_id, 1)])
    kinds = finished(kinds_in_steps(snapshot)).tolist()
    assert kinds[0] == kinds[2] != kinds[1]


def test_changes_that_the_journal_forgot_are_taken_in() -> None:
    snapshot = loaded(grow(*(node(f"host{at}", VCPU=8) for at in range(3))))
    finished(kinds_in_steps(snapshot))
    (class_id,) = snapshot.inventories
    host = int(snapshot.provider_id.values[snapshot.rows_of(1)[0]])
    with patch("dovetail.engine.journal.MOST_NOTES", 1):
        for used in range(1, 6):
            snapshot.update_usage([(host, class_id, used)])
    assert isinstance(snapshot.journal, Journal)
    assert snapshot.journal.since(0) is None
    assert len(states_by_kind(snapshot)) == 2


@examples(300)
@given(fleets, any_requests)
def test_candidates_found_by_kind_are_those_of_the_oracle(forest: Forest, request: Request) -> None:
    with always_by_kind():
        found = ask(warmed(forest), request)
    assert len(found) == len(set(found))
    assert set(found) == oracle.candidates(forest, request)


@examples(300)
@given(fleets, any_requests)
def test_their_order_is_that_of_trees_looked_at_one_by_one(
    forest: Forest, request: Request
) -> None:
    one_by_one = ask(loaded(forest), request)
    with always_by_kind():
        assert ask(warmed(forest), request) == one_by_one


@examples(200)
@given(histories(), any_requests.map(by_uuid), terms, typicals)
def test_ranked_by_kind_the_answer_is_the_beginning_of_the_whole(
    history: list[Forest], request: Request, by: tuple[tuple[str, int], ...], typical: Typical
) -> None:
    """The whole answer scores every candidate of every tree."""
    snapshot, ranking = warmed(history[0]), Ranking(by, typical)
    for before, after in pairwise([history[0], *history]):
        carry_over(snapshot, before, after)
        whole = ranked(loaded(after), request, ranking)
        for limit in (1, 3):
            with always_by_kind():
                found = best(snapshot, request, ranking, limit)
            assert ids(snapshot, found.rows.tolist()) == whole[:limit]


def test_nothing_fits_is_decided_once_per_kind() -> None:
    """However many hosts are alike: one is combined for all of them."""
    hosts = [
        node(f"h{at}", node(f"a{at}", VCPU=1), node(f"b{at}", MEMORY_MB=1)) for at in range(200)
    ]
    request = Request(
        groups=(
            Group(suffix="_A", resources={"VCPU": 1}),
            Group(suffix="_B", resources={"MEMORY_MB": 1}),
        ),
        affinities=(Affinity(together=frozenset({"_A", "_B"})),),
    )
    snapshot = loaded(grow(*hosts))
    with patch("dovetail.engine.combine.combiner.offers_in_steps", wraps=offers_in_steps) as offers:
        assert ask(snapshot, request) == []
    looked_at = [len(call.args[3]) for call in offers.call_args_list]
    assert sum(looked_at) < 100


def alike_hosts(count: int) -> Snapshot:
    hosts = (node(f"h{at}", node(f"n{at}", VCPU=8, MEMORY_MB=64)) for at in range(count))
    return warmed(grow(*hosts))


def test_what_fits_is_decided_once_per_kind() -> None:
    """However many hosts are alike, options are looked at in one of each kind."""
    request = Request(groups=(Group(suffix="_A", resources={"VCPU": 8, "MEMORY_MB": 64}),))
    snapshot = alike_hosts(100)
    with patch("dovetail.engine.kept_options.feasible_among", wraps=feasible_among) as looked:
        assert len(ask(snapshot, request)) == 100
    assert [len(call.args[3]) for call in looked.call_args_list] == [1]


def test_trees_of_a_kind_share_a_line_of_the_best() -> None:
    """What is kept of a ranking grows with the kinds, and with the trees that changed since."""
    group = Group(suffix="_A", resources={"VCPU": 1})
    request, snapshot = Request(groups=(group,)), alike_hosts(100)
    ranking = Ranking((("scarcity", 1),))
    made: list[BestPerTree] = []

    def noting(slots: int, policies: int, exact: bool) -> BestPerTree:
        made.append(BestPerTree(slots, policies, exact))
        return made[-1]

    numa = [int(snapshot.provider_id.values[snapshot.rows_of(at)[1]]) for at in range(100)]
    (vcpu,) = (id_ for id_, name in snapshot.class_names.items() if name == "VCPU")
    with patch("dovetail.engine.rank.best_per_tree.BestPerTree", noting):
        first = best(snapshot, request, ranking, 1)
        assert (len(made), made[0].lines) == (1, 1)
        for turn in range(1, 8):
            for each in numa:
                snapshot.update_usage([(each, vcpu, turn)])
                best(snapshot, request, ranking, 1)
    assert len(first.rows) == len(made) == 1
    assert made[0].lines <= 2 * 100 + FIRST_TABLE
