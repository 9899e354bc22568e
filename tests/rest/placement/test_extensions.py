"""What the specification left for later: root_member_of, isolate, same_subtree with `!`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.fleets import load, numa_hosts, uid

VCPU_AND_FPGA = "resources_C=VCPU:1&resources_F=FPGA:1"


def candidates(client: Client, query: str) -> list[dict[str, Any]]:
    reply = client.get(f"/allocation_candidates?{query}")
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["allocation_requests"]
    return found


def providers(client: Client, query: str) -> set[frozenset[str]]:
    return {frozenset(item["allocations"]) for item in candidates(client, query)}


@pytest.fixture
def hosts(client: Client) -> Client:
    load(client, *numa_hosts(2))
    return client


def test_they_are_listed_in_the_versions_document(client: Client) -> None:
    document = client.get("/").json()["versions"][0]
    own = ["root_member_of", "isolate", "rank", "scores", "attributes", "class"]
    expected = [*own, "same_subtree=!"]
    assert document["extensions"] == expected


@pytest.mark.parametrize(
    ("value", "hosts_left"),
    [
        (uid("rack0"), {"h0"}),
        (f"!{uid('rack0')}", {"h1"}),
        (f"in:{uid('rack0')},{uid('rack1')}", {"h0", "h1"}),
        (f"{uid('rack0')}&root_member_of={uid('rack1')}", set()),
        (f"!in:{uid('rack0')},{uid('rack1')}", set()),
    ],
)
def test_root_member_of(hosts: Client, value: str, hosts_left: set[str]) -> None:
    found = providers(hosts, f"resources_C=VCPU:1&root_member_of={value}")
    expected = {frozenset({uid(f"{host}n{n}")}) for host in hosts_left for n in (0, 1)}
    assert found == expected


def test_root_member_of_wants_uuids(hosts: Client) -> None:
    reply = hosts.get("/allocation_candidates?resources=VCPU:1&root_member_of=rack0")
    assert reply.status_code == 400
    assert "valid UUID" in reply.json()["errors"][0]["detail"]


def test_apart_stays_out_of_the_subtree(hosts: Client) -> None:
    together = providers(hosts, f"{VCPU_AND_FPGA}&same_subtree=_C,_F")
    apart = providers(hosts, f"{VCPU_AND_FPGA}&same_subtree=_C,!_F")
    assert together == {
        frozenset({uid(f"h{h}n{n}"), uid(f"h{h}n{n}fpga")}) for h in (0, 1) for n in (0, 1)
    }
    assert apart == {
        frozenset({uid(f"h{h}n{n}"), uid(f"h{h}n{1 - n}fpga")}) for h in (0, 1) for n in (0, 1)
    }


def test_isolate_binds_only_the_groups_named(hosts: Client) -> None:
    """Three ports' VFs: _A stands alone, _B and _C may meet."""
    query = (
        "resources_A=SRIOV_NET_VF:1&resources_B=SRIOV_NET_VF:1&resources_C=SRIOV_NET_VF:1"
        "&required_N=CUSTOM_NIC&same_subtree=_A,_B,_C,_N"
    )
    ports = [
        {suffix: uuids[0] for suffix, uuids in item["mappings"].items()}
        for item in candidates(hosts, f"{query}&isolate=_A")
    ]
    assert len(ports) == 8
    assert all(found["_A"] not in {found["_B"], found["_C"]} for found in ports)
    assert all(found["_B"] == found["_C"] for found in ports)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (f"{VCPU_AND_FPGA}&isolate=_C&group_policy=none", "exclude each other"),
        (f"{VCPU_AND_FPGA}&isolate=_X", "Real suffixes should be specified in `isolate`"),
        (f"{VCPU_AND_FPGA}&isolate=_C,", "Empty string"),
        (f"{VCPU_AND_FPGA}&same_subtree=!_C", "at least one group without `!`"),
        (f"{VCPU_AND_FPGA}&same_subtree=_C,!_C", "both in and out"),
        (f"{VCPU_AND_FPGA}&same_subtree=_C,!", "Empty string"),
        (f"{VCPU_AND_FPGA}&same_subtree=_C,!_X", "Real suffixes"),
    ],
)
def test_nonsense_is_refused_with_a_reason(hosts: Client, query: str, complaint: str) -> None:
    reply = hosts.get(f"/allocation_candidates?{query}")
    assert reply.status_code == 400
    assert complaint in reply.json()["errors"][0]["detail"]
    assert reply.json()["errors"][0]["code"] == "placement.query.bad_value"


@pytest.mark.parametrize("key", ["root_member_of", "isolate"])
def test_they_are_unknown_before_1_36(hosts: Client, key: str) -> None:
    reply = hosts.get(f"/allocation_candidates?resources=VCPU:1&{key}=_A", version="1.35")
    assert reply.status_code == 400
    assert f"'{key}' does not match any of the regexes" in reply.text


def test_group_policy_defaults_to_none_from_1_36_on(hosts: Client) -> None:
    two = "/allocation_candidates?resources1=VCPU:1&resources2=VCPU:1"
    assert hosts.get(two, version="1.35").status_code == 400
    without = hosts.get(two).json()["allocation_requests"]
    spelled = hosts.get(f"{two}&group_policy=none").json()["allocation_requests"]
    assert len(without) == 8
    assert without == spelled
