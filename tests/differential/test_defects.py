"""Where the real Placement is known to err, Dovetail gives the right answer: one test per defect.

Each test builds the smallest world the defect shows in and states the whole answer.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.differential.comparison import Request, found
from tests.differential.wire import Answer, Call, Server
from tests.differential.world import SHARES, Inventory, Provider, World

PLENTY = Inventory(8)
Build = Callable[..., World]


@pytest.fixture
def build(server: Server) -> Iterator[Build]:
    """Makes worlds out of providers, and takes them down when the test is over."""
    built: list[World] = []

    def making(*providers: Provider) -> World:
        world = World(providers)
        built.append(world)
        for call in world.building():
            assert server.ask(call).status in (200, 201), call
        return world

    yield making
    for world in reversed(built):
        for call in world.razing():
            assert server.ask(call).status == 204, call


def provider(
    parent: Provider | None = None,
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
    **inventories: Inventory,
) -> Provider:
    fresh = str(uuid.uuid4())
    return Provider(
        uuid=fresh,
        name=f"rp-{fresh}",
        parent=parent.uuid if parent else None,
        inventories=inventories,
        traits=frozenset(traits),
        aggregates=frozenset(aggregates),
    )


def candidates(server: Server, **params: str) -> Counter[Request]:
    answer = server.ask(Call("GET", "/allocation_candidates", tuple(params.items())))
    assert answer.status == 200, answer
    return found(answer, 39).requests


def request(
    *taken: tuple[Provider, str, int], **served: Provider | tuple[Provider, ...]
) -> Request:
    """An allocation request; the unsuffixed group's providers are given as `spread`."""
    several = {k: v if isinstance(v, tuple) else (v,) for k, v in served.items()}
    return (
        frozenset((it.uuid, name, amount) for it, name, amount in taken),
        frozenset(
            ("" if suffix == "spread" else suffix, frozenset(it.uuid for it in them))
            for suffix, them in several.items()
        ),
    )


@pytest.mark.parametrize("policy", [{}, {"group_policy": "isolate"}, {"group_policy": "none"}])
def test_1_amounts_are_added_only_where_groups_meet(
    server: Server, build: Build, policy: dict[str, str]
) -> None:
    a = provider(VCPU=PLENTY)
    b = provider(a, VCPU=PLENTY)
    build(a, b)

    found = candidates(server, resources="VCPU:1", resources_G="VCPU:1", **policy)

    assert found == Counter(
        [
            request((a, "VCPU", 2), spread=a, _G=a),
            request((a, "VCPU", 1), (b, "VCPU", 1), spread=a, _G=b),
            request((a, "VCPU", 1), (b, "VCPU", 1), spread=b, _G=a),
            request((b, "VCPU", 2), spread=b, _G=b),
        ]
    )


def test_2_a_sharing_provider_serves_every_tree_of_its_aggregate(
    server: Server, build: Build
) -> None:
    group = str(uuid.uuid4())
    one, two = (provider(aggregates=(group,), VCPU=PLENTY) for _ in range(2))
    pool = provider(traits=(SHARES,), aggregates=(group,), DISK_GB=PLENTY)
    build(one, two, pool)

    found = candidates(server, resources="DISK_GB:1", resources_G="VCPU:1")

    assert found == Counter(
        request((it, "VCPU", 1), (pool, "DISK_GB", 1), spread=pool, _G=it) for it in (one, two)
    )


def test_3_a_sharing_provider_may_stand_below_the_root_of_another_tree(
    server: Server, build: Build
) -> None:
    group = str(uuid.uuid4())
    rack = provider()
    array = provider(rack, traits=(SHARES,), aggregates=(group,), DISK_GB=PLENTY)
    host = provider(aggregates=(group,), VCPU=PLENTY)
    build(rack, array, host)
    query = Call("GET", "/allocation_candidates", (("resources", "VCPU:1,DISK_GB:1"),))

    answer = server.ask(query)

    assert answer.status == 200
    both = request((host, "VCPU", 1), (array, "DISK_GB", 1), spread=(host, array))
    assert found(answer, 39).requests == Counter([both])
    assert set(answer.body["provider_summaries"]) == {rack.uuid, array.uuid, host.uuid}


