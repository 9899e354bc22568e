"""Devices in the ledger: published, claimed by pods and by Placement clients, never twice."""

from __future__ import annotations

import asyncio
import uuid as uuids
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.errors import BadParent, Malformed, Refused
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.classes.documents import DeviceClass
from dovetail.ledger import (
    Ledger,
    Transaction,
    attributes,
    claims,
    inventories,
    open_ledger,
    provider_names,
    providers,
    usages,
)
from dovetail.ledger.bulk import audit
from dovetail.ledger.devices import DEVICE_CLASS, own_uuid, provider_name
from dovetail.service.claims import AlreadyClaimed, DeviceTaken
from dovetail.service.device_claims import DeviceLedger, HeldBy
from tests.ledger.world import make, new
from tests.support import databases

T = TypeVar("T")


def done(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def gpu(node: str, name: str, units: int = 1, **more: Any) -> Device:
    return Device(node=node, name=name, kind="gpu", units=units, **more)


def stock(ledger: Ledger, name: str) -> tuple[int, int, int] | None:
    """Total, reserved and used of a device; None if there is no such provider."""

    def read(tx: Transaction) -> tuple[int, int, int] | None:
        found = provider_names.find(tx, [name]).get(name)
        if found is None:
            return None
        kept = inventories.of_provider(tx, providers.get(tx, found.uuid))[DEVICE_CLASS]
        return kept.inventory.total, kept.inventory.reserved, kept.used

    return ledger.read(read).result()


def place(ledger: Ledger, name: str, units: int, consumer: str | None = None) -> str:
    """A claim as a Placement client makes it."""
    holder = consumer or new()

    def take(tx: Transaction) -> None:
        uuid = provider_names.get(tx, name).uuid
        wanted = {uuid: {DEVICE_CLASS: units}}
        claim = Claim(consumer=holder, project="p", user="u", allocations=wanted)
        claims.replace(tx, [claim])

    ledger.write(take).result()
    return holder


def generations(ledger: Ledger) -> list[tuple[Any, ...]]:
    return ledger.read(
        lambda tx: tx.rows("SELECT name, generation FROM providers ORDER BY id")
    ).result()


def log_length(ledger: Ledger) -> int:
    row = ledger.read(lambda tx: tx.row("SELECT count(*) FROM changes")).result()
    assert row
    return int(row[0])


def test_a_node_is_a_root_and_its_devices_are_below_it(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    done(fleet.publish("n1", [gpu("n1", "g0", properties={"memory": "30G"}), gpu("n1", "g1", 4)]))

    def read(tx: Transaction) -> tuple[Any, ...]:
        device = providers.get(tx, own_uuid("n1/g0"))
        return device.name, device.root_uuid, attributes.of_provider(tx, device)

    name, root, found = ledger.read(read).result()
    assert (name, root) == ("n1/g0", own_uuid("n1"))
    assert found == {
        "Kind": "gpu",
        "Vendor": "",
        "Name": "g0",
        "Health": "Healthy",
        "memory": "30G",
    }
    assert stock(ledger, "n1/g1") == (4, 0, 0)


def test_what_is_published_already_is_not_touched(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    devices = [gpu("n1", "g0"), gpu("n1", "g1", 4, healthy=False, properties={"numa": "1"})]
    done(fleet.publish("n1", devices))
    done(fleet.claim(new(), "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    before = generations(ledger), log_length(ledger)
    done(fleet.publish("n1", devices))
    done(fleet.publish("n1", devices[::-1]))
    done(fleet.publish("n2", []))
    assert (generations(ledger), log_length(ledger)) == before


def test_a_changed_property_changes_that_device_alone(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1")]))
    before = dict(generations(ledger))
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1", properties={"numa": "1"})]))
    after = dict(generations(ledger))
    assert {name for name in after if after[name] != before[name]} == {"n1/g1"}


def test_providers_that_are_there_by_these_names_are_taken_over(ledger: Ledger) -> None:
    host = make(ledger, "n1", VCPU=8)
    numa = make(ledger, "n1_numa0", host)
    card = make(ledger, "n1/g0", numa, PGPU=2)
    loose = make(ledger, "n1/g1")
    fleet = DeviceLedger(ledger)
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1")]))
    found = ledger.read(lambda tx: providers.get(tx, card.uuid)).result()
    assert (found.parent_uuid, found.root_uuid) == (numa.uuid, host.uuid)
    moved = ledger.read(lambda tx: providers.get(tx, loose.uuid)).result()
    assert moved.root_uuid == host.uuid
    done(fleet.withdraw("n1"))
    left = ledger.read(lambda tx: usages.of_provider(tx, card)).result()
    assert left == {"PGPU": 0}, "what somebody else made is not deleted"
    assert ledger.read(lambda tx: attributes.of_provider(tx, card)).result() == {}


@pytest.mark.parametrize("name", ["n1", "n1/g0"])
def test_a_provider_in_another_tree_is_left_alone(ledger: Ledger, name: str) -> None:
    make(ledger, name, make(ledger, "rack"))
    before = generations(ledger)
    with pytest.raises(BadParent, match=name):
        done(DeviceLedger(ledger).publish("n1", [gpu("n1", "g0")]))
    assert generations(ledger) == before


def test_what_is_held_outlives_the_device(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1")]))
    done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    done(fleet.withdraw("n1"))
    assert stock(ledger, "n1/g0") == (1, 1, 1)
    assert stock(ledger, "n1/g1") is None
    assert done(fleet.release(pod))
    with pytest.raises(DeviceTaken):
        done(fleet.claim(new(), "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    done(fleet.withdraw("n1"))
    assert generations(ledger) == []


def test_a_pool_shrinks_to_what_is_held_and_on_when_it_is_given_back(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "pool", 8)]))
    done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding("pool", 5)]))
    done(fleet.publish("n1", [gpu("n1", "pool", 2)]))
    assert stock(ledger, "n1/pool") == (5, 3, 5)
    assert ledger.read(audit.examine).result().faults == []
    with pytest.raises(DeviceTaken, match="'pool' of node 'n1' has fewer than 1"):
        done(fleet.claim(new(), "default", "sa", "n1", [DeviceHolding("pool", 1)]))
    done(fleet.release(pod))
    done(fleet.publish("n1", [gpu("n1", "pool", 2)]))
    assert stock(ledger, "n1/pool") == (2, 0, 0)


def test_an_unhealthy_device_is_kept_and_given_to_nobody(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "g0", 2)]))
    done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    done(fleet.publish("n1", [gpu("n1", "g0", 2, healthy=False)]))
    assert stock(ledger, "n1/g0") == (2, 2, 1)
    assert ledger.read(audit.examine).result().faults == []
    with pytest.raises(Refused):
        place(ledger, "n1/g0", 1)
    done(fleet.publish("n1", [gpu("n1", "g0", 2)]))
    done(fleet.claim(new(), "default", "sa", "n1", [DeviceHolding("g0", 1)]))


