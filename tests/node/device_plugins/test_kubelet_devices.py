"""The kubelet's checkpoint, as its versions write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.device_plugins.kubelet_devices import (
    CHECKPOINT,
    KubeletDevices,
    KubeletHoldings,
    KubeletUnreadable,
)


def entry(ids: Any, resource: str = "vendor.com/gpu") -> dict[str, Any]:
    return {"PodUID": "u", "ContainerName": "c", "ResourceName": resource, "DeviceIDs": ids}


def document(entries: Any) -> str:
    return json.dumps({"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, set()),
        (document(None), set()),
        (document([]), set()),
        (document([entry({"0": ["a"], "-1": ["b", "c"]})]), {"a", "b", "c"}),
        (document([entry(["a", "b"])]), {"a", "b"}),
        (document([entry(None), entry({"0": ["x"]}, "vendor.com/other")]), set()),
    ],
    ids=["missing", "null", "empty", "by node", "by list", "others"],
)
async def test_what_is_written(tmp_path: Path, text: str | None, expected: set[str]) -> None:
    if text is not None:
        (tmp_path / CHECKPOINT).write_text(text)
    found = await KubeletDevices(tmp_path, tmp_path / "none.sock").read()
    assert found.told is None
    assert found.of("vendor.com/gpu") == expected
    assert not found.doubtful("vendor.com/gpu")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"Data": 1}', document([entry(7)]), document([entry({"0": [7]})]), "{" * 5]
)
async def test_what_cannot_be_read_is_not_taken_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / CHECKPOINT).write_text(text)
    with pytest.raises(KubeletUnreadable, match=CHECKPOINT):
        await KubeletDevices(tmp_path, tmp_path / "none.sock").read()


def test_what_only_the_checkpoint_has_may_have_ended() -> None:
    assert KubeletHoldings({"r": {"a", "b"}}, {"r": {"a"}}).doubtful("r")
    assert not KubeletHoldings({"r": {"a"}}, {"r": {"a", "b"}}).doubtful("r")
    assert not KubeletHoldings({"r": {"a"}}, {}).doubtful("other")
