"""Claims under way: counted where places are looked for, exactly as long as the ledger has not."""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from dovetail.engine import Snapshot
from dovetail.ledger import Ledger, open_ledger
from dovetail.service.claiming.under_way import Place, free_at
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import claim, make

HOSTS, TOTAL = 5, 20


class ClaimFailed(Exception):
    pass


def free(snapshot: Snapshot, provider_id: int) -> int:
    found = free_at(snapshot, provider_id, snapshot.class_ids["VCPU"])
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(8))
async def test_the_views_differ_by_what_is_under_way(tmp_path: Path, seed: int) -> None:
    """Claims begin and end in any order while others write and trees come and go."""
    chance = random.Random(seed)
    ledger = open_ledger(f"sqlite:///{tmp_path}/x.db")
    hosts = [make(ledger, f"host{number}", VCPU=TOTAL) for number in range(HOSTS)]
    keeper = SnapshotKeeper(ledger)
    await keeper.fresh()
    open_claims: list[tuple[ExitStack, int]] = []
    used = [0] * HOSTS
    pending = [0] * HOSTS
    for step in range(150):
        match chance.randrange(6):
            case 0 | 1 if sum(pending) < TOTAL:
                at = chance.randrange(HOSTS)
                stack = ExitStack()
                stack.enter_context(keeper.claiming(vcpu(hosts[at].id, await keeper.fresh())))
                open_claims.append((stack, at))
                pending[at] += 1
            case 2 if open_claims:
                stack, at = open_claims.pop(chance.randrange(len(open_claims)))
                pending[at] -= 1
                if used[at] < TOTAL and chance.random() < 0.6:
                    claim(ledger, (hosts[at], {"VCPU": 1}))
                    used[at] += 1
                    stack.close()
                else:
                    with suppress(ClaimFailed), stack:
                        raise ClaimFailed
            case 3 if used[at := chance.randrange(HOSTS)] < TOTAL:
                claim(ledger, (hosts[at], {"VCPU": 1}))
                used[at] += 1
            case 4:
                make(ledger, f"other{step}", hosts[chance.randrange(HOSTS)], DISK_GB=1)
        if chance.random() < 0.5:
            snapshot = await keeper.fresh()
            assert [free(snapshot, host.id) for host in hosts] == [TOTAL - each for each in used]
        if chance.random() < 0.5:
            snapshot = await keeper.fresh_for_claims()
            left = [TOTAL - a - b for a, b in zip(used, pending, strict=True)]
            assert [free(snapshot, host.id) for host in hosts] == left
    ledger.close()


def vcpu(provider_id: int, snapshot: Snapshot) -> dict[Place, int]:
    return {(provider_id, snapshot.class_ids["VCPU"]): 1}


async def test_a_held_snapshot_does_not_learn_of_claims(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=2)
    keeper = SnapshotKeeper(ledger)
    held = await keeper.fresh_for_claims()
    with keeper.held(held), keeper.claiming(vcpu(host.id, held)):
        assert free(held, host.id) == 2
        assert free(await keeper.fresh_for_claims(), host.id) == 1


async def test_a_claim_that_was_granted_counts_until_it_shows(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=2)
    keeper = SnapshotKeeper(ledger)
    snapshot = await keeper.fresh_for_claims()
    with keeper.claiming(vcpu(host.id, snapshot)):
        claim(ledger, (host, {"VCPU": 1}))
    assert not keeper.has_room({(host.id, snapshot.class_ids["VCPU"]): 2})
    assert free(await keeper.fresh_for_claims(), host.id) == 1
    assert keeper.claims_under_way.taken == {}
