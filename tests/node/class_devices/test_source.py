"""Pods with the devices on them, and which allocations are not believed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from dovetail.core.device import PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import ALLOCATION
from dovetail.node.class_devices.source import ClassDevices
from dovetail.node.class_devices.trust import Trust, Trusting
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sources.away import PodsWhileAway
from dovetail.node.sources.kubelet import KubeletAway
from dovetail.node.sources.pod_memory import PodMemory
from tests.support.node.class_devices import GPU, GPUS, NODE, given
from tests.support.node.fakes import FakeSource, container, pod, sandbox

OWN = given("a", container("main", **{GPUS: 1}), held={"main": ["GPU-0"]})


class Distrusting:
    async def why_not(self) -> str | None:
        return "the guard is not installed"


class Guarded:
    async def why_not(self) -> str | None:
        return None


class Away:
    async def pod(self, sandbox: Sandbox) -> Pod | None:
        raise KubeletAway(f"nobody tells of {sandbox.name}")

    async def active(self) -> Sequence[Pod] | None:
        return None


def source(*pods: Pod, trust: Trust | None = None) -> ClassDevices:
    return ClassDevices(FakeSource(*pods), trust or Trusting(), NODE)


async def refusal(own: Pod, trust: Trust | None = None) -> AdmissionRejected:
    with pytest.raises(AdmissionRejected) as refused:
        await source(own, trust=trust).pod(sandbox(own))
    return refused.value


async def test_pods_ask_for_their_devices() -> None:
    found = await source(OWN).pod(sandbox(OWN))
    assert found is not None
    assert found.containers[0].requests[f"class:{GPU}"] == 1
    assert await source(OWN).active() == [found]
    assert await source().pod(sandbox(OWN)) is None


async def test_pods_without_devices_are_as_they_are_whomever_is_trusted() -> None:
    plain = pod("b", container("main", cpu=1))
    assert await source(plain, trust=Distrusting()).pod(sandbox(plain)) == plain


async def test_an_allocation_that_anybody_can_have_written_is_not_believed() -> None:
    refused = await refusal(OWN, Distrusting())
    assert (refused.reason, str(refused)) == (
        "annotation_not_trusted",
        "the guard is not installed",
    )


async def test_an_allocation_of_another_node_is_refused() -> None:
    refused = await refusal(
        given("a", container("main", **{GPUS: 1}), held={"main": ["GPU-0"]}, node="there")
    )
    assert refused.reason == "bad_request"
    assert "those of node there, and this is here" in str(refused)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no document", "malformed"),
        (OWN.annotations[ALLOCATION].replace("GPU-0", "GPU-1"), "was edited"),
        ('{"version":2,"node":"here","devices":[]}', "version 2"),
    ],
)
async def test_an_allocation_that_nobody_wrote_is_refused(text: str, words: str) -> None:
    own = pod("a", container("main", **{GPUS: 1}), annotations={ALLOCATION: text})
    refused = await refusal(own)
    assert refused.reason == "bad_request"
    assert words in str(refused)
    assert await source(own).active() == [own], "it is there, whatever is on it"


@pytest.mark.parametrize("origin", ["file", "http"])
async def test_what_never_came_by_the_guard_is_not_believed(origin: str) -> None:
    own = msgspec.structs.replace(
        OWN, annotations={**OWN.annotations, "kubernetes.io/config.source": origin}
    )
    refused = await refusal(own, Guarded())
    assert refused.reason == "annotation_not_trusted"
    assert "static pod" in str(refused)
    assert "devices.trust_annotations" in str(refused)
    assert await source(own).pod(sandbox(own)), "an agent that believes everybody"


async def test_a_pod_of_which_only_the_runtime_knows_is_refused() -> None:
    """Which containers come first is not told, so nobody knows which of them has what."""
    away = PodsWhileAway(Away(), PodMemory(Path("/nowhere")), None, strangers_start=True)
    with pytest.raises(AdmissionRejected) as refused:
        await ClassDevices(away, Trusting(), NODE).pod(sandbox(OWN))
    assert refused.value.reason == "pod_unknown"
    assert refused.value.later
    plain = pod("b", container("main", cpu=1))
    assert await ClassDevices(away, Trusting(), NODE).pod(sandbox(plain))


@pytest.mark.parametrize(
    ("holdings", "origins", "words"),
    [
        (
            [DeviceHolding("pool", 10**12, "gpu", "main")],
            {"pool": PluginOrigin(GPU, "")},
            "1000000000000 units of pool",
        ),
        (
            [DeviceHolding("g0", 1, "gpu", "main"), DeviceHolding("g1", 1, "gpu", "main")],
            {"g0": PluginOrigin(GPU, "same"), "g1": PluginOrigin(GPU, "same")},
            "are both vendor.com/gpu same",
        ),
    ],
)
async def test_devices_that_no_plugin_can_have_are_refused(
    holdings: list[DeviceHolding], origins: dict[str, PluginOrigin], words: str
) -> None:
    own = given("a", container("main", **{GPUS: 2}), held={}, holdings=holdings, origins=origins)
    refused = await refusal(own)
    assert refused.reason == "bad_request"
    assert words in str(refused)
    assert await source(own).active() == [own]


async def test_a_device_has_one_origin() -> None:
    one = given("a", container("main", **{GPUS: 1}), held={"main": ["GPU-0"]})
    document = msgspec.json.decode(one.annotations[ALLOCATION])
    (first,) = document["devices"]
    document["devices"] = [first, {**first, "id": "GPU-1"}]
    bare = {**document, "hash": ""}
    digest = hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
    text = msgspec.json.encode({**document, "hash": digest}).decode()
    refused = await refusal(msgspec.structs.replace(one, annotations={ALLOCATION: text}))
    assert "GPU-0 is told to be" in str(refused)
