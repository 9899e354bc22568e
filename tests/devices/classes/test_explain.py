"""Why a class selects a device or not, in words and numbers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.selectors.condition_text import read
from dovetail.core.selectors.selector import Selector, compiled
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.explain import explain, overview
from tests.devices.selectors import devices, selectors

BIG = DeviceClass("big", (read("Kind in (gpu),memory>=30G,!mig"), read("Kind in (tpu,npu)")))


def device(name: str, kind: str, units: int = 1, healthy: bool = True, **more: str) -> Device:
    return Device(node="n1", name=name, kind=kind, units=units, healthy=healthy, properties=more)


def words(given: Device) -> list[list[str]]:
    found = explain(BIG, given)
    return [[each.words for each in branch.verdicts if not each.met] for branch in found.branches]


def test_each_expression_is_met_or_not_with_the_value_seen() -> None:
    found = explain(BIG, device("g", "gpu", memory="16G"))
    assert (found.class_name, found.node, found.device, found.selected) == ("big", "n1", "g", False)
    first, second = found.branches
    assert not first.met
    assert [(each.met, each.seen, each.words) for each in first.verdicts] == [
        (True, "gpu", "Kind is 'gpu', equal to gpu"),
        (False, "16G", "memory is '16G', not at least 30G"),
        (True, None, "there is no mig"),
    ]
    assert [each.words for each in second.verdicts] == ["Kind is 'gpu', not one of tpu, npu"]


def test_what_is_lacking_in_words() -> None:
    assert words(device("g", "gpu", mig="on")) == [
        ["there is no memory", "mig is 'on'"],
        ["Kind is 'gpu', not one of tpu, npu"],
    ]
    assert words(device("g", "gpu", memory="32000000000"))[0] == [
        "memory is '32000000000', a bare number: not comparable with '30G', an amount with a unit"
    ]


def test_not_in_is_worded_from_the_other_side() -> None:
    cls = DeviceClass("c", (read("Kind notin (gpu,tpu)"),))
    assert explain(cls, device("g", "gpu")).branches[0].verdicts[0].words == (
        "Kind is 'gpu', one of gpu, tpu"
    )
    assert explain(cls, device("n", "nic")).branches[0].verdicts[0].words == (
        "Kind is 'nic', not one of gpu, tpu"
    )


def test_a_class_over_the_fleet() -> None:
    fleet = [
        *(device(f"a{at}", "gpu", memory="80G") for at in range(3)),
        device("sick", "gpu", healthy=False, memory="80G"),
        device("pool", "tpu", units=8),
        *(device(f"s{at}", "gpu", memory="16G") for at in range(2)),
        device("nic", "nic"),
    ]
    found = overview(BIG, fleet)
    assert (found.devices, found.selected, found.units, found.healthy) == (8, 5, 12, 11)
    assert [[(each.met, each.left) for each in steps] for steps in found.branches] == [
        [(6, 6), (4, 4), (8, 4)],
        [(1, 1)],
    ]
    assert [(each.device, each.alike, each.branch) for each in found.nearest] == [
        ("s0", 2, 0),
        ("nic", 1, 1),
    ]
    assert found.nearest[0].lacks[0].words == "memory is '16G', not at least 30G"


def test_the_nearest_are_as_many_as_asked() -> None:
    fleet = [device("a", "x"), device("b", "y"), device("c", "z")]
    assert len(overview(BIG, fleet, nearest=2).nearest) == 2


def test_a_class_without_selectors_selects_nothing() -> None:
    blank = DeviceClass("blank", ((),))
    assert not explain(blank, device("g", "gpu")).selected
    assert overview(blank, [device("g", "gpu")]).selected == 0
    assert overview(DeviceClass("none"), [device("g", "gpu")]).nearest == ()


@settings(deadline=None)
@given(selectors(), st.lists(devices(), max_size=5))
def test_the_explanation_agrees_with_the_selection(selector: Selector, fleet: list[Device]) -> None:
    cls = DeviceClass("c", selector)
    chosen = [each for each in fleet if compiled(selector)(each.attributes)]
    assert [each for each in fleet if explain(cls, each).selected] == chosen
    found = overview(cls, fleet)
    assert found.selected == len(chosen)
    assert found.units == sum(each.units for each in chosen)
