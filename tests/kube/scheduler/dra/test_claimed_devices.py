"""Who has which devices by claims, wherever their pools are."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.core.device import DraOrigin
from dovetail.kube.classes.resource_claims import OURS, ResourceClaim
from dovetail.kube.scheduler.dra.claimed_devices import ClaimedDevices
from dovetail.podfit.objects import ResourceSlice
from tests.kube.scheduler.dra.claims_world import DRIVER, name_of, origin, slice_body


def claim(name: str, *devices: DraOrigin, pod: str = "") -> ResourceClaim:
    """Of ours with a `pod`."""
    results = [msgspec.structs.asdict(each) for each in devices]
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if pod:
        owner = {"kind": "Pod", "name": pod, "uid": pod, "controller": True}
        meta |= {
            "name": f"{name}-{pod}",
            "labels": {OURS: "true"},
            "ownerReferences": [owner],
        }
    status = {"allocation": {"devices": {"results": results}}} if results else {}
    return msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)


def a_slice(node: str, name: str = "s", pool: str = "") -> ResourceSlice:
    body = slice_body(node, ["g0"])
    body["metadata"]["name"] = name
    body["spec"]["pool"]["name"] = pool or node
    return msgspec.convert(body, ResourceSlice)


G0, G1 = origin("n1", "g0"), origin("n1", "g1")


def test_devices_are_where_the_slices_of_their_pool_are() -> None:
    known = ClaimedDevices()
    assert known.set_claim(None, claim("c", G0)) == {"uid-c"}
    assert known.held_by("uid-c") == {}
    there = a_slice("n1")
    assert known.set_slice(None, there) == {"uid-c"}
    assert known.held_by("uid-c") == {"n1": {name_of("n1", "g0")}}
    moved = a_slice("n2", pool="n1")
    assert known.set_slice(there, moved) == {"uid-c"}
    assert list(known.held_by("uid-c")) == ["n2"]
    assert known.set_slice(moved, None) == {"uid-c"}
    assert known.held_by("uid-c") == {}


def test_a_slice_beside_another_of_its_pool_changes_nothing() -> None:
    known = ClaimedDevices()
    known.set_claim(None, claim("c", G0))
    known.set_slice(None, a_slice("n1", "one"))
    second = a_slice("n1", "two")
    assert known.set_slice(None, second) == frozenset()
    assert known.set_slice(second, None) == frozenset()
    assert known.held_by("uid-c") == {"n1": {name_of("n1", "g0")}}


def test_a_claim_that_changes_or_goes_is_told_for_its_holder() -> None:
    known = ClaimedDevices()
    known.set_slice(None, a_slice("n1"))
    empty, full = claim("c", pod="p"), claim("c", G0, G1, pod="p")
    assert known.set_claim(None, empty) == {"p"}
    assert known.ours() == [empty]
    assert known.set_claim(empty, full) == {"p"}
    assert known.held_by("p") == {"n1": {name_of("n1", "g0"), name_of("n1", "g1")}}
    assert known.set_claim(full, None) == {"p"}
    assert known.held_by("p") == {}
    assert known.ours() == []


def test_claims_of_others_without_devices_are_not_kept() -> None:
    known = ClaimedDevices()
    known.set_claim(None, claim("c"))
    assert known.find("uid-c") is None


def test_rivals_are_claims_of_others_on_the_same_device() -> None:
    known = ClaimedDevices()
    mine, theirs = claim("mine", G0, pod="p"), claim("theirs", G1)
    known.set_claim(None, mine)
    known.set_claim(None, theirs)
    assert known.rival([G0], "p") is None
    assert known.rival([G0, G1], "p") == theirs
    assert known.rival_of("p") is None
    late = claim("late", G0)
    known.set_claim(None, late)
    assert known.rival_of("p") == late
    assert known.rival_of("uid-late") == mine
    known.set_claim(late, None)
    assert known.rival_of("p") is None
    assert known.rival([DraOrigin(DRIVER, "n2", "g0")], "p") is None