def test_a_claim_is_all_or_nothing(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1")]))
    place(ledger, "n1/g1", 1)
    with pytest.raises(DeviceTaken, match="'g1' of node 'n1'"):
        done(
            fleet.claim(
                pod, "default", "sa", "n1", [DeviceHolding("g0", 1), DeviceHolding("g1", 1)]
            )
        )
    assert stock(ledger, "n1/g0") == (1, 0, 0)
    with pytest.raises(DeviceTaken, match="there no more"):
        done(
            fleet.claim(
                pod, "default", "sa", "n1", [DeviceHolding("g0", 1), DeviceHolding("g9", 1)]
            )
        )
    done(
        fleet.claim(
            pod,
            "team",
            "robot",
            "n1",
            [
                DeviceHolding("g0", 1, "a"),
            ],
        )
    )
    with pytest.raises(AlreadyClaimed, match=pod):
        done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    held = ledger.read(lambda tx: claims.of_consumer(tx, pod)).result()
    assert held
    assert (held.project, held.user, held.consumer_type) == ("team", "robot", "POD")
    assert done(fleet.release(pod))
    assert not done(fleet.release(pod))


def test_only_the_claim_that_is_meant_is_released(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "g0"), gpu("n1", "g1")]))
    assert done(fleet.claim_of(pod)) == ()
    seen: list[Any] = []
    for device in ("g0", "g0", "g1"):
        done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding(device, 1)]))
        assert not any(done(fleet.release_claim(pod, claim)) for claim in (*seen, ()))
        seen.append(done(fleet.claim_of(pod)))
        assert done(fleet.release_claim(pod, seen[-1]))
        assert not done(fleet.release_claim(pod, seen[-1]))
    assert done(fleet.holders()) == {}


