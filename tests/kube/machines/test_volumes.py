"""Guests with volumes: their units are where the volumes are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.machines.names import HOSTNAME
from tests.kube.machines.bed import Bed, machine_bed, simple_spec
from tests.kube.machines.corner import Corner, corner_of


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("volumes")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def test_a_guest_with_a_volume_goes_where_the_volume_is(corner: Corner) -> None:
    """Only the scheduler knows where that is, so nobody ties it to a node before."""
    nodes = corner.add_nodes(2, cpu="2", memory="8Gi")
    corner.sell(simple_spec(nodes, 2))
    for n, node in enumerate(nodes):
        make_volume(corner, f"{corner.group}-{n}", node)
        claim = {"persistentVolumeClaim": {"claimName": f"{corner.group}-{n}"}}
        corner.guest(f"g{n}", volumes=[{"name": "data", **claim}])
        corner.bed.await_that(lambda n=n: f"g{n}" in corner.running(), "guest")  # type: ignore[misc]
        assert HOSTNAME not in corner.pod(f"g{n}")["spec"].get("nodeSelector", {})
        assert corner.node_of(f"g{n}") == node
        corner.bed.await_that(lambda n=n: f"g{n}" in corner.holders(), "holder")  # type: ignore[misc]
        assert corner.holders()[f"g{n}"]["node"] == node
        corner.drop(f"g{n}")
        corner.await_usage(2, 2, 0, 0)


def test_a_guest_whose_claim_is_not_there_yet(corner: Corner) -> None:
    """It could not run, so it is sold no unit that others could use."""
    nodes = corner.add_nodes(2, cpu="2", memory="8Gi")
    corner.sell(simple_spec(nodes, 2))
    name = f"{corner.group}-late"
    claim = {"persistentVolumeClaim": {"claimName": name}}
    corner.guest("a", volumes=[{"name": "data", **claim}])
    corner.await_waiting(a="NoNodeFits")
    assert name in corner.why("a")
    make_volume(corner, name, nodes[0])
    corner.await_running("a")
    assert corner.node_of("a") == nodes[0]


def test_a_volume_on_a_node_that_is_sold_out(corner: Corner) -> None:
    nodes = corner.add_nodes(2, cpu="2", memory="8Gi")
    corner.sell(simple_spec(nodes, 2))
    corner.guest("holder", nodeSelector={HOSTNAME: nodes[0]})
    corner.await_running("holder")
    make_volume(corner, corner.group, nodes[0])
    claim = {"persistentVolumeClaim": {"claimName": corner.group}}
    corner.guest("a", volumes=[{"name": "data", **claim}])
    corner.await_waiting(a="NoNodeFits")
    corner.await_usage(2, 1, 1, 1)
    corner.drop("holder")
    corner.await_running("a")
    assert corner.node_of("a") == nodes[0]


def make_volume(corner: Corner, name: str, node: str) -> None:
    """On one node, and claimed."""
    here = {"key": HOSTNAME, "operator": "In", "values": [node]}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "claimRef": {"namespace": corner.namespace, "name": name},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": corner.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    corner.bed.cluster.apply(body, claim)
    # As the controller that binds volumes leaves them.
    api = "/api/v1"
    path = f"{api}/namespaces/{corner.namespace}/persistentvolumeclaims/{name}"
    note = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    assert corner.bed.cluster.request("PATCH", path, note)[0] == 200
    bound = {"status": {"phase": "Bound"}}
    assert corner.bed.cluster.request("PATCH", f"{path}/status", bound)[0] == 200
    path = f"{api}/persistentvolumes/{name}"
    uid = corner.bed.get(f"{api}/namespaces/{corner.namespace}/persistentvolumeclaims/{name}")
    reference = {"spec": {"claimRef": {"uid": uid["metadata"]["uid"]}}}
    assert corner.bed.cluster.request("PATCH", path, reference)[0] == 200
    assert corner.bed.cluster.request("PATCH", f"{path}/status", bound)[0] == 200
