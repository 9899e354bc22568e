"""Why a class selects a device or not, in words and numbers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.explanation import Finding, PlaceFindings, Reason, Verdict
from dovetail.core.selectors.condition_text import read
from dovetail.core.selectors.selector import Selector, compile_selector
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.explain import explain_each, explain_fleet
from tests.devices.selectors import devices, selectors

BIG = DeviceClass("big", (read("Kind in (gpu),memory>=30G,!mig"), read("Kind in (tpu,npu)")))


def device(name: str, kind: str, units: int = 1, healthy: bool = True, **more: str) -> Device:
    return Device(node="n1", name=name, kind=kind, units=units, healthy=healthy, properties=more)


def explained(cls: DeviceClass, given: Device) -> PlaceFindings:
    (place,) = explain_each(cls, [given]).explanation.nearest
    return place


def of_selector(place: PlaceFindings, number: str | None) -> list[Finding]:
    return [each for each in place.findings if each.group == number]


def words(given: Device) -> list[list[str]]:
    found = explained(BIG, given)
    return [
        [each.words for each in of_selector(found, number) if not each.met] for number in ("1", "2")
    ]


def test_each_expression_is_met_or_not_with_the_value_seen() -> None:
    found = explain_each(BIG, [device("g", "gpu", memory="16G")])
    assert (found.class_name, found.explanation.fitting) == ("big", 0)
    (place,) = found.explanation.nearest
    assert (place.name, place.fits) == ("n1/g", False)
    first, second = of_selector(place, "1"), of_selector(place, "2")
    assert [(each.met, each.seen, each.words) for each in first] == [
        (True, "gpu", "Kind is 'gpu', equal to gpu"),
        (False, "16G", "memory is '16G', not at least 30G"),
        (True, None, "there is no mig"),
    ]
    assert [each.words for each in second] == ["Kind is 'gpu', not one of tpu, npu"]
    assert {each.reason for each in place.findings} == {Reason.ATTRIBUTE}


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
    assert explained(cls, device("g", "gpu")).findings[0].words == (
        "Kind is 'gpu', one of gpu, tpu"
    )
    assert explained(cls, device("n", "nic")).findings[0].words == (
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
    found = explain_fleet(BIG, fleet)
    told = found.explanation
    assert (told.total, told.fitting, found.units, found.healthy) == (8, 5, 12, 11)
    assert told.verdict is Verdict.FITS
    assert told.summary == "big selects 5 of 8 devices: 12 units, 11 of them healthy."
    assert [(each.group, each.met, each.left) for each in told.funnel] == [
        ("1", 6, 6),
        ("1", 4, 4),
        ("1", 8, 4),
        ("2", 1, 1),
    ]
    assert [(each.name, each.alike, each.findings[0].group) for each in told.nearest] == [
        ("n1/s0", 2, "1"),
        ("n1/nic", 1, "2"),
    ]
    assert told.nearest[0].findings[0].words == "memory is '16G', not at least 30G"


def test_the_nearest_are_as_many_as_asked() -> None:
    fleet = [device("a", "x"), device("b", "y"), device("c", "z")]
    assert len(explain_fleet(BIG, fleet, nearest=2).explanation.nearest) == 2


def test_a_class_without_selectors_selects_nothing() -> None:
    blank = DeviceClass("blank", ((),))
    place = explained(blank, device("g", "gpu"))
    assert not place.fits
    assert [(each.reason, each.met) for each in place.findings] == [(Reason.EMPTY_SELECTOR, False)]
    told = explain_fleet(blank, [device("g", "gpu")]).explanation
    assert (told.fitting, told.verdict) == (0, Verdict.NEVER)
    assert explain_fleet(DeviceClass("none"), [device("g", "gpu")]).explanation.nearest == ()


@settings(deadline=None)
@given(selectors(), st.lists(devices(), max_size=5))
def test_the_explanation_agrees_with_the_selection(selector: Selector, fleet: list[Device]) -> None:
    cls = DeviceClass("c", selector)
    chosen = [each for each in fleet if compile_selector(selector)(each.attributes)]
    places = explain_each(cls, fleet).explanation.nearest if selector else ()
    assert [
        each for each, place in zip(fleet, places, strict=bool(selector)) if place.fits
    ] == chosen
    found = explain_fleet(cls, fleet)
    assert found.explanation.fitting == len(chosen)
    assert found.units == sum(each.units for each in chosen)
