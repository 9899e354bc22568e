"""The three classes that the specification shows select exactly the devices it describes."""

from __future__ import annotations

import pytest

from dovetail.core.device import Device
from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.classes.documents import read
from tests.support import spec_examples

pytestmark = pytest.mark.skipif(not spec_examples.THERE, reason=spec_examples.LEFT_OUT)


def device(name: str, kind: str, **properties: str) -> Device:
    return Device(node="node", name=name, kind=kind, properties=properties)


DEVICES = (
    device("gpu-16", "nvidia-gpu", memory="16G"),
    device("gpu-29.9", "nvidia-gpu", memory="29900M"),
    device("gpu-30", "nvidia-gpu", memory="30G"),
    device("gpu-30i", "nvidia-gpu", memory="30Gi"),
    device("gpu-80b", "nvidia-gpu", memory="80GB"),
    device("gpu-case", "nvidia-gpu", Memory="80G"),
    device("gpu-bare", "nvidia-gpu", memory="80000000000"),
    device("gpu-other", "amd-gpu", memory="64G"),
    device("pages-2m", "huge-pages", size="2Mi"),
    device("pages-1g", "huge-pages", size="1G"),
    device("pages-1gi", "huge-pages", size="1Gi"),
    device("nic-10", "nic", speed="10GBPS"),
    device("nic-40", "nic", speed="40GBPS"),
    device("nic-100", "nic", speed="100gbps"),
    device("nic-bytes", "nic", speed="5GB/s"),
    device("nic-bare", "nic", speed="40G"),
    device("disk", "disk", size="4T", speed="48Gbps", memory="32G"),
)


SELECTED = {
    "nvidia.high.mem": {"gpu-30", "gpu-30i", "gpu-80b"},
    "hugepages-1gig": {"pages-1g", "pages-1gi"},
    "fast.nic": {"nic-40", "nic-100", "nic-bytes"},
}


def test_these_are_all_the_examples_there_are() -> None:
    assert spec_examples.resource_classes().keys() == SELECTED.keys()


@pytest.mark.parametrize("name", SELECTED)
def test_example(name: str) -> None:
    document = spec_examples.resource_classes()[name]
    selects = compile_selector(read(name, document["spec"]).selector)
    assert {each.name for each in DEVICES if selects(each.attributes)} == SELECTED[name]
