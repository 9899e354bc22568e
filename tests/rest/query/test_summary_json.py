"""Provider summaries, filled into templates: what each provider has, whatever changed before."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given

from dovetail.engine import Snapshot
from dovetail.rest.query.summary_json import SummaryWriter, trees_json
from tests.engine.answers import carry_over, loaded
from tests.engine.forest import CLASSES, Forest, Provider, grow, node, uuid_of
from tests.engine.strategies import examples, histories


def told(writer: SummaryWriter, snapshot: Snapshot) -> dict[str, Any]:
    """All providers, as an answer with candidates in every tree tells them."""
    live = np.flatnonzero(snapshot.tree_size.values > 0)
    texts = writer.trees(snapshot, live.astype(np.int32))
    found: dict[str, Any] = json.loads(b"{%s}" % b"".join(texts)[:-1])
    return found


def expected(forest: Forest) -> dict[str, Any]:
    return {uuid_of(each.name): summary(forest, each) for each in forest}


def summary(forest: Forest, provider: Provider) -> dict[str, Any]:
    parent = None if provider.parent is None else forest.providers[provider.parent]
    return {
        "resources": {
            name: {
                "capacity": int((held.total - held.reserved) * held.ratio),
                "used": held.used,
            }
            for name, held in provider.inventories.items()
        },
        "traits": sorted(provider.traits, key=str),
        "parent_provider_uuid": parent and uuid_of(parent.name),
        "root_provider_uuid": uuid_of(forest.root(provider).name),
    }


def sorted_traits(summaries: dict[str, Any]) -> dict[str, Any]:
    """Traits come in the order of their ids, which says nothing."""
    return {uuid: {**each, "traits": sorted(each["traits"])} for uuid, each in summaries.items()}


@examples(300)
@given(histories())
def test_summaries_are_true_after_any_history(history: list[Forest]) -> None:
    snapshot, writer = loaded(history[0]), SummaryWriter()
    assert sorted_traits(told(writer, snapshot)) == expected(history[0])
    for before, after in pairwise(history):
        carry_over(snapshot, before, after)
        assert sorted_traits(told(writer, snapshot)) == expected(after)


@examples(300)
@given(histories())
def test_summaries_are_true_of_fleets_that_are_loaded_anew(history: list[Forest]) -> None:
    """After very many changes, and for another server of the same process."""
    writer = SummaryWriter()
    for forest in history:
        assert sorted_traits(told(writer, loaded(forest))) == expected(forest)


def test_what_did_not_change_is_not_written_again() -> None:
    snapshot, writer = loaded(grow(*(node(f"host{n}", VCPU=8) for n in range(3)))), SummaryWriter()
    first = list(writer.trees(snapshot, np.arange(3, dtype=np.int32)))
    snapshot.update_usage([(2, CLASSES.index("VCPU"), 5)])
    again = list(writer.trees(snapshot, np.arange(3, dtype=np.int32)))
    assert [mine is theirs for mine, theirs in zip(first, again, strict=True)] == [
        True,
        False,
        True,
    ]
    assert b'"used":5' in again[1]


def test_trees_of_one_layout_share_a_template() -> None:
    """Hosts that differ in amounts and names alone."""
    hosts = (node(f"host{n}", node(f"numa{n}", VCPU=n + 1), VF=2 * n + 1) for n in range(50))
    snapshot = loaded(grow(*hosts, node("other", VF=1)))
    assert len(list(trees_json(snapshot, np.arange(51, dtype=np.int32)))) == 51
    templates = snapshot.cached("summary templates", lambda: None)
    assert templates is not None
    assert len(templates) == 2
