"""What is claimed of any device holds for every device; and the plain cases are seen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from dovetail.core.device import Device
from dovetail.core.selectors.condition_text import read
from dovetail.core.selectors.selector import Selector, compile_selector
from dovetail.devices.classes.implication import Meaning
from tests.devices.selectors import devices, selectors


def selector(*branches: str) -> Selector:
    return tuple(read(branch) for branch in branches)


def never(given: Selector) -> bool:
    return Meaning(given).is_never


def implies(narrow: Selector, wide: Selector) -> bool:
    return Meaning(narrow).implies(Meaning(wide))


@pytest.mark.parametrize(
    "text",
    [
        "memory>30G,memory<30G",
        "memory>=30G,memory<30GB",
        "memory>30G,memory<=30G",
        "memory>1n,memory<2n",
        "memory>30G,memory<40Gbps",
        "memory=30G,memory=31G",
        "memory,!memory",
        "memory>1G,!memory",
        "Kind in (a,b),Kind in (c)",
        "Kind in (a),Kind notin (a,b)",
        "memory in (1G,2G),memory>2G",
        "version>v1.2,version<v1.2.0",
        "!Kind",
    ],
)
def test_contradictions_are_seen(text: str) -> None:
    assert never(selector(text))


@pytest.mark.parametrize(
    "text",
    [
        "memory>=30G,memory<=30GB",
        "memory>1n,memory<3n",
        "memory=30G,memory=30000M",
        "version>v1.2,version<v1.2.1",
        "Kind in (a,b),Kind notin (a)",
        "!memory,memory notin (1G)",
    ],
)
def test_what_is_tight_is_no_contradiction(text: str) -> None:
    assert not never(selector(text))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("memory>=30G", "memory>=16G"),
        ("memory>30G", "memory>=30G"),
        ("memory=30G", "memory<=30GB"),
        ("memory>=30G,memory<=30G", "memory=30000M"),
        ("memory>1G", "memory"),
        ("memory>1G", "memory notin (1M,none)"),
        ("Kind=a", "Kind in (a,b)"),
        ("Kind in (a,b)", "Kind notin (c)"),
        ("Kind notin (a,b)", "Kind notin (a)"),
        ("memory in (30G,40G)", "memory>16G"),
        ("!memory", "memory notin (1G)"),
        ("memory>1G", "Kind"),
        ("memory>1G,ecc", "memory>1G"),
    ],
)
def test_implications_are_seen_one_way_only(narrow: str, wide: str) -> None:
    assert implies(selector(narrow), selector(wide))
    if narrow != "memory>=30G,memory<=30G":
        assert not implies(selector(wide), selector(narrow))


def test_each_alternative_needs_one_that_contains_it() -> None:
    assert implies(selector("Kind=a,x", "Kind=b,x"), selector("Kind=b", "Kind=a"))
    assert not implies(selector("Kind=a", "Kind=c"), selector("Kind=b", "Kind=a"))


@settings(max_examples=150, deadline=None)
@given(selectors(), selectors(), devices())
def test_whatever_is_claimed_holds(one: Selector, other: Selector, device: Device) -> None:
    selected = compile_selector(one)(device.attributes)
    if never(one):
        assert not selected
    if selected and implies(one, other):
        assert compile_selector(other)(device.attributes)


@settings(deadline=None)
@given(selectors())
def test_everything_implies_itself(selector: Selector) -> None:
    assert implies(selector, selector)
