"""What is kept of a request's options, brought up to date by change, is what a new search finds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.request import Group, Request
from dovetail.engine import Search, Snapshot
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.kept_options import RequestOptions, kept_options, options_in_steps, spliced
from dovetail.engine.work import finished
from tests.engine.answers import ask, by_uuid, carry_over, loaded
from tests.engine.forest import CLASSES, SHARING, Forest, grow, node
from tests.engine.strategies import (
    claim_histories,
    examples,
    histories,
    related_requests,
    requests,
    spread_requests,
)

any_requests = st.one_of(requests(), related_requests(), spread_requests())


@examples(400)
@given(histories(), st.lists(any_requests, min_size=1, max_size=3), st.data())
def test_kept_options_are_those_of_a_new_search_after_any_history(
    history: list[Forest], asked: list[Request], data: st.DataObject
) -> None:
    """Asked now and then, so that one or several changes lie between two searches."""
    snapshot = loaded(history[0])
    for request in asked:
        ask(snapshot, request)
    for before, after in pairwise(history):
        carry_over(snapshot, before, after)
        for request in asked:
            if data.draw(st.booleans()):
                assert options_by_id(snapshot, request) == options_by_id(loaded(after), request)
                assert ask(snapshot, request) == ask(loaded(after), request)
    for request in asked:
        assert options_by_id(snapshot, request) == options_by_id(loaded(history[-1]), request)
        assert ask(snapshot, request) == ask(loaded(history[-1]), request)


@examples(200)
@given(claim_histories(), any_requests)
def test_kept_options_are_those_of_a_new_search_after_every_claim(
    history: list[Forest], asked: Request
) -> None:
    """The use of one tree changes between two searches, and nothing else."""
    snapshot = loaded(history[0])
    ask(snapshot, asked)
    for before, after in pairwise(history):
        carry_over(snapshot, before, after)
        assert options_by_id(snapshot, asked) == options_by_id(loaded(after), asked)
        assert ask(snapshot, asked) == ask(loaded(after), asked)


@given(st.sets(st.integers(0, 12)), st.integers(0, 12), st.integers(1, 6), st.data())
def test_rows_side_by_side_are_spliced_as_scattered_ones_are(
    known: set[int], first: int, count: int, data: st.DataObject
) -> None:
    changed = range(first, first + count)
    fresh = data.draw(st.sets(st.sampled_from(changed)))
    found = spliced(rows(known), rows(changed), rows(fresh))
    assert found.tolist() == sorted({*known} - {*changed} | fresh)
    assert found.dtype == np.int32


def rows(numbers: Iterable[int]) -> RowNumbers:
    return np.array(sorted(numbers), np.int32)


def options_by_id(snapshot: Snapshot, request: Request) -> object:
    """Options by ids of providers and roots, since rows depend on what changed when."""
    options = finished(options_in_steps(snapshot, by_uuid(request)))
    ids, roots = snapshot.provider_id.values, snapshot.tree_root_id.values
    slots = [
        (
            sorted(ids[slot.own].tolist()),
            sorted(zip(roots[slot.shared_tree].tolist(), ids[slot.shared_row].tolist())),  # noqa: B905
        )
        for slot in options.slots
    ]
    return slots, roots[options.trees].tolist()


def hosts(count: int) -> Forest:
    return grow(*(node(f"host{number}", VCPU=8) for number in range(count)))


CPUS = Request(groups=(Group(resources={"VCPU": 4}),))


def use(snapshot: Snapshot, provider_id: int, amount: int) -> None:
    snapshot.update_usage([(provider_id, CLASSES.index("VCPU"), amount)])


def test_a_change_of_one_tree_is_all_that_is_looked_at() -> None:
    snapshot = loaded(hosts(1000))
    assert len(ask(snapshot, CPUS)) == 1000
    use(snapshot, 7, 8)
    with patch.object(RequestOptions, "_look_at_all", side_effect=AssertionError):
        found = Search(snapshot, CPUS)
        assert len(found.trees) == 999
        use(snapshot, 7, 0)
        assert len(Search(snapshot, CPUS).trees) == 1000
    # What a search holds stays as it was.
    assert len(found.trees) == 999


def test_a_search_given_up_in_the_middle_leaves_what_was_true() -> None:
    """After any number of steps; a disk that others share makes it judge all trees again."""
    shared = node("disk", DISK_GB=50, traits=[SHARING], aggregates=["agg"])
    snapshot = loaded(
        grow(shared, *(node(f"host{at}", VCPU=8, aggregates=["agg"]) for at in range(5)))
    )
    request = Request(
        groups=(
            Group(resources={"VCPU": 4, "DISK_GB": 5}),
            Group(suffix="_A", resources={"VCPU": 1}),
        )
    )
    disk = [(1, CLASSES.index("DISK_GB"), used) for used in (0, 50)]
    before = ask(snapshot, request)
    assert len(before) == 5
    for count in range(20):
        snapshot.update_usage(disk[1:])
        steps = options_in_steps(snapshot, request)
        for _ in zip(range(count), steps):  # noqa: B905
            pass
        steps.close()
        assert ask(snapshot, request) == []
        snapshot.update_usage(disk[:1])
        steps = options_in_steps(snapshot, request)
        for _ in zip(range(count), steps):  # noqa: B905
            pass
        steps.close()
        assert ask(snapshot, request) == before


def test_what_the_last_one_shared_is_not_offered_when_it_is_used_up() -> None:
    """Nothing of the trees that it was shared with has changed, and nothing is shared any more."""
    shared = node("disk", DISK_GB=50, traits=[SHARING], aggregates=["agg"])
    host = node("host", VCPU=8, DISK_GB=50, aggregates=["agg"])
    snapshot = loaded(grow(shared, host))
    request = Request(
        groups=(
            Group(suffix="_A", resources={"VCPU": 4}),
            Group(suffix="_B", resources={"DISK_GB": 5}),
            Group(suffix="_C", resources={"DISK_GB": 5}),
        )
    )
    assert len(ask(snapshot, request)) == 4
    snapshot.update_usage([(1, CLASSES.index("DISK_GB"), 50)])
    assert len(ask(snapshot, request)) == 1


def test_more_changes_than_the_journal_remembers_are_taken_in() -> None:
    with patch("dovetail.engine.journal.MOST_NOTES", 4):
        snapshot = loaded(hosts(20))
        assert len(ask(snapshot, CPUS)) == 20
        for provider_id in range(1, 15):
            use(snapshot, provider_id, 8)
        assert len(ask(snapshot, CPUS)) == 6


def test_many_shapes_are_kept_within_so_many_bytes() -> None:
    snapshot = loaded(hosts(1000))
    with patch("dovetail.engine.kept_options.MOST_BYTES", 100_000):
        for amount in range(1, 9):
            request = Request(groups=(Group(resources={"VCPU": amount}),))
            assert len(ask(snapshot, request)) == 1000
            assert kept_options(snapshot).size <= 100_000
    assert 0 < len(kept_options(snapshot)) < 8


def test_what_hundreds_of_groups_leave_behind_is_reckoned_by_size() -> None:
    snapshot = loaded(hosts(10))
    few = finished(options_in_steps(snapshot, CPUS)).size
    many = Request(groups=tuple(Group(suffix=f"_{at}", resources={"VCPU": 1}) for at in range(500)))
    assert finished(options_in_steps(snapshot, many)).size > few + 500 * 1000


def test_slots_that_ask_for_the_same_are_looked_for_once() -> None:
    snapshot = loaded(hosts(10))
    many = Request(groups=tuple(Group(suffix=f"_{at}", resources={"VCPU": 1}) for at in range(100)))
    slots = finished(options_in_steps(snapshot, many)).slots
    assert len({id(slot.own) for slot in slots}) == 1
    assert np.array_equal(slots[0].own, slots[-1].own)


def test_what_offers_are_made_of_is_not_kept_with_their_combinations() -> None:
    """Columns are as long as the fleet, and each claim makes new ones."""
    hosts = (node(f"host{n}", node(f"nic{n}", VF=2), VCPU=8) for n in range(5))
    snapshot = loaded(grow(*hosts))
    groups = tuple(Group(suffix=suffix, resources={"VF": 1}) for suffix in ("1", "2"))
    two = Request(groups=groups, limit=1)
    ask(snapshot, two)
    slots = finished(options_in_steps(snapshot, two)).slots
    assert slots is not None
    past = [weakref.ref(slot.own) for slot in slots]
    del slots
    first = int(snapshot.provider_id.values[1])
    snapshot.update_usage([(first, CLASSES.index("VF"), 2)])
    ask(snapshot, two)
    gc.collect()
    assert [each() for each in past] == [None, None]
