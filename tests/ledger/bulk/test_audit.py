"""An audit finds every kind of damage, and heals only what follows from the rest."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from dovetail.core.claim import Claim
from dovetail.ledger import Ledger, claims
from dovetail.ledger.bulk import audit
from dovetail.ledger.database.protocol import Transaction
from tests.ledger.world import claim, make, new, used
from tests.support import databases

WAITING = """SELECT 1 FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""
Harm = Callable[[str], None]


@pytest.fixture
def harm(database_url: str) -> Harm:
    """Does what no operation of the ledger does; references are not looked at meanwhile."""

    def run(statement: str) -> None:
        with databases.connected(database_url) as connection:
            if database_url.startswith("postgresql"):
                connection.execute("SET session_replication_role = replica")
            connection.execute(statement)

    return run


def faults(ledger: Ledger) -> list[tuple[str, bool]]:
    found = ledger.read(audit.examine).result()
    return [(fault.kind, fault.healable) for fault in found.faults]


@pytest.fixture
def world(ledger: Ledger) -> Ledger:
    """Two hosts, one with a child, and a consumer on them."""
    host = make(ledger, "host", DISK_GB=100)
    numa = make(ledger, "numa", host, VCPU=8, MEMORY_MB=4096)
    make(ledger, "other", VCPU=8)
    claim(ledger, (host, {"DISK_GB": 10}), (numa, {"VCPU": 2}))
    return ledger


def test_a_sound_ledger_has_no_faults(world: Ledger) -> None:
    found = world.read(audit.examine).result()
    assert found.faults == []
    assert found.checked == {"providers": 3, "inventories": 4, "consumers": 1, "allocations": 2}
    assert world.write(audit.heal).result()[0] == []


OTHER = "(SELECT id FROM providers WHERE name = 'other')"
NUMA = "(SELECT id FROM providers WHERE name = 'numa')"
EMPTY_CONSUMER = f"""INSERT INTO consumers (uuid, generation, project_id, user_id)
    VALUES ('{new()}', 1, 'p', 'u')"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (EMPTY_CONSUMER, [("empty_consumer", True)]),
        ("UPDATE inventories SET used = used + 1 WHERE total = 8", [("miscount", True)] * 2),
        ("UPDATE allocations SET used = 1 WHERE used = 2", [("miscount", True)]),
        ("UPDATE inventories SET total = 5 WHERE total = 100", [("overcommit", False)]),
        ("DELETE FROM inventories WHERE total = 100", [("lost_inventory", False)]),
        ("DELETE FROM consumers", [("lost_consumer", False)] * 2),
        (
            f"UPDATE providers SET root_id = {OTHER} WHERE name = 'numa'",
            [("wrong_root", True)],
        ),
        (
            "UPDATE providers SET root_id = 999 WHERE name = 'other'",
            [("wrong_root", True)],
        ),
        ("DELETE FROM providers WHERE name = 'host'", [("lost_provider", False)]),
        (
            f"UPDATE providers SET parent_id = {NUMA} WHERE name = 'host'",
            [("loop", False)] * 2,
        ),
        ("UPDATE providers SET parent_id = 999 WHERE name = 'numa'", [("lost_parent", False)]),
    ],
)
def test_every_kind_of_damage_is_found_and_healed_if_that_is_safe(
    world: Ledger, harm: Harm, statement: str, expected: list[tuple[str, bool]]
) -> None:
    harm(statement)
    found = faults(world)
    if "name = 'host'" in statement and statement.startswith("DELETE"):
        # The child and the inventories of the host are left behind as well.
        expected = [*expected, ("lost_parent", False)]
    assert found == expected
    healed, left = world.write(audit.heal).result()
    assert [fault.kind for fault in healed] == [kind for kind, healable in found if healable]
    assert [(fault.kind, fault.healable) for fault in left.faults] == [
        fault for fault in found if not fault[1]
    ]
    assert faults(world) == [fault for fault in found if not fault[1]]


def test_a_healed_count_is_seen_by_those_who_follow(ledger: Ledger, harm: Harm) -> None:
    host = make(ledger, "host", VCPU=8)
    claim(ledger, (host, {"VCPU": 3}))
    before = ledger.poll(None).result()
    assert before
    harm("UPDATE inventories SET used = 8")
    ledger.write(audit.heal).result()
    assert used(ledger, host) == {"VCPU": 3}
    after = ledger.poll(before.cursor).result()
    assert after
    assert [amount for _, _, amount in after.usage] == [3]


def test_healing_waits_for_a_claim_that_is_under_way(ledger: Ledger) -> None:
    """A count made before the claim and written after it would forget the claim."""
    host = make(ledger, "host", VCPU=100)
    claim(ledger, (host, {"VCPU": 1}))
    ledger.write(lambda tx: tx.run("UPDATE inventories SET used = 7")).result()
    written, go_on = Event(), Event()

    def slowly(tx: Transaction) -> None:
        wanted = Claim(consumer=new(), project="p", user="u", allocations={host.uuid: {"VCPU": 3}})
        claims.replace(tx, [wanted])
        written.set()
        go_on.wait()

    claiming = ledger.write(slowly)
    written.wait()
    healing = ledger.write(audit.heal)
    if ledger.read(lambda tx: tx.for_update).result():
        # Operations take turns on SQLite; here one has to be seen waiting for the other.
        while not ledger.read(lambda tx: tx.rows(WAITING)).result():
            pass
    go_on.set()
    claiming.result()
    healing.result()
    assert used(ledger, host) == {"VCPU": 4}


def test_words_name_what_is_wrong(world: Ledger, harm: Harm) -> None:
    harm("UPDATE inventories SET used = 9 WHERE total = 100")
    (fault,) = world.read(audit.examine).result().faults
    assert fault.words == "DISK_GB of host: 9 is recorded as used, allocations say 10"
    assert (fault.provider, fault.resource_class) == ("host", "DISK_GB")
