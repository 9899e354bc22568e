"""Claims: what is granted, what is refused, and what a refusal leaves behind (nothing)."""

from __future__ import annotations

from concurrent.futures import wait
from functools import partial

import pytest

from dovetail.core.claim import Claim
from dovetail.core.errors import (
    CapacityExceeded,
    ClassNotFound,
    NoInventory,
    StaleGeneration,
    UnitsViolated,
)
from dovetail.core.inventory import Inventory
from dovetail.ledger import Ledger, claims, inventories
from dovetail.ledger.claims import UnknownProvider
from tests.ledger.world import claim, get, make, new, summed, used


def test_a_claim_is_held_and_counted(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8, MEMORY_MB=1024)
    consumer = claim(ledger, (host, {"VCPU": 2, "MEMORY_MB": 512}))
    holding = ledger.read(lambda tx: claims.of_consumer(tx, consumer)).result()
    assert holding is not None
    assert {held.class_name: held.amount for held in holding.held} == {
        "VCPU": 2,
        "MEMORY_MB": 512,
    }
    assert holding.generation == 1
    assert used(ledger, host) == {"VCPU": 2, "MEMORY_MB": 512}
    assert get(ledger, host).generation == host.generation + 1


@pytest.mark.parametrize(
    ("stock", "amount", "error"),
    [
        (Inventory(total=4), 5, CapacityExceeded),
        (Inventory(total=4, reserved=1), 4, CapacityExceeded),
        (Inventory(total=3, allocation_ratio=1.5), 5, CapacityExceeded),
        (Inventory(total=8, max_unit=2), 3, UnitsViolated),
        (Inventory(total=8, min_unit=2), 1, UnitsViolated),
        (Inventory(total=8, step_size=2), 3, UnitsViolated),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(
    ledger: Ledger, stock: Inventory, amount: int, error: type[Exception]
) -> None:
    host = make(ledger, "host", VCPU=stock, DISK_GB=10)
    with pytest.raises(error):
        claim(ledger, (host, {"DISK_GB": 1, "VCPU": amount}))
    assert used(ledger, host) == {"VCPU": 0, "DISK_GB": 0}
    assert get(ledger, host).generation == host.generation
    assert ledger.read(lambda tx: tx.rows("SELECT 1 FROM consumers")).result() == []


def test_of_several_inventories_that_lack_room_the_first_asked_for_is_named(
    ledger: Ledger,
) -> None:
    """As Placement does, whatever the order in which providers and inventories were made."""
    first, second = (make(ledger, name, MEMORY_MB=4, PCPU=4) for name in ("first", "second"))
    orders = [
        [(second, {"PCPU": 9, "MEMORY_MB": 9}), (first, {"MEMORY_MB": 9})],
        [(second, {"MEMORY_MB": 9, "PCPU": 9}), (first, {"PCPU": 9})],
        [(first, {"PCPU": 9}), (second, {"MEMORY_MB": 9, "PCPU": 9})],
    ]
    for wanted in orders:
        (host, amounts), _ = wanted
        with pytest.raises(CapacityExceeded) as refusal:
            claim(ledger, *wanted)
        assert str(refusal.value) == str(CapacityExceeded(next(iter(amounts)), host.uuid))


def test_a_fractional_ratio_counts_whole_units(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=Inventory(total=3, allocation_ratio=1.5))
    claim(ledger, (host, {"VCPU": 4}))
    assert used(ledger, host) == {"VCPU": 4}


def test_unknown_provider_class_or_inventory(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8)
    with pytest.raises(NoInventory):
        claim(ledger, (host, {"DISK_GB": 1}))
    with pytest.raises(ClassNotFound):
        claim(ledger, (host, {"NO_SUCH": 1}))
    ghost = Claim(consumer=new(), project="p", user="u", allocations={new(): {"VCPU": 1}})
    with pytest.raises(UnknownProvider):
        ledger.write(lambda tx: claims.replace(tx, [ghost])).result()


def test_generations_guard_a_consumer(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8)
    consumer = claim(ledger, (host, {"VCPU": 1}))
    with pytest.raises(StaleGeneration, match="expected 1 but got None"):
        claim(ledger, (host, {"VCPU": 2}), consumer=consumer)
    claim(ledger, (host, {"VCPU": 2}), consumer=consumer, generation=1)
    with pytest.raises(StaleGeneration, match="expected null but got 5"):
        claim(ledger, (host, {"VCPU": 2}), generation=5)
    assert used(ledger, host) == {"VCPU": 2}


def test_an_empty_claim_releases_and_forgets_the_consumer(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8)
    consumer = claim(ledger, (host, {"VCPU": 3}))
    before = get(ledger, host).generation
    claim(ledger, consumer=consumer, generation=1)
    assert used(ledger, host) == {"VCPU": 0}
    assert get(ledger, host).generation == before + 1
    claim(ledger, (host, {"VCPU": 1}), consumer=consumer)


def test_an_empty_claim_of_a_stranger_leaves_no_trace(ledger: Ledger) -> None:
    stranger = claim(ledger)
    assert ledger.read(lambda tx: tx.rows("SELECT 1 FROM consumers")).result() == []
    host = make(ledger, "host", VCPU=8)
    claim(ledger, (host, {"VCPU": 1}), consumer=stranger)


def test_release_leaves_generations_of_providers_alone(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8)
    consumer = claim(ledger, (host, {"VCPU": 3}))
    before = get(ledger, host).generation
    assert ledger.write(lambda tx: claims.release(tx, consumer)).result()
    assert not ledger.write(lambda tx: claims.release(tx, consumer)).result()
    assert get(ledger, host).generation == before
    assert used(ledger, host) == {"VCPU": 0}


def test_an_overfull_inventory_lets_claims_shrink_but_not_grow(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8)
    consumer = claim(ledger, (host, {"VCPU": 8}))
    ledger.write(
        lambda tx: inventories.assign(tx, get(ledger, host), {"VCPU": Inventory(total=4)})
    ).result()
    with pytest.raises(CapacityExceeded):
        claim(ledger, (host, {"VCPU": 1}))
    claim(ledger, (host, {"VCPU": 6}), consumer=consumer, generation=1)
    assert used(ledger, host) == {"VCPU": 6}


def test_several_claims_are_granted_together_or_not_at_all(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=4)
    wanted = [
        Claim(consumer=new(), project="p", user="u", allocations={host.uuid: {"VCPU": 3}})
        for _ in range(2)
    ]
    with pytest.raises(CapacityExceeded):
        ledger.write(lambda tx: claims.replace(tx, wanted)).result()
    assert used(ledger, host) == {"VCPU": 0}


def test_many_at_once_never_exceed_the_capacity(ledger: Ledger) -> None:
    hosts = [make(ledger, f"host{n}", VCPU=5) for n in range(3)]
    wanted = [
        Claim(
            consumer=new(),
            project="p",
            user="u",
            allocations={host.uuid: {"VCPU": 1} for host in (hosts[n % 3], hosts[(n + 1) % 3])},
        )
        for n in range(60)
    ]
    futures = [ledger.write(partial(claims.replace, claims=[one])) for one in wanted]
    wait(futures)
    granted = sum(future.exception() is None for future in futures)
    assert all(isinstance(future.exception(), CapacityExceeded | type(None)) for future in futures)
    assert granted >= 6
    assert all(used(ledger, host)["VCPU"] <= 5 for host in hosts)
    assert summed(ledger) == {(host.uuid, "VCPU"): used(ledger, host)["VCPU"] for host in hosts}
