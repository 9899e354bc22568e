"""Pods with the devices on them, and which allocations are not believed."""

from __future__ import annotations

import pytest

from dovetail.devices.allocation_document import ALLOCATION
from dovetail.node.class_devices.source import ClassDevices
from dovetail.node.class_devices.trust import Trust, Trusting
from dovetail.node.common.pods import Pod
from dovetail.node.common.ports import AdmissionRejected
from tests.support.node.class_devices import GPU, GPUS, NODE, given
from tests.support.node.fakes import FakeSource, container, pod, sandbox

OWN = given("a", container("main", **{GPUS: 1}), held={"main": ["GPU-0"]})


class Distrusting:
    async def why_not(self) -> str | None:
        return "the guard is not installed"


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
