"""The way from a pod's classes to the devices in its containers, and where it ended."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.core.device import Device, DraOrigin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.pod_annotation import annotations_of
from dovetail.kube.classes.pod_chain import (
    PodChain,
    ReportedPod,
    ToldEvent,
    chain_of,
    read_chain,
)
from dovetail.kube.classes.resource_claims import ResourceClaim
from dovetail.podfit.objects import Node, Pod
from tests.support.kube.memory import MemoryApi

GPU = "vendor.com/gpu"
HELD = (DeviceHolding("g0", 1, "gpu", "main"),)
ORIGINS = {"g0": PluginOrigin(GPU, "0000:3b:00.0")}


def pod(node: str = "n1", *, notes: dict[str, str] | None = None, **status: Any) -> ReportedPod:
    asked = {"resourceclass.dovetail.dev/gpu": "1"}
    container = {"name": "main", "image": "any", "resources": {"requests": asked, "limits": asked}}
    written = annotations_of("n1", HELD, ORIGINS) if notes is None and node else notes or {}
    return msgspec.convert(
        {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": written},
            "spec": {"containers": [container], "nodeName": node, "schedulerName": "dovetail"},
            "status": {"phase": "Running", **status},
        },
        ReportedPod,
    )


def device(*, healthy: bool = True, origin: Any = ORIGINS["g0"]) -> dict[str, Device]:
    about = {"memory": "80G"}
    found = Device(node="n1", name="g0", kind=GPU, healthy=healthy, properties=about, origin=origin)
    return {"g0": found}


def event(reason: str, message: str, teller: str = "kubelet", kind: str = "Warning") -> ToldEvent:
    return ToldEvent(type=kind, reason=reason, message=message, reporting_component=teller)


def stop(chain: PodChain) -> tuple[str, str]:
    assert chain.stopped is not None
    return chain.stopped.where, chain.stopped.why


def test_a_pod_that_runs_is_told_of_from_class_to_cpus() -> None:
    states = [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    given = event("Allocated", "main: CPUs 2-3", "dovetail-agent", "Normal")
    chain = chain_of(pod(containerStatuses=states), devices=device(), events=[given])
    (asked,), (got,) = chain.asked, chain.devices
    assert (asked.container, asked.class_name, asked.units) == ("main", "gpu", "1")
    assert (got.device, got.id, got.properties) == ("g0", "0000:3b:00.0", {"memory": "80G"})
    assert got.way == f"by device plugin {GPU}"
    assert (chain.given, chain.containers) == ("main: CPUs 2-3", {"main": "running"})
    assert chain.stopped is None


def test_devices_that_nobody_brings_in_and_that_went_are_called_so() -> None:
    (got,) = chain_of(pod(notes=annotations_of("n1", HELD)), devices={}).devices
    assert (got.way, got.is_there) == ("which nobody brings into containers", False)
    (got,) = chain_of(pod(), devices=None).devices
    assert got.is_there


@pytest.mark.parametrize(
    ("found", "where", "why"),
    [
        (
            pod("", conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3"}]),
            "scheduling",
            "0/3",
        ),
        (pod(""), "scheduling", "scheduler 'dovetail' has not looked at it yet"),
        (pod(notes={"a": "b"}), "binding", "no devices were given: 'dovetail' or whoever bound"),
        (pod(notes={"dovetail.dev/allocation": "x"}), "binding", "dovetail.dev/allocation: "),
        (pod(phase="Failed", reason="Refused", message="no CPUs"), "node", "Refused: no CPUs"),
        (
            pod(
                conditions=[
                    {
                        "type": "dovetail.dev/DevicesAvailable",
                        "status": "False",
                        "reason": "DeviceUnhealthy",
                        "message": "g0 is not healthy",
                    }
                ]
            ),
            "devices",
            "DeviceUnhealthy: g0 is not healthy",
        ),
        (pod(phase="Pending"), "node", "the kubelet has not begun to start it"),
    ],
)
def test_where_it_ended_and_why(found: ReportedPod, where: str, why: str) -> None:
    said = stop(chain_of(found, devices=device()))
    assert said[0] == where
    assert said[1].startswith(why)


def test_the_last_word_of_the_kubelet_counts_for_a_pod_that_does_not_start() -> None:
    told = [
        event("FailedCreatePodSandBox", "old"),
        event("FailedCreatePodSandBox", "annotation_not_trusted: anybody may have"),
        event("Pulled", "fine", kind="Normal"),
        event("Odd", "of somebody else", "other"),
    ]
    found = chain_of(pod(phase="Pending"), devices=device(), events=told)
    assert stop(found) == (
        "node",
        "FailedCreatePodSandBox: annotation_not_trusted: anybody may have",
    )
    assert chain_of(pod(), devices=device(), events=told).stopped is None


def claim(**status: Any) -> ResourceClaim:
    meta = {"name": "p-claim", "namespace": "ns"}
    return msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)


RESULTS = [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "dev0"}]


@pytest.mark.parametrize(
    ("made", "trouble"),
    [
        (None, "it is not there, or may not be read"),
        (claim(), "it is not allocated"),
        (claim(allocation={"devices": {"results": RESULTS}}), "it is not reserved for the pod"),
        (
            claim(
                allocation={"devices": {"results": RESULTS}},
                reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}],
            ),
            "",
        ),
    ],
)
def test_a_claim_is_told_of_with_what_it_lacks(made: ResourceClaim | None, trouble: str) -> None:
    by_claim = {"resourceClaimName": "p-claim", "requestMappings": []}
    chain = chain_of(
        pod(notes=annotations_of("n1", HELD), extendedResourceClaimStatus=by_claim),
        claim=made,
        devices=device(origin=DraOrigin("gpu.example.com", "n1", "dev0")),
    )
    assert chain.claim is not None
    assert chain.claim.trouble == trouble
    assert chain.devices[0].way == "by ResourceClaim p-claim of driver gpu.example.com"
    if trouble:
        assert stop(chain) == ("claim", f"ResourceClaim p-claim: {trouble}")
    else:
        assert chain.claim.devices == ("gpu.example.com/n1/dev0",)
        assert chain.stopped is None


async def test_it_is_read_from_a_cluster() -> None:
    api = MemoryApi()
    written = [{"name": "g0", "kind": GPU, "resource": GPU, "id": "0000:3b:00.0"}]
    notes = {"dovetail.dev/devices": msgspec.json.encode(written).decode()}
    await api.create(Node, {"metadata": {"name": "n1", "annotations": notes}})
    body = msgspec.to_builtins(pod())
    await api.create(Pod, body, namespace="ns")
    found = await read_chain(api, "p", "ns")
    assert found.devices[0].id == "0000:3b:00.0"
