"""Taints and tolerations, as Kubernetes' page on them tells it; and cordons."""

from __future__ import annotations

import pytest

from dovetail.podfit.filters.taints import tolerates
from dovetail.podfit.objects import Taint, Toleration
from tests.podfit.building import Fleet, node, pod

TAINT = Taint(key="key1", value="value1", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "taint", "right"),
    [
        (Toleration(key="key1", value="value1", effect="NoSchedule"), TAINT, True),
        (Toleration(key="key1", operator="Exists", effect="NoSchedule"), TAINT, True),
        (Toleration(key="key1", operator="Exists"), TAINT, True),
        (Toleration(operator="Exists"), TAINT, True),
        (Toleration(key="key1", operator="", value="value1"), TAINT, True),
        (Toleration(key="key1", value="value2"), TAINT, False),
        (Toleration(key="key2", value="value1"), TAINT, False),
        (Toleration(key="key1", value="value1", effect="NoExecute"), TAINT, False),
        (Toleration(key="key1", operator="Unknown", value="value1"), TAINT, False),
    ],
)
def test_tolerations(toleration: Toleration, taint: Taint, right: bool) -> None:
    assert tolerates(toleration, taint) is right


@pytest.mark.parametrize(
    ("operator", "bound", "value", "right"),
    [
        ("Gt", "950", "951", True),
        ("Gt", "950", "950", False),
        ("Lt", "950", "949", True),
        ("Lt", "-5", "-6", True),
        ("Lt", "950", "950", False),
        ("Gt", "950", "0951", False),
        ("Gt", "+1", "2", False),
        ("Gt", "1", "many", False),
        ("Gt", "1", str(2**63), False),
    ],
)
def test_numeric_tolerations(operator: str, bound: str, value: str, right: bool) -> None:
    """The taint's value is compared with the toleration's; both in plain decimal."""
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    assert tolerates(Toleration(key="sla", operator=operator, value=bound), taint) is right


def test_all_taints_that_keep_pods_away_have_to_be_tolerated() -> None:
    taints = [
        {"key": "key1", "value": "value1", "effect": "NoSchedule"},
        {"key": "key1", "value": "value1", "effect": "NoExecute"},
        {"key": "key2", "value": "value2", "effect": "NoSchedule"},
    ]
    tolerations = [
        {"key": "key1", "value": "value1", "effect": "NoSchedule"},
        {"key": "key1", "value": "value1", "effect": "NoExecute"},
    ]
    fleet = Fleet([node("tainted", taints=taints), node("two", taints=taints[:2])])
    assert fleet.fitting(pod("p", tolerations=tolerations)) == "two"
    assert fleet.why(pod("p", tolerations=tolerations), "tainted") == (
        "the pod does not tolerate taint {key2: value2} (NoSchedule)"
    )


def test_a_taint_that_only_asks_keeps_nobody_away() -> None:
    fleet = Fleet([node("n", taints=[{"key": "k", "effect": "PreferNoSchedule"}])])
    assert fleet.fitting(pod("p")) == "n"


def test_a_taint_that_is_taken_away_lets_pods_in() -> None:
    fleet = Fleet([node("n", taints=[{"key": "k", "effect": "NoSchedule"}])])
    assert fleet.fitting(pod("p")) == ""
    fleet.table.set_node(node("n"))
    assert fleet.fitting(pod("p")) == "n"


def test_cordoned_nodes_take_pods_that_tolerate_it() -> None:
    fleet = Fleet([node("cordoned", unschedulable=True), node("open")])
    assert fleet.fitting(pod("p")) == "open"
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert fleet.fitting(pod("p", tolerations=tolerations)) == "cordoned open"
