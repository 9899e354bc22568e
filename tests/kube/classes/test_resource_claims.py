"""What a ResourceClaim says for a pod, and who has devices by claims of others."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dovetail.core.device import DraOrigin, Origin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.resource_claims import (
    MOST_DEVICES,
    ResourceClaim,
    WantedClaim,
    allocated_devices,
    claim_name,
    holder_name,
    mapped_resource,
    pod_claim_status,
    wanted_claim,
)
from dovetail.podfit.objects import Pod, RequestMapping

UID = "11111111-2222-3333-4444-555555555555"
G0, G1 = (DraOrigin("gpu.x", "n1", name) for name in ("g0", "g1"))
N0 = DraOrigin("nic.x", "p", "e0")
PLUGGED = PluginOrigin("v/x", "0")
ORIGINS: dict[str, Origin] = {"a-g1": G1, "b-g0": G0, "c-nic": N0, "d-plug": PLUGGED}


def pod(
    containers: dict[str, dict[str, int]],
    init: dict[str, dict[str, int]] | None = None,
    sidecars: tuple[str, ...] = (),
    name: str = "p",
) -> Pod:
    def written(each: str, asked: dict[str, int]) -> dict[str, Any]:
        amounts = {f"resourceclass.dovetail.dev/{key}": str(units) for key, units in asked.items()}
        more = {"restartPolicy": "Always"} if each in sidecars else {}
        return {"name": each, "resources": {"requests": amounts, "limits": amounts}, **more}

    spec = {
        "containers": [written(*each) for each in containers.items()],
        "initContainers": [written(*each) for each in (init or {}).items()],
    }
    meta = {"name": name, "namespace": "ns", "uid": UID}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def wanted(of: Pod, *holdings: DeviceHolding, fence: str = "") -> WantedClaim:
    found = wanted_claim(of, "n1", holdings, ORIGINS, fence)
    assert found is not None
    return found


def mappings(of: Pod, *holdings: DeviceHolding) -> set[tuple[str, str, str]]:
    status = pod_claim_status(wanted(of, *holdings), holdings, ORIGINS)
    assert status.resource_claim_name == claim_name(of)
    assert len(set(status.request_mappings)) == len(status.request_mappings)
    return {
        (each.container_name, each.resource_name.partition("/")[2], each.request_name)
        for each in status.request_mappings
    }


def test_devices_of_plugins_and_of_nobody_need_no_claim() -> None:
    held = (DeviceHolding("d-plug", 1, "gpu", "main"), DeviceHolding("by-hand", 1, "gpu", "main"))
    assert wanted_claim(pod({"main": {"gpu": 2}}), "n1", held, ORIGINS, "") is None


def test_a_claim_is_its_pods_alone_and_protected() -> None:
    document = wanted(pod({"main": {"gpu": 1}}), DeviceHolding("a-g1", 1, "gpu", "main")).document()
    meta = document["metadata"]
    assert meta["namespace"] == "ns"
    assert meta["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert meta["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": UID, "controller": True}
    assert meta["ownerReferences"] == [owner]
    (request,) = document["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 1
    assert request["exactly"]["deviceClassName"]


def test_its_status_names_devices_node_and_pod() -> None:
    held = (DeviceHolding("a-g1", 1, "gpu", "main"), DeviceHolding("c-nic", 1, "nic", "main"))
    status = wanted(pod({"main": {"gpu": 1, "nic": 1}}), *held).status()
    assert status["allocation"]["devices"]["results"] == [
        {"request": "device-0", "driver": "gpu.x", "pool": "n1", "device": "g1"},
        {"request": "device-1", "driver": "nic.x", "pool": "p", "device": "e0"},
    ]
    (term,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert term == {"matchFields": [here]}
    assert status["reservedFor"] == [{"resource": "pods", "name": "p", "uid": UID}]


def test_whoever_deals_out_the_same_devices_writes_the_same_claim() -> None:
    of = pod({"one": {"gpu": 1}, "two": {"gpu": 1}})
    ours = (DeviceHolding("a-g1", 1, "gpu", "one"), DeviceHolding("b-g0", 1, "gpu", "two"))
    theirs = (DeviceHolding("b-g0", 1, "gpu", "one"), DeviceHolding("a-g1", 1, "gpu", "two"))
    assert wanted(of, *ours) == wanted(of, *theirs)
    assert mappings(of, *ours) != mappings(of, *theirs)


def test_containers_get_their_own_devices_and_no_others() -> None:
    of = pod({"one": {"gpu": 1}, "two": {"gpu": 1, "nic": 1}, "none": {}})
    held = (
        DeviceHolding("a-g1", 1, "gpu", "one"),
        DeviceHolding("b-g0", 1, "gpu", "two"),
        DeviceHolding("c-nic", 1, "nic", "two"),
    )
    assert mappings(of, *held) == {
        ("one", "gpu", "device-1"),
        ("two", "gpu", "device-0"),
        ("two", "nic", "device-2"),
    }


def test_two_devices_of_a_class_are_two_requests_of_one_resource() -> None:
    of = pod({"main": {"gpu": 2}})
    held = (DeviceHolding("a-g1", 1, "gpu", "main"), DeviceHolding("b-g0", 1, "gpu", "main"))
    assert mappings(of, *held) == {("main", "gpu", "device-0"), ("main", "gpu", "device-1")}


def test_devices_of_a_plugin_in_the_same_class_are_left_out() -> None:
    of = pod({"main": {"gpu": 2}})
    held = (DeviceHolding("a-g1", 1, "gpu", "main"), DeviceHolding("d-plug", 1, "gpu", "main"))
    assert mappings(of, *held) == {("main", "gpu", "device-0")}


def test_init_containers_use_what_later_ones_hold_and_sidecars_keep_theirs() -> None:
    of = pod({"main": {"gpu": 1}}, {"side": {"gpu": 1}, "early": {"gpu": 1}}, ("side",))
    held = (DeviceHolding("a-g1", 1, "gpu", "side"), DeviceHolding("b-g0", 1, "gpu", "main"))
    assert mappings(of, *held) == {
        ("side", "gpu", "device-1"),
        ("early", "gpu", "device-0"),
        ("main", "gpu", "device-0"),
    }


def test_the_name_is_a_subdomain_however_long_the_pods_is() -> None:
    name = claim_name(pod({"main": {}}, name="a" * 199 + "." + "b" * 53))
    assert len(name) <= 253
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", name)
    assert name.endswith(UID)


def test_another_fence_is_another_epoch() -> None:
    of, held = pod({"main": {"gpu": 1}}), DeviceHolding("a-g1", 1, "gpu", "main")
    before, after = wanted(of, held), wanted(of, held, fence="given back")
    written = msgspec.convert(before.document(), ResourceClaim)
    assert before.is_written_in(written)
    assert not after.is_written_in(written)
    assert not after.is_of_its_epoch(written)


def test_a_claim_for_other_devices_is_another_plan() -> None:
    of = pod({"main": {"gpu": 1}})
    one, other = (wanted(of, DeviceHolding(name, 1, "gpu", "main")) for name in ("a-g1", "b-g0"))
    written = msgspec.convert(one.document(), ResourceClaim)
    assert not other.is_written_in(written)
    assert other.is_of_its_epoch(written)


def test_who_only_looks_has_nothing() -> None:
    results = [
        {"driver": "gpu.x", "pool": "n1", "device": "g0", "adminAccess": True},
        {"driver": "gpu.x", "pool": "n1", "device": "g1"},
    ]
    raw = {"metadata": {"name": "c"}, "status": {"allocation": {"devices": {"results": results}}}}
    assert allocated_devices(msgspec.convert(raw, ResourceClaim)) == {G1}
    assert allocated_devices(ResourceClaim()) == frozenset()


def test_claims_of_ours_are_their_pods_and_others_their_own() -> None:
    of = pod({"main": {"gpu": 1}})
    document = wanted(of, DeviceHolding("a-g1", 1, "gpu", "main")).document()
    document["metadata"]["uid"] = "claim"
    assert holder_name(msgspec.convert(document, ResourceClaim)) == UID
    del document["metadata"]["labels"]
    assert holder_name(msgspec.convert(document, ResourceClaim)) == "claim"


def test_resources_of_device_classes_are_known_by_both_names() -> None:
    classes = {"example.com/gpu": "big"}
    assert mapped_resource(["cpu", "example.com/gpu"], classes) == ("example.com/gpu", "big")
    implicit = "deviceclass.resource.kubernetes.io/small"
    assert mapped_resource([implicit], {}) == (implicit, "small")
    assert mapped_resource(["cpu", "example.com/nic"], classes) is None


def test_a_mapping_is_read_as_it_is_written() -> None:
    raw = {"containerName": "c", "resourceName": "r", "requestName": "q"}
    read = msgspec.convert(raw, RequestMapping)
    assert msgspec.to_builtins(read) == raw
    assert MOST_DEVICES == 32
