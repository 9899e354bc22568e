"""The three classes that the specification shows select exactly the devices it describes."""

from __future__ import annotations

import pytest
import yaml

from dovetail.classes.resource_class import read
from dovetail.core.device import Device
from dovetail.core.selector import compiled


def example(name: str, kind: str, key: str, value: str) -> str:
    return f"""
kind: ResourceClass
metadata:
  name: {name}
spec:
  resourceSelector:
    - matchExpressions:
        - key: "Kind"
          operator: "In"
          values:
            - "{kind}"
        - key: "{key}"
          operator: "GtEq"
          values:
            - "{value}"
"""


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


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        (
            example("nvidia.high.mem", "nvidia-gpu", "memory", "30G"),
            {"gpu-30", "gpu-30i", "gpu-80b"},
        ),
        (
            example("hugepages-1gig", "huge-pages", "size", "1G"),
            {"pages-1g", "pages-1gi"},
        ),
        (
            example("fast.nic", "nic", "speed", "40GBPS"),
            {"nic-40", "nic-100", "nic-bytes"},
        ),
    ],
    ids=["nvidia.high.mem", "hugepages-1gig", "fast.nic"],
)
def test_example(text: str, selected: set[str]) -> None:
    document = yaml.safe_load(text)
    cls = read(document["metadata"]["name"], document["spec"])
    selects = compiled(cls.selector)
    assert {each.name for each in DEVICES if selects(each.attributes)} == selected
