"""A fleet without one deployment: its pods and charges are taken out, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dovetail.core.device import Device
from dovetail.intents.deployment import AppOnCluster, PlannedWorkload
from dovetail.intents.fleet import ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.own_usage import without_deployment
from tests.support.intents import seen

OWN, OTHER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def fleet() -> FleetSnapshot:
    pods = (
        seen.pod("own", "n1", deployment=OWN, app="a"),
        seen.pod("other", "n1", deployment=OTHER, app="a"),
        seen.pod("system", "n1"),
    )
    node = ClusterNode(
        node=seen.node("n1"),
        pods=pods,
        held={"cpu": 5000, "pods": 3},
        devices=seen.gpus("n1", "gpu-0", "gpu-1", "gpu-2"),
        held_devices=frozenset(("gpu-0", "gpu-1")),
    )
    far = ClusterInventory(name="p+far", nodes=(node,))
    near = ClusterInventory(name="p+near", nodes=(node,))
    return FleetSnapshot(clusters={"p+far": far, "p+near": near}, taken_at=1)


def placed() -> AppOnCluster:
    workload = PlannedWorkload(
        kind="Pod",
        name="own",
        count=1,
        amounts={"cpu": 2000, "pods": 1},
        nodes={"n1": 1},
        devices={"n1": ("gpu-1",)},
    )
    return AppOnCluster(app="a", cluster="p+near", workloads=(workload,))


def test_its_own_is_taken_out_where_it_is() -> None:
    charges = {"p+near": {"n1": {"cpu": 2000, "pods": 1}}}
    (node,) = without_deployment(fleet(), OWN, charges, [placed()]).clusters["p+near"].nodes
    assert [each.metadata.name for each in node.pods] == ["other", "system"]
    assert node.held == {"cpu": 3000, "pods": 2}
    assert node.held_devices == {"gpu-0"}


def test_other_clusters_stay_as_they_are() -> None:
    before = fleet()
    after = without_deployment(before, OWN, {"p+near": {"n1": {"cpu": 2000}}}, [placed()])
    assert after.clusters["p+far"] is before.clusters["p+far"]
    assert before.clusters["p+near"].nodes[0].held["cpu"] == 5000


def test_more_than_is_held_leaves_nothing_held() -> None:
    charges = {"p+near": {"n1": {"cpu": 9000}}}
    (node,) = without_deployment(fleet(), OWN, charges, []).clusters["p+near"].nodes
    assert node.held["cpu"] == 0


POOL = Device(node="n1", name="nvidia.com.gpu", kind="nvidia.com/gpu", units=4)
"""Four pieces, of which a device plugin tells the number alone."""


@pytest.mark.parametrize(("left", "held", "after"), [(1, False, 3), (4, True, 2)])
def test_pieces_of_its_own_are_free_again(left: int, held: bool, after: int) -> None:
    """Two are its own; of the others one is left, or none."""
    node = ClusterNode(
        node=seen.node("n1"),
        devices=(replace(POOL, units=left),),
        held_devices=frozenset((POOL.name,) if held else ()),
        held={"nvidia.com/gpu": 4 if held else 3},
    )
    whole = FleetSnapshot(
        clusters={"p+near": ClusterInventory(name="p+near", nodes=(node,))}, taken_at=1
    )
    charges = {"p+near": {"n1": {"nvidia.com/gpu": 2}}}
    (found,) = without_deployment(whole, OWN, charges, []).clusters["p+near"].nodes
    assert [each.units for each in found.devices] == [after]
    assert found.held_devices == frozenset()
