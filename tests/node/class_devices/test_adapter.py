"""A device plugin as a resource plugin: hints of devices, and what is no question for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.class_devices.adapter import MOST_NODES, hints
from dovetail.node.class_devices.names import class_resource, device_resource, requested_name
from dovetail.node.common.device_plugins import PluginDevice

NODES = st.frozensets(st.integers(0, MOST_NODES - 1), max_size=3)


def devices(*nodes: tuple[int, ...]) -> list[PluginDevice]:
    return [PluginDevice(str(at), numa_nodes=each) for at, each in enumerate(nodes)]


def told(*nodes: tuple[int, ...]) -> list[tuple[tuple[int, ...], bool]] | None:
    found = hints(devices(*nodes))
    return None if found is None else [(each.nodes, each.preferred) for each in found.hints]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], None),
        ([()], None),
        ([(1,)], [((1,), True)]),
        ([(1,), ()], [((1,), True)]),
        ([(0,), (1,)], [((0, 1), True)]),
        ([(0, 1)], [((0,), True), ((1,), True), ((0, 1), False)]),
        ([(0, 1), (1,)], [((1,), True), ((0, 1), False)]),
        ([(each,) for each in range(9)], [(tuple(range(9)), True)]),
    ],
)
def test_hints_are_the_sets_of_nodes_near_to_all_devices(
    nodes: list[tuple[int, ...]], expected: object
) -> None:
    assert told(*nodes) == expected


@given(st.lists(NODES, max_size=4))
def test_every_hint_is_near_to_every_device_and_one_is_preferred(
    nodes: list[frozenset[int]],
) -> None:
    found = told(*(tuple(sorted(each)) for each in nodes))
    near = [each for each in nodes if each]
    if not near:
        assert found is None
        return
    assert found is not None
    assert all({*hint} & each for hint, _ in found for each in near)
    assert any(preferred for _, preferred in found)
    assert len({len(hint) for hint, preferred in found if preferred}) == 1


def test_names() -> None:
    assert requested_name("vendor.com/gpu") == class_resource("vendor.com/gpu")
    assert device_resource("class:vendor.com/gpu") == "vendor.com/gpu"
    assert requested_name("nic") == "NIC"
    assert requested_name("hugepages-2Mi") == "hugepages-2Mi"
