"""A fleet that was loaded can be written down again, and is the same."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.core.errors import NotFound
from dovetail.core.fleet import FleetPlan, FleetReader
from dovetail.ledger import Ledger, Transaction, open_ledger, providers
from dovetail.ledger.bulk import fleet
from dovetail.ledger.bulk.dump import dump
from tests.ledger.world import claim, make
from tests.rest.fleets import numa_hosts, tree, uid

CONTENTS = (
    "allocations",
    "consumers",
    "inventories",
    "provider_traits",
    "provider_aggregates",
    "provider_attributes",
    "providers",
)


def plan_of(document: bytes) -> FleetPlan:
    reader = FleetReader()
    reader.feed(document)
    plan = reader.finish()
    for consumer in plan.consumers:
        consumer.allocations.sort()
    return plan


def dumped(ledger: Ledger, *trees: str) -> bytes:
    pieces: list[bytes] = []
    ledger.read(lambda tx: dump(tx, pieces.append, trees)).result()
    return b"".join(pieces)


def load(ledger: Ledger, document: bytes) -> None:
    plan = plan_of(document)
    ledger.write(lambda tx: fleet.load(tx, plan)).result()


def lines(*items: Any) -> bytes:
    return "\n".join(map(json.dumps, items)).encode()


def empty(tx: Transaction) -> None:
    for table in CONTENTS:
        tx.run(f"DELETE FROM {table}")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """One ledger for many examples: making the tables takes longer than using them."""
    path: Path = tmp_path_factory.mktemp("dump") / "ledger.db"
    opened = open_ledger(f"sqlite:///{path}")
    yield opened
    opened.close()


CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
INVENTORY = st.one_of(
    st.integers(1, 50),
    st.fixed_dictionaries(
        {"total": st.integers(10, 1000)},
        optional={
            "reserved": st.integers(0, 10),
            "min_unit": st.integers(1, 3),
            "max_unit": st.integers(3, 2**31 - 1),
            "step_size": st.integers(1, 4),
            "allocation_ratio": st.floats(0.5, 16, width=32),
        },
    ),
)


@st.composite
def fleets(draw: st.DrawFn) -> bytes:
    """Trees of any shape, and consumers that hold a unit here and there."""
    names = draw(
        st.lists(st.text(CHARACTERS, min_size=1, max_size=20), min_size=1, max_size=8, unique=True)
    )
    nodes: list[dict[str, Any]] = []
    roots: list[dict[str, Any]] = []
    for name in names:
        node: dict[str, Any] = {
            "name": name,
            "uuid": str(uuid.UUID(int=draw(st.integers(0, 2**64)) << 32 | len(nodes))),
            "traits": draw(
                st.lists(st.sampled_from(["HW_NUMA_ROOT", "CUSTOM_A", "CUSTOM_B"]), max_size=3)
            ),
            "aggregates": draw(st.lists(st.uuids().map(str), max_size=2)),
            "attributes": draw(
                st.dictionaries(
                    st.text(CHARACTERS, min_size=1, max_size=5),
                    st.text(CHARACTERS, max_size=5) | st.just("\\u0000"),
                    max_size=2,
                )
            ),
            "inventories": draw(
                st.dictionaries(
                    st.sampled_from(["VCPU", "MEMORY_MB", "CUSTOM_X"]), INVENTORY, max_size=3
                )
            ),
            "children": [],
        }
        parent = draw(st.sampled_from([None, *nodes]))
        (roots if parent is None else parent["children"]).append(node)
        nodes.append(node)
    return lines(*roots, *draw(st.permutations(held_units(draw, nodes))))


def held_units(draw: st.DrawFn, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Consumers of one unit of some inventories, each of which could give a dozen."""
    shelves = [
        (node["name"], name)
        for node in nodes
        for name, stock in node["inventories"].items()
        if isinstance(stock, int) and stock >= 12
    ]
    found = []
    for number in range(draw(st.integers(0, 3)) if shelves else 0):
        allocations: dict[str, dict[str, int]] = {}
        for provider, name in draw(st.lists(st.sampled_from(shelves), min_size=1, max_size=4)):
            allocations.setdefault(provider, {})[name] = draw(st.integers(1, 4))
        kind = draw(st.sampled_from([{}, {"consumer_type": "INSTANCE"}, {"project_id": "ö"}]))
        found.append({"consumer": uid(f"c{number}"), "allocations": allocations, **kind})
    return found


@given(fleets())
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_dump_is_the_inverse_of_load(kept: Ledger, document: bytes) -> None:
    kept.write(empty).result()
    load(kept, document)
    first = dumped(kept)
    assert plan_of(first) == plan_of(document)
    kept.write(empty).result()
    load(kept, first)
    assert dumped(kept) == first


CONSUMER = {
    "consumer": uid("vm"),
    "project_id": "blue",
    "user_id": "me",
    "consumer_type": "INSTANCE",
    "allocations": {"h0n0": {"VCPU": 2}, "h1": {"DISK_GB": 10}},
}


def test_the_document_reads_as_it_was_written(ledger: Ledger) -> None:
    host = tree("host", tree("child", inventories={"VCPU": {"total": 8, "reserved": 1}}))
    load(ledger, lines(host, *numa_hosts(2), CONSUMER))
    first, second, *_, last = dumped(ledger).splitlines()
    assert json.loads(first) == {
        "name": "host",
        "uuid": uid("host"),
        "children": [
            {
                "name": "child",
                "uuid": uid("child"),
                "inventories": {"VCPU": {"total": 8, "reserved": 1}},
            }
        ],
    }
    assert json.loads(second)["inventories"] == {"DISK_GB": 100}
    assert json.loads(last) == CONSUMER


def test_one_tree_and_what_is_held_there(ledger: Ledger) -> None:
    load(ledger, lines(*numa_hosts(3), CONSUMER))
    for key in ("h0", "h0n1", uid("h0n1fpga")):
        host, consumer = map(json.loads, dumped(ledger, key).splitlines())
        assert host["name"] == "h0"
        assert consumer["allocations"] == {"h0n0": {"VCPU": 2}}
    assert len(dumped(ledger, "h0", "h1").splitlines()) == 3
    assert len(dumped(ledger, "h2").splitlines()) == 1
    with pytest.raises(NotFound, match="nowhere"):
        dumped(ledger, "nowhere")


def test_a_name_may_be_the_uuid(kept: Ledger) -> None:
    kept.write(empty).result()
    node = {"name": uid("metal"), "uuid": uid("metal"), "inventories": {"VCPU": 1}}
    load(kept, lines(node))
    assert json.loads(dumped(kept)) == node


def test_children_older_than_their_parents(ledger: Ledger) -> None:
    """Trees that were put together one by one, in any order."""
    child = make(ledger, "child", VCPU=4)
    parent = make(ledger, "parent")
    claim(ledger, (child, {"VCPU": 3}))
    ledger.write(lambda tx: providers.move(tx, child, parent.uuid, free=True)).result()
    written, consumer = map(json.loads, dumped(ledger).splitlines())
    assert (written["name"], written["children"][0]["name"]) == ("parent", "child")
    assert consumer["allocations"] == {"child": {"VCPU": 3}}
