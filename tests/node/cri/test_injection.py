"""Settings in messages of CRI and of NRI."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.node.common.container_settings import INTEGER_PROPERTIES, ContainerSettings
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.cri import injection
from dovetail.node.nri import adjustment
from dovetail.node.wire import cri, nri
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount
from dovetail.wire.codec import cooked, decode, raw_class

EVERYTHING = ContainerSettings(
    numbers={name: 1000 + at for at, name in enumerate(INTEGER_PROPERTIES)},
    cpus="0-3",
    mems="1",
    hugepages={"2MB": 4 << 20, "1GB": 1 << 30},
    unified={"io.weight": "default 50", "memory.high": "max"},
    envs={"NIC": "eth0"},
    annotations={"a": "1"},
    mounts=(Mount(container_path="/m", host_path="/h", read_only=True),),
    devices=(DeviceSpec(container_path="/dev/x", host_path="/dev/null", permissions="rw"),),
    cdi_devices=("vendor.com/gpu=0",),
)


def injected(settings: ContainerSettings, **config: Any) -> cri.ContainerConfig:
    request = raw_class(cri.CreateContainerRequest)()
    request.config.MergeFrom(type(request.config)(**config))
    injection.inject(request, settings)
    return decode(cri.CreateContainerRequest, request.SerializeToString()).config


def resources(settings: ContainerSettings, **fields: Any) -> cri.LinuxContainerResources:
    request = raw_class(cri.UpdateContainerResourcesRequest)()
    request.linux.MergeFrom(type(request.linux)(**fields))
    injection.put_resources(request.linux, settings)
    return cooked(cri.LinuxContainerResources, request.linux)


def test_every_number_of_the_settings_has_a_field() -> None:
    assert set(injection.FIELDS) == set(INTEGER_PROPERTIES)


def test_everything_is_injected_and_resources_are_read_back() -> None:
    config = injected(EVERYTHING)
    assert config.linux is not None
    assert config.linux.resources is not None
    back = injection.read_back(config.linux.resources)
    for field in ("numbers", "cpus", "mems", "hugepages", "unified"):
        assert getattr(back, field) == getattr(EVERYTHING, field), field
    assert config.envs == (cri.KeyValue(key="NIC", value=b"eth0"),)
    assert config.annotations == {"a": "1"}
    assert config.mounts == (cri.Mount(container_path="/m", host_path="/h", readonly=True),)
    device = cri.Device(container_path="/dev/x", host_path="/dev/null", permissions="rw")
    assert config.devices == (device,)
    assert config.CDI_devices == (cri.CDIDevice(name="vendor.com/gpu=0"),)


def test_resources_of_ours_win_and_others_stay() -> None:
    found = resources(
        ContainerSettings(cpus="1", hugepages={"2MB": 5}, unified={"memory.high": "9"}),
        cpuset_cpus="0",
        cpuset_mems="1",
        cpu_shares=7,
        hugepage_limits=[{"page_size": "2MB", "limit": 1}, {"page_size": "1GB", "limit": 2}],
        unified=[{"key": "memory.high", "value": "1"}, {"key": "io.weight", "value": "2"}],
    )
    assert (found.cpuset_cpus, found.cpuset_mems, found.cpu_shares) == ("1", "1", 7)
    assert {each.page_size: each.limit for each in found.hugepage_limits} == {"2MB": 5, "1GB": 2}
    assert found.unified == {"memory.high": "9", "io.weight": "2"}


def test_what_the_pod_says_itself_stays() -> None:
    config = injected(
        EVERYTHING,
        envs=[{"key": "NIC", "value": b"\xffmine"}],
        annotations=[{"key": "a", "value": "mine"}],
        mounts=[{"container_path": "/m", "host_path": "/mine"}],
    )
    assert [each.value for each in config.envs] == [b"\xffmine"]
    assert config.annotations == {"a": "mine"}
    assert [each.host_path for each in config.mounts] == ["/mine"]


def test_no_settings_change_no_byte() -> None:
    request = raw_class(cri.CreateContainerRequest)()
    request.config.metadata.name = "c"
    before = request.SerializeToString()
    injection.inject(request, ContainerSettings())
    assert request.SerializeToString() == before


def test_fields_that_we_do_not_know_survive() -> None:
    later = b"\xfa\x3f\x03new"  # field 1023 of a newer interface
    request = raw_class(cri.CreateContainerRequest).FromString(later)
    injection.inject(request, EVERYTHING)
    assert later in request.SerializeToString()


def test_sets_are_read_back_as_the_kernel_writes_them() -> None:
    back = injection.read_back(cri.LinuxContainerResources(cpuset_cpus="3,0,1,2", cpuset_mems="x"))
    assert (back.cpus, back.mems) == ("0-3", "x")


def test_adjustment_by_nri_has_everything() -> None:
    null = nri.LinuxDevice(path="/dev/null", type="c", major=1, minor=3)
    found = adjustment.adjustment(nri.Container(), EVERYTHING, {"/dev/null": null})
    assert found.linux is not None
    linux = nri.LinuxContainer(
        resources=found.linux.resources, oom_score_adj=found.linux.oom_score_adj
    )
    back = adjustment.read_back(nri.Container(linux=linux))
    for field in ("numbers", "cpus", "mems", "hugepages", "unified"):
        assert getattr(back, field) == getattr(EVERYTHING, field), field
    assert found.env == (nri.KeyValue(key="NIC", value="eth0"),)
    assert found.annotations == {"a": "1"}
    bound = ("rbind", "rprivate", "ro")
    assert found.mounts == (nri.Mount(destination="/m", type="bind", source="/h", options=bound),)
    assert found.linux.devices == (nri.LinuxDevice(path="/dev/x", type="c", major=1, minor=3),)


def test_adjustment_by_nri_leaves_what_the_container_has() -> None:
    null = nri.LinuxDevice(path="/dev/null", type="c", major=1, minor=3)
    container = nri.Container(
        env=("NIC=mine",),
        annotations={"a": "mine"},
        mounts=(nri.Mount(destination="/m"),),
        linux=nri.LinuxContainer(devices=(nri.LinuxDevice(path="/dev/x"),)),
    )
    found = adjustment.adjustment(container, EVERYTHING, {"/dev/null": null})
    assert (found.env, found.annotations, found.mounts) == ((), {}, ())
    assert found.linux is not None
    assert found.linux.devices == ()


def test_a_cdi_device_that_the_kubelet_names_is_named_once() -> None:
    named = [{"name": "vendor.com/gpu=0"}, {"name": "vendor.com/gpu=1"}]
    found = injected(ContainerSettings(cdi_devices=("vendor.com/gpu=0",)), CDI_devices=named)
    assert [each.name for each in found.CDI_devices] == ["vendor.com/gpu=0", "vendor.com/gpu=1"]


def test_a_place_where_the_kubelet_put_another_device_is_refused() -> None:
    same = {"container_path": "/dev/x", "host_path": "/dev/null", "permissions": "rw"}
    assert len(injected(EVERYTHING, devices=[same]).devices) == 1
    with pytest.raises(AdmissionRejected, match="it has /dev/zero of the kubelet") as refused:
        injected(EVERYTHING, devices=[{**same, "host_path": "/dev/zero"}])
    assert refused.value.reason == "conflicting_settings"
