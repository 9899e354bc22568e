"""Each policy by an example that shows what it is for."""

from __future__ import annotations

import pytest

from dovetail.core.request import Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.rank import Ranking, Typical, best
from tests.engine.answers import loaded
from tests.engine.forest import Inventory, Node, grow, name_of, node
from tests.engine.test_scale import devices, fleet, isolating


def gpu_host(name: str, cpu: int, *left: int, model: str = "NET1") -> Node:
    """A host with so much CPU, and devices of 1000 units of which so many are left."""
    return node(
        name,
        *(
            node(f"{name}-{n}", FPGA=Inventory(1000, used=1000 - units), traits=[model])
            for n, units in enumerate(left)
        ),
        VCPU=cpu,
    )


def task(cpu: int, units: int = 0, count: int = 1, model: str | None = None) -> Request:
    required = (frozenset([model]),) if model else ()
    groups = [Group(resources={"VCPU": cpu})]
    if units:
        groups += [
            Group(suffix=f"_{n}", resources={"FPGA": units}, required=required)
            for n in range(count)
        ]
    return Request(groups=tuple(groups), isolated=frozenset(g.suffix for g in groups if g.suffix))


def names(
    snapshot: Snapshot, request: Request, rank: str, typical: Typical | None = None
) -> list[str]:
    """The last provider of each candidate: a device where there is one."""
    ranking = Ranking(((rank, 1),), typical or Typical())
    found = best(snapshot, request, ranking).rows
    return [name_of(snapshot.uuid(line[-1])) for line in found.tolist()]


def fleet_of(*trees: Node) -> Snapshot:
    return loaded(grow(*trees))


def test_best_fit_takes_the_tightest_host_and_there_the_tightest_device() -> None:
    snapshot = fleet_of(gpu_host("wide", 64, 500, 1000), gpu_host("tight", 16, 1000, 500))
    found = names(snapshot, task(2, 400), "best-fit")
    assert found == ["tight-1", "tight-0", "wide-0", "wide-1"]


def test_pack_and_spread_are_opposites() -> None:
    hosts = [node(f"h{used}", VCPU=Inventory(16, used=used)) for used in (8, 0, 12, 4)]
    snapshot = fleet_of(*hosts)
    packed = names(snapshot, task(1), "pack")
    assert packed == ["h12", "h8", "h4", "h0"]
    assert names(snapshot, task(1), "spread") == packed[::-1]


def test_fragmentation_fills_the_device_that_whole_requests_cannot_use() -> None:
    snapshot = fleet_of(gpu_host("whole", 64, 1000, 1000), gpu_host("broken", 64, 1000, 600))
    typical = Typical.of([(task(8, 1000), 9), (task(8, 500), 1)])
    assert names(snapshot, task(8, 500), "fragmentation", typical)[0] == "broken-1"


def test_fragmentation_keeps_processors_for_the_devices_beside_them() -> None:
    snapshot = fleet_of(gpu_host("needed", 8, 1000), gpu_host("plenty", 64, 1000))
    typical = Typical.of([(task(8, 1000), 1)])
    assert names(snapshot, task(4), "fragmentation", typical)[0] == "plenty"


def test_fragmentation_sees_models() -> None:
    """Where only others' requests run nothing is lost by taking the rest."""
    snapshot = fleet_of(
        gpu_host("wanted", 64, 1000, model="NET1"), gpu_host("unwanted", 64, 1000, model="NET2")
    )
    typical = Typical.of([(task(8, 1000, model="NET1"), 1)])
    assert names(snapshot, task(8, 500), "fragmentation", typical)[0] == "unwanted-0"


def test_scarcity_leaves_devices_that_others_name_to_them() -> None:
    snapshot = fleet_of(
        *(gpu_host(f"named{n}", 64, 1000, model="NET1") for n in range(2)),
        *(gpu_host(f"any{n}", 64, 1000, model="NET2") for n in range(2)),
    )
    typical = Typical.of([(task(8, 1000, model="NET1"), 1), (task(8, 1000), 1)])
    assert names(snapshot, task(8, 1000), "scarcity", typical)[:2] == ["any0-0", "any1-0"]


def test_scarcity_keeps_hosts_whole_for_requests_that_come_rarely() -> None:
    """Too rarely to be typical: nothing is fragmented on either host."""
    snapshot = fleet_of(
        gpu_host("whole", 64, 1000, 1000, 1000, 1000), gpu_host("broken", 64, 1000, 1000, 1000, 0)
    )
    typical = Typical.of([(task(4, 1000), 99), (task(16, 1000, count=4), 1)])
    assert [request for request, _ in typical.rare] == [task(16, 1000, count=4)]
    assert names(snapshot, task(4, 1000), "fragmentation", typical)[0] == "whole-0"
    assert names(snapshot, task(4, 1000), "scarcity", typical)[0].startswith("broken")


def test_scarcity_keeps_processors_for_devices_that_would_starve() -> None:
    """Every request still runs on either host, so that nothing is fragmented yet."""
    snapshot = fleet_of(gpu_host("few", 24, 1000, 1000), gpu_host("many", 64, 1000, 1000))
    typical = Typical.of([(task(8, 1000), 1)])
    assert names(snapshot, task(4), "fragmentation", typical)[0] == "few"
    assert names(snapshot, task(4), "scarcity", typical)[0] == "many"


def test_scarcity_keeps_room_for_requests_without_devices() -> None:
    """No device is lost on either host, and none starves: a small request breaks no large room."""
    snapshot = fleet_of(gpu_host("large", 40, 1000), gpu_host("small", 24, 1000))
    typical = Typical.of([(task(1, 1000), 1), (task(40), 1), (task(4), 1)])
    assert names(snapshot, task(4), "fragmentation", typical)[0] == "large"
    assert names(snapshot, task(4), "scarcity", typical)[0] == "small"


@pytest.mark.parametrize("rank", ["best-fit", "fragmentation"])
def test_trees_with_very_many_candidates_are_ranked_under_a_limit(rank: str) -> None:
    request = isolating(devices(8))
    ranking = Ranking(((rank, 1),), Typical.of([(request, 1)]))
    found = best(fleet(50), request, ranking, limit=10)
    assert len({tuple(sorted(line)) for line in found.rows.tolist()}) == 10


def test_equal_scores_let_trees_take_turns() -> None:
    snapshot = fleet_of(*(gpu_host(f"h{n}", 64, 1000, 1000) for n in range(3)))
    found = names(snapshot, task(1, 500), "spread")
    assert found == ["h0-0", "h1-0", "h2-0", "h0-1", "h1-1", "h2-1"]
