"""Inline disks: a node has one writer of a disk, or readers alone; of an EBS volume one user."""

from __future__ import annotations

import pytest

from dovetail.podfit.objects import Pod
from tests.podfit.building import Fleet, Json, node, pod


def gce(name: str = "d", *, read_only: bool = False) -> Json:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str = "d", *, read_only: bool = False) -> Json:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str = "iqn", *, portal: str = "p", lun: int = 0, read_only: bool = False) -> Json:
    disk = {"targetPortal": portal, "iqn": iqn, "lun": lun, "readOnly": read_only}
    return {"iscsi": disk}


def rbd(*monitors: str, image: str = "i", read_only: bool = False, **pool: str) -> Json:
    return {"rbd": {"monitors": monitors, "image": image, "readOnly": read_only, **pool}}


def using(name: str, *disks: Json, on: str = "") -> Pod:
    volumes = [{"name": f"v{number}", **disk} for number, disk in enumerate(disks)]
    return pod(name, on=on, volumes=volumes)


@pytest.mark.parametrize(
    ("there", "asked", "fits"),
    [
        (gce(), gce(), False),
        (gce(), gce(read_only=True), False),
        (gce(read_only=True), gce(), False),
        (gce(read_only=True), gce(read_only=True), True),
        (gce(), gce("other"), True),
        (gce(), ebs(), True),
        (ebs(), ebs(), False),
        (ebs(read_only=True), ebs(read_only=True), False),
        (ebs(), ebs("other"), True),
        (iscsi(), iscsi(portal="q", lun=1), False),
        (iscsi(read_only=True), iscsi(read_only=True), True),
        (iscsi(), iscsi("other"), True),
        (rbd("a", "b"), rbd("b", "c"), False),
        (rbd("a"), rbd("b"), True),
        (rbd("a"), rbd("a", image="other"), True),
        (rbd("a"), rbd("a", pool="rbd"), False),
        (rbd("a"), rbd("a", pool="other"), True),
        (rbd("a", read_only=True), rbd("a", read_only=True), True),
        (rbd("a", read_only=True), rbd("a"), False),
    ],
)
def test_who_may_share_a_disk(there: Json, asked: Json, fits: bool) -> None:
    fleet = Fleet([node("n")], [using("there", there, on="n")])
    assert fleet.fitting(using("p", asked)) == ("n" if fits else "")
    assert fleet.fitting(using("p", gce("mine"), asked)) == ("n" if fits else "")


def test_a_disk_is_free_elsewhere_and_when_its_pod_is_gone() -> None:
    there, ask = (
        using("there", rbd("m", image="image"), on="n"),
        using("p", rbd("m", image="image")),
    )
    fleet = Fleet([node("n"), node("other")], [there])
    assert fleet.fitting(ask) == "other"
    assert fleet.why(ask, "n") == "rbd rbd/image is in use on the node"
    assert "1 node(s) had no available disk" in str(Fleet([node("n")], [there]).verdict(ask))
    fleet.table.remove_pod("there")
    assert fleet.fitting(ask) == "n other"


def test_volumes_have_names_of_their_own_in_each_pod() -> None:
    """Pods that use the same disk by another name are of one template."""
    one, other = (pod("p", volumes=[{"name": name, **gce()}]) for name in "ab")
    fleet = Fleet([node("n")], [])
    assert fleet.verdict(one).explanation() == fleet.verdict(other).explanation()