def test_what_a_pod_has_is_corrected_at_once_or_not_at_all(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    for node in ("n1", "n2"):
        done(fleet.publish(node, [gpu(node, "g0"), gpu(node, "g1")]))
    done(fleet.correct(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    held = HeldBy(is_pod=True, node="n1", devices={"g0": 1})
    assert done(fleet.holders()) == {pod: held}
    other = place(ledger, "n2/g1", 1)
    with pytest.raises(DeviceTaken, match="'g1' of node 'n2'"):
        done(
            fleet.correct(
                pod, "default", "sa", "n2", [DeviceHolding("g0", 1), DeviceHolding("g1", 1)]
            )
        )
    assert done(fleet.holders())[pod] == held
    done(fleet.release(other))
    done(
        fleet.correct(pod, "default", "sa", "n2", [DeviceHolding("g0", 1), DeviceHolding("g1", 1)])
    )
    assert done(fleet.holders())[pod].node == "n2"
    assert stock(ledger, "n1/g0") == (1, 0, 0)


def test_units_asked_for_by_several_containers_are_claimed_together(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    done(fleet.publish("n1", [gpu("n1", "pool", 4)]))
    holdings = [DeviceHolding("pool", 1, "a", "one"), DeviceHolding("pool", 2, "a", "two")]
    done(fleet.claim(pod, "default", "sa", "n1", holdings))
    assert done(fleet.holders()) == {pod: HeldBy(is_pod=True, node="n1", devices={"pool": 3})}


@pytest.mark.parametrize(
    ("node", "device", "complaint"),
    [
        ("n" * 161, gpu("n", "g0"), "161 characters; 1 to 160"),
        ("n1", gpu("n1", ""), "a device needs a name"),
        ("n1", gpu("n1", "g0", 0), "0 units; 1 to"),
        ("n1", gpu("n1", "g0", properties={"k": "v" * 1025}), "value of 'k' has 1025"),
        ("n1", gpu("n1", "g0", properties={"": "v"}), "key '' has 0 characters"),
    ],
)
def test_bad_devices_change_nothing(
    ledger: Ledger, node: str, device: Device, complaint: str
) -> None:
    fleet = DeviceLedger(ledger)
    with pytest.raises(Malformed, match=complaint):
        done(fleet.publish(node, [gpu(node, "good"), device]))
    assert generations(ledger) == []


def test_names_that_are_too_long_are_cut_and_told_in_full(ledger: Ledger) -> None:
    fleet, pod = DeviceLedger(ledger), new()
    names = ["d" * 199 + end for end in "ab"]
    done(fleet.publish("n1", [gpu("n1", name) for name in names]))
    assert len(provider_name("n1", names[0])) == 200
    done(fleet.claim(pod, "default", "sa", "n1", [DeviceHolding(names[1], 1)]))
    assert done(fleet.holders())[pod].devices == {names[1]: 1}


@pytest.mark.parametrize("names", [("east", "west"), ("east", ""), ("east/1", "east")])
def test_clusters_that_share_a_ledger_do_not_see_each_other(
    ledger: Ledger, names: tuple[str, str]
) -> None:
    east, west = (DeviceLedger(ledger, name) for name in names)
    for fleet in (east, west):
        done(fleet.publish("n1", [gpu("n1", "g0")]))
    pod = new()
    done(east.claim(pod, "default", "sa", "n1", [DeviceHolding("g0", 1)]))
    assert done(east.changes(None))[1] == {"n1": {"g0": {pod: 1}}}
    assert done(west.changes(None))[1] == {"n1": {}}
    assert list(done(east.holders())) == [pod]
    assert done(west.holders()) == {}


def test_only_the_nodes_that_changed_are_told(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    make(ledger, "elsewhere", VCPU=8)
    for node in ("n1", "n2", "n3"):
        done(fleet.publish(node, [gpu(node, "g0", 2)]))
    cursor, everything = done(fleet.changes(None))
    assert everything == {"n1": {}, "n2": {}, "n3": {}}
    other = place(ledger, "n2/g0", 2)
    cursor, told = done(fleet.changes(cursor))
    assert told == {"n2": {"g0": {other: 2}}}
    assert done(fleet.holders()) == {other: HeldBy(is_pod=False, node="n2", devices={"g0": 2})}
    done(fleet.release(other))
    done(fleet.withdraw("n2"))
    cursor, told = done(fleet.changes(cursor))
    assert told == {"n2": {}}, "a node that is gone is still named"
    assert done(fleet.changes(cursor))[1] == {}


def test_a_consumer_may_hold_devices_of_several_nodes(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    for node in ("n1", "n2"):
        done(fleet.publish(node, [gpu(node, "g0")]))
    wanted = {own_uuid(f"{node}/g0"): {DEVICE_CLASS: 1} for node in ("n1", "n2")}
    claim = Claim(consumer=new(), project="p", user="u", allocations=wanted)
    ledger.write(lambda tx: claims.replace(tx, [claim])).result()
    second = HeldBy(is_pod=False, node="n2", devices={"g0": 1})
    first = HeldBy(is_pod=False, node="n1", devices={"g0": 1}, elsewhere=(second,))
    assert done(fleet.holders()) == {claim.consumer: first}


def test_classes_are_defined_redefined_and_dropped(ledger: Ledger) -> None:
    fleet = DeviceLedger(ledger)
    one = DeviceClass("fast.nic", ((Expression("Kind", Operator.IN, ("nic",)),),))
    other = DeviceClass("fast.nic", ((Expression("speed", Operator.GT_EQ, ("40Gbps",)),),))
    done(fleet.put_class(one))
    assert done(fleet.classes()) == {"fast.nic": one}
    before = log_length(ledger)
    done(fleet.put_class(one))
    assert log_length(ledger) == before
    done(fleet.put_class(other))
    assert done(fleet.classes()) == {"fast.nic": other}
    done(fleet.drop_class("fast.nic"))
    done(fleet.drop_class("fast.nic"))
    assert done(fleet.classes()) == {}


# -- whatever happens in whatever order ------------------------------------------------------------

NODES = ("n1", "n2")
DEVICES = ("a", "b", "c")
some_devices = st.dictionaries(
    st.sampled_from(DEVICES), st.tuples(st.integers(1, 3), st.booleans()), max_size=3
)
some_units = st.dictionaries(st.sampled_from(DEVICES), st.integers(1, 2), min_size=1, max_size=2)
HOLDERS = tuple(str(uuids.UUID(int=number + 1)) for number in range(5))
a_node, a_holder = st.sampled_from(NODES), st.sampled_from(HOLDERS)


STOCKED = "SELECT p.name FROM inventories i JOIN providers p ON p.id = i.provider_id"


class AnyOrder(RuleBasedStateMachine):
    """One ledger for all examples, emptied: making tables takes longer than using them."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.fleet = DeviceLedger(self.ledger)
        self.there: dict[str, dict[str, tuple[int, bool]]] = {}
        self.held: dict[str, dict[tuple[str, str], int]] = {}
        self.cursor: str | None = None
        self.told: dict[str, dict[str, dict[str, int]]] = {}

    @initialize()
    def empty(self) -> None:
        def clear(tx: Transaction) -> None:
            for table in ("allocations", "consumers", "inventories", "provider_attributes"):
                tx.run(f"DELETE FROM {table}")
            tx.run("DELETE FROM providers WHERE parent_id IS NOT NULL")
            tx.run("DELETE FROM providers")

        self.ledger.write(clear).result()

    @rule(node=a_node, found=some_devices)
    def publish(self, node: str, found: dict[str, tuple[int, bool]]) -> None:
        devices = [gpu(node, name, units, healthy=ok) for name, (units, ok) in found.items()]
        done(self.fleet.publish(node, devices))
        self.there[node] = found

    @rule(node=a_node)
    def withdraw(self, node: str) -> None:
        done(self.fleet.withdraw(node))
        self.there.pop(node, None)

    @rule(node=a_node, holder=a_holder, units=some_units, by_pod=st.booleans())
    def claim(self, node: str, holder: str, units: dict[str, int], by_pod: bool) -> None:
        fits = holder not in self.held and all(
            self.used(node, name) + amount <= self.capacity(node, name)
            for name, amount in units.items()
        )
        taken = (self.by_pod if by_pod else self.by_client)(holder, node, units)
        assert taken == fits
        if taken:
            self.held[holder] = {(node, name): amount for name, amount in units.items()}

    def by_pod(self, uuid: str, node: str, units: dict[str, int]) -> bool:
        holdings = [DeviceHolding(name, amount) for name, amount in units.items()]
        with suppress(DeviceTaken, AlreadyClaimed):
            done(self.fleet.claim(uuid, "default", "sa", node, holdings))
            return True
        return False

    def by_client(self, uuid: str, node: str, units: dict[str, int]) -> bool:
        wanted = {own_uuid(f"{node}/{name}"): {DEVICE_CLASS: n} for name, n in units.items()}
        claim = Claim(consumer=uuid, project="p", user="u", allocations=wanted)
        # Whatever the reason: the model says whether there should be one.
        with suppress(Exception):
            self.ledger.write(lambda tx: claims.replace(tx, [claim])).result()
            return True
        return False

    @rule(holder=a_holder)
    def release(self, holder: str) -> None:
        assert done(self.fleet.release(holder)) == (holder in self.held)
        self.held.pop(holder, None)

    @rule()
    def follow(self) -> None:
        self.cursor, told = done(self.fleet.changes(self.cursor))
        for node, found in told.items():
            self.told[node] = {device: dict(held) for device, held in found.items()}
        assert {node: found for node, found in self.told.items() if found} == self.by_node()

    def used(self, node: str, name: str) -> int:
        return sum(held.get((node, name), 0) for held in self.held.values())

    def capacity(self, node: str, name: str) -> int:
        units, healthy = self.there.get(node, {}).get(name, (0, False))
        return units if healthy else 0

    def by_node(self) -> dict[str, dict[str, dict[str, int]]]:
        found: dict[str, dict[str, dict[str, int]]] = {}
        for uuid, held in self.held.items():
            for (node, name), units in held.items():
                found.setdefault(node, {}).setdefault(name, {})[uuid] = units
        return found

    @invariant()
    def holders_are_those_of_the_allocations(self) -> None:
        found: Counter[tuple[str, str, str]] = Counter()
        for uuid, each in done(self.fleet.holders()).items():
            for name, units in each.devices.items():
                found[uuid, each.node, name] = units
        assert found == Counter(
            {(uuid, *place): n for uuid, held in self.held.items() for place, n in held.items()}
        )

    @invariant()
    def nothing_is_given_away_twice(self) -> None:
        assert self.ledger.read(audit.examine).result().faults == []
        for (name,) in self.ledger.read(lambda tx: tx.rows(STOCKED)).result():
            total, reserved, used = stock(self.ledger, name) or (0, 0, 0)
            node, device = name.split("/")
            assert used == self.used(node, device) <= total
            assert total - reserved == self.capacity(node, device)


@pytest.fixture
def machine(sqlite_with_tables: str, tmp_path: Path) -> Iterator[type[AnyOrder]]:
    opened = open_ledger(databases.copied(sqlite_with_tables, tmp_path / "any.db"))
    AnyOrder.ledger = opened
    yield AnyOrder
    opened.close()


def test_any_order_of_events_keeps_the_books(machine: type[AnyOrder]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
