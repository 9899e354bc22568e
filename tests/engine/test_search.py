"""The engine's answers are the oracle's, in one fixed order, whatever made the snapshot."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dovetail.core.request import Group, Request
from dovetail.engine.snapshot import WORTH_COMPACTING
from tests.engine import oracle
from tests.engine.answers import ask, carry_over, loaded
from tests.engine.forest import SHARING, Forest, grow, node
from tests.engine.strategies import (
    alike_forests,
    examples,
    forests,
    histories,
    related_requests,
    requests,
    spread_requests,
)


@examples(1000)
@given(forests(), requests())
def test_the_engine_finds_what_the_oracle_finds(forest: Forest, request: Request) -> None:
    agree(forest, request)


@examples(500)
@given(forests(), spread_requests())
def test_they_agree_on_a_group_of_several_providers(forest: Forest, request: Request) -> None:
    agree(forest, request)


@examples(500)
@given(forests(), related_requests())
def test_they_agree_on_relations_between_groups(forest: Forest, request: Request) -> None:
    agree(forest, request)


@examples(500)
@given(alike_forests(), st.one_of(requests(), related_requests(), spread_requests()))
def test_they_agree_on_trees_that_look_alike(forest: Forest, request: Request) -> None:
    agree(forest, request)


def agree(forest: Forest, request: Request) -> None:
    found = ask(loaded(forest), request)
    assert set(found) == oracle.candidates(forest, request)
    assert len(found) == len(set(found))


@examples(400)
@given(forests(), requests(), st.integers(1, 12))
def test_a_limit_cuts_the_answer_short(forest: Forest, request: Request, limit: int) -> None:
    snapshot = loaded(forest)
    everything = ask(snapshot, request)
    assert ask(snapshot, replace(request, limit=limit)) == everything[:limit]
    assert set(everything) == oracle.candidates(forest, request)


@examples(400)
@given(
    st.one_of(forests(), alike_forests()),
    st.one_of(requests(), related_requests(), spread_requests()),
)
def test_batches_and_signs_of_life_change_nothing(forest: Forest, request: Request) -> None:
    """Small forests fit one batch and are searched in no time: make both as small as can be."""
    plainly = ask(loaded(forest), request)
    with (
        patch("dovetail.engine.combine.round_robin.FIRST_BATCH", 1),
        patch("dovetail.engine.combine.round_robin.LARGEST_BATCH", 2),
        patch("dovetail.engine.combine.round_robin.LARGEST_TURN", 3),
        patch("dovetail.engine.combine.backtrack.QUESTIONS_PER_YIELD", 1),
    ):
        assert ask(loaded(forest), request) == plainly


def test_more_required_traits_than_a_word_has_bits() -> None:
    host = node(
        "cn", node("numa", VCPU=4, traits=["NET1"]), node("disk", DISK_GB=9, traits=["NET2"])
    )
    other = node("other", node("numa2", VCPU=4, traits=["NET1"]), node("disk2", DISK_GB=9))
    group = Group(
        resources={"VCPU": 1, "DISK_GB": 1},
        required=(frozenset(["NET1"]),) * 100 + (frozenset(["NET2"]),) * 100,
    )
    forest = grow(host, other)
    assert len(ask(loaded(forest), Request(groups=(group,)))) == 1
    agree(forest, Request(groups=(group,)))


@examples(400)
@given(histories(), requests(), st.sampled_from([0, WORTH_COMPACTING]))
def test_a_snapshot_kept_up_to_date_answers_like_a_new_one(
    history: list[Forest], request: Request, slack: int
) -> None:
    snapshot = loaded(history[0])
    with (
        patch("dovetail.engine.snapshot.WORTH_COMPACTING", slack),
        patch("dovetail.engine.interned_sets.WORTH_FORGETTING", slack),
    ):
        for before, after in pairwise(history):
            former = snapshot.copy()
            carry_over(snapshot, before, after)
            assert set(ask(snapshot, request)) == oracle.candidates(after, request)
            # In the same order too: replicas with different histories have to answer alike.
            assert ask(snapshot, request) == ask(loaded(after), request)
            assert set(ask(former, request)) == oracle.candidates(before, request)


def test_the_order_does_not_depend_on_how_strings_hash() -> None:
    orders = {printed_by_a_new_process(hash_seed) for hash_seed in ("1", "2", "3")}
    assert len(orders) == 1
    assert len(orders.pop().splitlines()) == 96


def printed_by_a_new_process(hash_seed: str) -> str:
    package = str(__package__)
    return subprocess.run(
        [sys.executable, "-c", f"from {package}.test_search import show; show()"],
        cwd=Path(__file__).parents[package.count(".") + 1],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def show() -> None:
    """Print a fixed answer in the engine's order, one candidate a line."""
    hosts = [
        node(
            f"cn{number}",
            *(node(f"cn{number}-nic{nic}", VF=4, traits=["NET1", "NET2"]) for nic in range(4)),
            VCPU=4,
            aggregates=["agg-1", "agg-2"],
        )
        for number in range(2)
    ]
    disks = [
        node(f"ss{number}", DISK_GB=9, traits=[SHARING], aggregates=["agg-1", "agg-2"])
        for number in range(4)
    ]
    request = Request(
        groups=(
            Group(resources={"VCPU": 1, "DISK_GB": 1}, member_of=(frozenset(["agg-1", "agg-2"]),)),
            Group(suffix="_A", resources={"VF": 1}, required=(frozenset(["NET1", "NET2"]),)),
            Group(suffix="_B", resources={"VF": 1}, forbidden=frozenset(["LARGE", "HW_NIC_ROOT"])),
        ),
        isolated=frozenset(["_A", "_B"]),
    )
    for found in ask(loaded(grow(*hosts, *disks)), request):
        print(sorted(found.allocations), sorted((s, sorted(n)) for s, n in found.mappings))
