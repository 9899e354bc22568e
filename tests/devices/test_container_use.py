"""Container use: who finds which of the pod's devices inside."""

from __future__ import annotations

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.container_use import ContainerUse, uses


def container(name: str, *, stays: bool = True, **units: int) -> ContainerUse:
    return ContainerUse(name, stays, units)


def held(device: str, container: str, class_name: str = "gpu", units: int = 1) -> DeviceHolding:
    return DeviceHolding(device, units, class_name, container)


def names(found: dict[str, tuple[DeviceHolding, ...]]) -> dict[str, list[str]]:
    return {name: [each.device for each in own] for name, own in found.items()}


def test_containers_use_what_they_hold() -> None:
    pod = [container("a", gpu=1), container("b", gpu=2)]
    found = uses(pod, [held("d0", "a"), held("d1", "b"), held("d2", "b")])
    assert names(found) == {"a": ["d0"], "b": ["d1", "d2"]}


def test_an_init_container_uses_what_later_ones_hold() -> None:
    pod = [container("init", stays=False, gpu=1), container("a", gpu=1), container("b", gpu=1)]
    found = uses(pod, [held("d0", "a"), held("d1", "b")])
    assert names(found) == {"init": ["d0"], "a": ["d0"], "b": ["d1"]}


def test_what_goes_beyond_that_is_its_own_and_comes_first() -> None:
    pod = [container("init", stays=False, gpu=2), container("a", gpu=1)]
    found = uses(pod, [held("d9", "init"), held("d0", "a")])
    assert names(found) == {"init": ["d9", "d0"], "a": ["d0"]}


def test_init_containers_use_what_is_held_for_one_of_them() -> None:
    first, second = container("i", stays=False, gpu=2), container("j", stays=False, gpu=2)
    found = uses([first, second], [held("d0", "i"), held("d1", "i")])
    assert names(found) == {"i": ["d0", "d1"], "j": ["d0", "d1"]}


def test_a_sidecar_that_started_before_keeps_its_own() -> None:
    pod = [container("side", gpu=1), container("init", stays=False, gpu=1), container("a", gpu=1)]
    found = uses(pod, [held("d0", "side"), held("d1", "a")])
    assert names(found) == {"side": ["d0"], "init": ["d1"], "a": ["d1"]}


def test_a_sidecar_that_starts_later_lends_its_own() -> None:
    pod = [container("init", stays=False, gpu=1), container("side", gpu=1), container("a", gpu=1)]
    found = uses(pod, [held("d0", "side"), held("d1", "a")])
    assert names(found)["init"] == ["d0"]


def test_classes_are_not_mixed_and_units_are_counted() -> None:
    pod = [container("init", stays=False, pages=3, gpu=1), container("a", pages=4, gpu=1)]
    found = uses(pod, [held("p", "a", "pages", 4), held("d0", "a")])
    assert found["init"] == (held("p", "init", "pages", 3), held("d0", "init"))


def test_fewer_holdings_than_asked_for_are_what_there_is() -> None:
    assert names(uses([container("i", stays=False, gpu=2)], [held("d0", "gone")])) == {"i": ["d0"]}
