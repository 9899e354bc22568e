"""The allocations of a container become settings; what contradicts itself is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.node.admission.merge_settings import settings_of
from dovetail.node.common.container_settings import INTEGER_PROPERTIES, ContainerSettings
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount, ResourceAllocationInfo


def sets(name: str, result: str, **more: Any) -> ResourceAllocationInfo:
    return ResourceAllocationInfo(oci_property_name=name, allocation_result=result, **more)


def refused(**allocations: ResourceAllocationInfo) -> tuple[str, str]:
    with pytest.raises(AdmissionRejected) as caught:
        settings_of(allocations)
    return caught.value.reason, str(caught.value)


def test_all_properties_by_name() -> None:
    numbers = {f"r{at}": sets(name, str(at)) for at, name in enumerate(INTEGER_PROPERTIES)}
    found = settings_of(
        {
            **numbers,
            "cpu": sets("CpusetCpus", "0,1,8-9"),
            "memory": sets("CpusetMems", "1"),
            "io": sets("Unified", '{"io.weight": "default 50"}'),
            "huge": sets("HugepageLimits", '{"2MB": 4194304}'),
            "nic": ResourceAllocationInfo(
                envs={"ADDRESS": "::1"},
                annotations={"kubernetes.io/host-netns-path": "/ns1"},
                mounts=(Mount(container_path="/m"),),
                devices=(DeviceSpec(container_path="/dev/x"),),
            ),
        }
    )
    assert found == ContainerSettings(
        numbers={name: at for at, name in enumerate(INTEGER_PROPERTIES)},
        cpus="0-1,8-9",
        mems="1",
        unified={"io.weight": "default 50"},
        hugepages={"2MB": 4194304},
        envs={"ADDRESS": "::1"},
        annotations={"kubernetes.io/host-netns-path": "/ns1"},
        mounts=(Mount(container_path="/m"),),
        devices=(DeviceSpec(container_path="/dev/x"),),
    )


def test_negative_numbers_are_numbers() -> None:
    assert settings_of({"a": sets("CpuQuota", "-1")}).numbers == {"CpuQuota": -1}


def test_nothing_is_left_as_it_is() -> None:
    assert settings_of({"a": sets("CpusetCpus", ""), "b": sets("", "x")}) == ContainerSettings()


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (sets("CpusetCpus", "0-1"), sets("CpusetCpus", "0-2"), "property CpusetCpus"),
        (sets("CpuShares", "1"), sets("CpuShares", "2"), "property CpuShares"),
        (sets("Unified", '{"a": "1"}'), sets("Unified", '{"a": "2"}'), "cgroup file a"),
        (
            sets("HugepageLimits", '{"2MB": 1}'),
            sets("HugepageLimits", '{"2MB": 2}'),
            "hugepage limit of 2MB",
        ),
        (
            ResourceAllocationInfo(envs={"A": "1"}),
            ResourceAllocationInfo(envs={"A": "2"}),
            "environment variable A",
        ),
        (
            ResourceAllocationInfo(annotations={"a": "1"}),
            ResourceAllocationInfo(annotations={"a": "2"}),
            "annotation a",
        ),
        (
            ResourceAllocationInfo(mounts=(Mount(container_path="/m", host_path="/1"),)),
            ResourceAllocationInfo(mounts=(Mount(container_path="/m", host_path="/2"),)),
            "mount at /m",
        ),
        (
            ResourceAllocationInfo(devices=(DeviceSpec(container_path="/d", host_path="/1"),)),
            ResourceAllocationInfo(devices=(DeviceSpec(container_path="/d", host_path="/2"),)),
            "device at /d",
        ),
    ],
)
def test_two_values_for_one_thing_are_a_conflict(
    one: ResourceAllocationInfo, other: ResourceAllocationInfo, what: str
) -> None:
    reason, words = refused(b=other, a=one)
    assert reason == "conflicting_settings"
    assert words.startswith(f"a and b set the {what} to different values")
    settings_of({"a": one, "b": one})


def test_equal_sets_are_equal_however_they_are_written() -> None:
    found = settings_of({"a": sets("CpusetCpus", "0-1,2"), "b": sets("CpusetCpus", "2,0,1")})
    assert found.cpus == "0-2"


def test_different_files_of_unified_add_up() -> None:
    found = settings_of({"a": sets("Unified", '{"a": "1"}'), "b": sets("Unified", '{"b": "2"}')})
    assert found.unified == {"a": "1", "b": "2"}


def test_an_unknown_property_is_named_and_the_known_ones_are_told() -> None:
    reason, words = refused(cpu=sets("CpuSetCpus", "0"))
    assert reason == "unknown_property"
    assert "'CpuSetCpus'" in words
    assert "CpusetCpus" in words.split("There are ")[1]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        *(("CpuShares", each) for each in ("x", "1.5", "1e3", "1_000", "9" * 19, "9" * 30)),
        *(("CpusetCpus", each) for each in ("x", "3-1", "1-", "0-99999999")),
        *(("Unified", each) for each in ("x", "[]", '{"a": 1}', "[" * 10**5)),
        *(("Unified", f'{{"{each}": "1"}}') for each in ("../cgroup.procs", "a/b", "", ".")),
        *(("HugepageLimits", each) for each in ('{"2MB": "1"}', '{"2MB": true}', '{"2MB": -1}')),
    ],
)
def test_values_that_make_no_sense_are_the_plugins_fault(name: str, result: str) -> None:
    reason, words = refused(cpu=sets(name, result))
    assert reason == "plugin_garbage"
    assert words.startswith(f"the plugin of cpu sets {name} to ")


def test_cdi_devices_of_all_plugins_each_once() -> None:
    found = settings_of(
        {
            "class:b": ResourceAllocationInfo(cdi_devices=("v/b=0", "v/common=0")),
            "class:a": ResourceAllocationInfo(cdi_devices=("v/a=1", "v/common=0")),
        }
    )
    assert found.cdi_devices == ("v/a=1", "v/common=0", "v/b=0")