@pytest.mark.parametrize("nothing", ["unknown provider", "no allocations"])
def test_4_a_write_that_allocates_nothing_leaves_no_consumer(
    server: Server, build: Build, nothing: str
) -> None:
    host = provider(VCPU=PLENTY)
    build(host)
    consumer = str(uuid.uuid4())

    def put(allocations: dict[str, dict[str, dict[str, int]]]) -> Answer:
        body = {
            "allocations": allocations,
            "project_id": "p",
            "user_id": "u",
            "consumer_type": "INSTANCE",
            "consumer_generation": None,
        }
        return server.ask(Call("PUT", f"/allocations/{consumer}", body=body))

    one = {"resources": {"VCPU": 1}}
    if nothing == "no allocations":
        assert put({}).status == 204
    else:
        assert put({str(uuid.uuid4()): one}).status == 400

    assert put({host.uuid: one}).status == 204
    held = server.ask(Call("GET", f"/allocations/{consumer}")).body
    assert held["consumer_generation"] == 1
    assert {rp: it["resources"] for rp, it in held["allocations"].items()} == {
        host.uuid: {"VCPU": 1}
    }
    assert server.ask(Call("DELETE", f"/allocations/{consumer}")).status == 204


class TestGroupsWithoutResources:
    """Defect 5: two NUMA nodes below each of two roots, a NIC below each first node."""

    @pytest.fixture
    def hosts(self, build: Build) -> list[list[Provider]]:
        hosts = [self._host() for _ in range(2)]
        for host in hosts:
            build(*host)
        return hosts

    @staticmethod
    def _host() -> list[Provider]:
        root = provider()
        first = provider(root, traits=("HW_NUMA_ROOT",), aggregates=(str(uuid.uuid4()),))
        second = provider(root, traits=("HW_NUMA_ROOT",))
        return [root, first, second, provider(first, SRIOV_NET_VF=PLENTY)]

    def expected(self, host: list[Provider], *served: Provider) -> Counter[Request]:
        nic = host[3]
        return Counter(request((nic, "SRIOV_NET_VF", 1), _NIC=nic, _AT=it) for it in served)

    def ask(self, server: Server, **conditions: str) -> Counter[Request]:
        return candidates(
            server,
            resources_NIC="SRIOV_NET_VF:1",
            same_subtree="_AT,_NIC",
            group_policy="none",
            **conditions,
        )

    def test_5_in_tree_is_heeded(self, server: Server, hosts: list[list[Provider]]) -> None:
        host, _ = hosts
        found = self.ask(server, required_AT="HW_NUMA_ROOT", in_tree_AT=host[2].uuid)
        assert found == self.expected(host, host[1])

    def test_5_in_tree_is_enough(self, server: Server, hosts: list[list[Provider]]) -> None:
        host, _ = hosts
        root, first, _, nic = host
        assert self.ask(server, in_tree_AT=root.uuid) == self.expected(host, root, first, nic)

    def test_5_a_forbidden_trait_is_enough(
        self, server: Server, hosts: list[list[Provider]]
    ) -> None:
        found = self.ask(server, required_AT="!HW_NUMA_ROOT")
        expected = (self.expected(host, host[0], host[3]) for host in hosts)
        assert found == sum(expected, Counter())

    def test_5_a_forbidden_aggregate_is_enough(
        self, server: Server, hosts: list[list[Provider]]
    ) -> None:
        barred, other = hosts
        (aggregate,) = barred[1].aggregates
        found = self.ask(server, member_of_AT=f"!{aggregate}")
        assert found == self.expected(barred, barred[0], barred[3]) + self.expected(
            other, other[0], other[1], other[3]
        )
