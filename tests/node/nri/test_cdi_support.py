"""Which runtimes bring in CDI devices that are asked for by NRI."""

from __future__ import annotations

import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.nri.adjustment import adjustment
from dovetail.node.nri.cdi_support import why_no_cdi
from dovetail.node.wire import nri


@pytest.mark.parametrize("version", ["2.1.0", "v2.1.4", "2.2.0-rc.0", "1.7.30", "3.0.0", "2.1"])
def test_these_do(version: str) -> None:
    assert why_no_cdi("containerd", version) is None


@pytest.mark.parametrize("version", ["1.7.24~ds1-6+b4", "v1.7.29", "2.0.7", "1.6.20", "1.8.0"])
def test_these_would_leave_them_out(version: str) -> None:
    assert f"containerd {version} leaves out CDI devices" in (
        why_no_cdi("containerd", version) or ""
    )


@pytest.mark.parametrize(("name", "version"), [("cri-o", "1.35.0"), ("", ""), ("containerd", "?")])
def test_of_others_nobody_knows(name: str, version: str) -> None:
    assert "is not known to bring in CDI devices" in (why_no_cdi(name, version) or "")


def test_they_are_asked_for_by_their_names() -> None:
    settings = ContainerSettings(cdi_devices=("vendor.com/gpu=0", "vendor.com/gpu=1"))
    found = adjustment(nri.Container(), settings, {})
    assert [each.name for each in found.CDI_devices] == ["vendor.com/gpu=0", "vendor.com/gpu=1"]
