"""Rankings where other trees serve: whose tree is measured, and who is offered what first."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.core.request import Group, Request
from dovetail.engine.inventories import RowNumbers
from dovetail.engine.rank import RankedSearch, Ranking, Typical, best
from tests.engine.answers import loaded
from tests.engine.forest import SHARING, Forest, grow, node

HOSTS = 12


def pooled(pool_first: bool) -> Forest:
    """A host with a device that serves others, of which there are none, and a pool for the host."""
    pool = node("pool", VF=2, traits=[SHARING], aggregates=["a"])
    device = node("device", FPGA=2, traits=[SHARING], aggregates=["b"])
    host = node("host", node("nic"), node("disk"), device, VCPU=8, aggregates=["a"])
    return grow(*([pool, host] if pool_first else [host, pool]))


@pytest.mark.parametrize("policy", ["fragmentation", "scarcity"])
def test_what_comes_from_sharing_providers_alone_is_taken_from_the_tree_that_has_it(
    policy: str,
) -> None:
    """The tree of such a candidate is that of its first row, wherever its other rows are."""
    groups = Group(suffix="_0", resources={"VF": 1}), Group(suffix="_1", resources={"FPGA": 1})
    whole = Request(groups=(Group(suffix="_1", resources={"FPGA": 2}),))
    ranking = Ranking(((policy, 1),), Typical(((whole, 1),)))
    scores = [
        best(loaded(pooled(pool_first)), Request(groups=groups), ranking).scores.tolist()
        for pool_first in (False, True)
    ]
    assert scores[0] == scores[1] == [50], "the pool has no device that could be lost"


def sharing_a_pool() -> Forest:
    pool = node("pool", DISK_GB=10**6, traits=[SHARING], aggregates=["a"])
    return grow(pool, *(node(f"h{at}", VCPU=8, aggregates=["a"]) for at in range(HOSTS)))


@pytest.mark.parametrize("disk", [{}, {"DISK_GB": 5}])
@pytest.mark.parametrize("policy", ["spread", "fragmentation"])
@pytest.mark.parametrize("limit", [1, 3, None])
def test_trees_with_equal_scores_come_in_the_order_that_was_asked_for(
    disk: dict[str, int], policy: str, limit: int | None
) -> None:
    """Whether a pool serves them or not; who asks at once is offered different ones so."""
    request = Request(groups=(Group(resources={"VCPU": 1, **disk}),), rank=((policy, 1),))
    search = RankedSearch(loaded(sharing_a_pool()), request, Typical())
    turned = np.roll(np.arange(1, HOSTS + 1, dtype=np.int32), 5)

    def turn(trees: RowNumbers) -> RowNumbers:
        assert sorted(trees.tolist()) == sorted(turned.tolist())
        return turned

    search.turn_to(turn)
    blocks = [block for block in search.candidates(limit) if block is not None]
    assert np.concatenate(blocks)[:, 0].tolist() == turned[:limit].tolist()
