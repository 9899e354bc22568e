"""The allocation annotation: what is written on pods that got devices, and read from them."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.device import DraOrigin, PluginOrigin
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation_document import (
    ALLOCATION,
    Allocation,
    BadAllocation,
    read_allocation,
)
from dovetail.kube.classes.pod_annotation import annotations_of, rendered_name

GPU, NIC = "resourceclass.dovetail.dev/gpu", "resourceclass.dovetail.dev/fast.nic"
HELD = (DeviceHolding("gpu-0", 2, "gpu", "main"), DeviceHolding("eth1", 1, "fast.nic", "side"))


# Row 13: annotations


def test_row_13_the_truth_and_the_rendering_are_written() -> None:
    written = annotations_of("n1", HELD)
    truth = json.loads(written.pop(ALLOCATION))
    assert len(truth.pop("hash")) == 64
    assert truth == {
        "version": 1,
        "node": "n1",
        "devices": [
            {"container": "main", "class": "gpu", "device": "gpu-0", "units": 2},
            {"container": "side", "class": "fast.nic", "device": "eth1", "units": 1},
        ],
    }
    assert written == {
        "scheduler.alpha.kubernetes.io/resClass_gpu_gpu-0": "2",
        "scheduler.alpha.kubernetes.io/resClass_fast.nic_eth1": "1",
    }


def test_row_13_the_specifications_own_example() -> None:
    held = [DeviceHolding("nvidia-tesla-gpu", 4, "test-res-class")]
    written = annotations_of("n1", held)
    key = "scheduler.alpha.kubernetes.io/resClass_test-res-class_nvidia-tesla-gpu"
    assert written[key] == "4"


def test_row_13_the_rendering_sums_containers() -> None:
    held = [DeviceHolding("d", 1, "gpu", "one"), DeviceHolding("d", 2, "gpu", "two")]
    assert annotations_of("n1", held)["scheduler.alpha.kubernetes.io/resClass_gpu_d"] == "3"


def test_row_13_what_was_written_is_read() -> None:
    assert read_allocation(annotations_of("n1", HELD)) == Allocation("n1", HELD)
    assert read_allocation({"other": "annotation"}) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [('"units":2', '"units":3'), ('"node":"n1"', '"node":"n2"'), ("gpu-0", "gpu-1")],
)
def test_row_13_an_edited_annotation_is_refused(old: str, new: str) -> None:
    written = annotations_of("n1", HELD)
    assert old in written[ALLOCATION]
    with pytest.raises(BadAllocation, match="was edited"):
        read_allocation({ALLOCATION: written[ALLOCATION].replace(old, new)})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "truncated"),
        ("no json", "malformed"),
        ("[]", "Expected `object`"),
        ('{"version":1,"node":"n1"}', "missing required field `devices`"),
        ('{"version":2,"node":"n1","devices":[],"hash":""}', "version 2, 1 is expected"),
        ('{"version":1,"node":"n1","devices":[],"more":1}', "unknown field `more`"),
        ("\ud800", "dovetail.dev/allocation"),
    ],
)
def test_row_13_garbage_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadAllocation, match=message):
        read_allocation({ALLOCATION: text})


def test_row_13_no_units_are_refused_even_with_a_hash_that_fits() -> None:
    entry = '{"container":"","class":"gpu","device":"d","units":0}'
    bare = f'{{"version":1,"node":"n1","devices":[{entry}],"hash":""}}'
    digest = hashlib.sha256(bare.encode()).hexdigest()
    with pytest.raises(BadAllocation, match="0 units of device 'd'"):
        read_allocation({ALLOCATION: bare.replace('"hash":""', f'"hash":"{digest}"')})


def test_row_13_over_long_names_end_in_a_hash() -> None:
    exact = rendered_name("c" * 20, "d" * 33)
    assert exact == f"resClass_{'c' * 20}_{'d' * 33}"
    longer = rendered_name("c" * 20, "d" * 34)
    assert len(longer) == 63
    assert longer.startswith(f"resClass_{'c' * 20}_{'d' * 22}-")
    assert longer != rendered_name("c" * 20, "d" * 35)


def test_row_13_devices_whose_names_annotations_cannot_have() -> None:
    name = rendered_name("gpu", "0000:3b:00.0")
    assert name.startswith("resClass_gpu_0000-3b-00.0-")
    assert name != rendered_name("gpu", "0000-3b-00.0")


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,50}[a-z0-9])?", fullmatch=True), st.text(min_size=1))
def test_row_13_every_rendering_is_the_name_of_an_annotation(name: str, device: str) -> None:
    found = rendered_name(name, device)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", found)


@given(
    st.text(),
    st.lists(st.builds(DeviceHolding, st.text(), st.integers(1, 2**31), st.text(), st.text())).map(
        tuple
    ),
)
def test_row_13_anything_written_is_read(node: str, held: tuple[DeviceHolding, ...]) -> None:
    assert read_allocation(annotations_of(node, held)) == Allocation(node, held)


def test_the_node_agent_is_told_by_which_id_a_plugin_knows_a_device() -> None:
    gpu = PluginOrigin("vendor.com/gpu", "GPU-8a:0")
    held = (DeviceHolding("gpu-0", 1, "gpu", "main"), DeviceHolding("d", 1, "gpu", "main"))
    written = annotations_of("n1", held, {"gpu-0": gpu, "d": DraOrigin("x", "y", "d")})
    found = read_allocation(written)
    assert found == Allocation("n1", held, {"gpu-0": gpu})
    entries = json.loads(written[ALLOCATION])["devices"]
    assert [each.get("id") for each in entries] == ["GPU-8a:0", None]
