"""Explanations never say anything else than the plan does, and leave the snapshot as it was."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dovetail.core.explanation import Verdict
from dovetail.machines.explaining.guest import explain_guest
from tests.machines.lab import Lab, kind, small

NODES: dict[str, str | list[str]] = {
    "n1": "whole",
    "n2": "whole",
    "n3": "small",
    "n4": ["small", "large"],
}
NAMESPACES = ("team", "other")


def random_lab(rng: Random) -> Lab:
    half = kind(
        "half",
        available=rng.randint(1, 4),
        spec={"dependence": {"parent": "whole", "availableRatio": 0.5}},
    )
    window = {
        "name": "course",
        "start": "2026-11-16T11:00:00Z",
        "duration": "4h",
        "units": 1,
        "buyers": {"namespaces": ["other"]},
    }
    terms: dict[str, Any] = rng.choice(
        (
            {},
            {"caps": {"perNamespace": 1}},
            {"caps": {"perUser": 2}},
            {"windows": [window]},
            {"maxDuration": "2h"},
            {"buyers": {"namespaces": ["team"]}},
        )
    )
    spec = small(
        kind("whole", cpu=8, available=2),
        half,
        kind("small", available=rng.randint(1, 4), **terms),
        kind("large", cpu=12, available=1),
        nodes=NODES,
        severalTypesPerNode=True,
    )
    for entry in spec["nodePool"]:
        if rng.random() < 0.15:
            entry["mode"] = "maintenance"
    return Lab(spec)


def random_demands(rng: Random) -> dict[str, Any]:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"imperator.tenzen-y.io/pod-role": "guest"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    choices: tuple[dict[str, Any], ...] = (
        {},
        {},
        {},
        {"nodeSelector": {"kubernetes.io/hostname": rng.choice(list(NODES))}},
        {"priority": rng.randint(1, 3)},
        {"schedulingGates": [{"name": "example.com/quota"}]},
        {"affinity": apart},
    )
    return rng.choice(choices)


def ask(lab: Lab, rng: Random, name: str) -> None:
    of = rng.choice(("whole", "half", "half", "small", "small", "large", "unknown"))
    group = (rng.choice(("g", "h")), rng.randint(1, 3)) if rng.random() < 0.3 else None
    lab.ask(
        name,
        of,
        namespace=rng.choice(NAMESPACES),
        unit_group=group,
        minutes_ago=rng.randint(1, 50),
        **random_demands(rng),
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_guest_fits_exactly_if_the_plan_sells_it_a_unit(seed: int) -> None:
    rng = Random(seed)
    lab = random_lab(rng)
    for number in range(rng.randint(0, 6)):
        ask(lab, rng, f"early-{number}")
        lab.sell()
    if rng.random() < 0.3:
        lab.occupy(rng.choice(list(NODES)), cpu="6")
    for number in range(rng.randint(1, 6)):
        ask(lab, rng, f"late-{number}")
    plan = lab.plan()
    sold = {order.pod.metadata.uid for sale in plan.sales for order in sale.orders}
    for uid, pod in lab.guests.items():
        found = explain_guest(lab.snapshot(), pod)
        is_holder = uid in lab.units
        assert (found.verdict is Verdict.FITS) == (uid in sold or is_holder), found.summary
        if not is_holder:
            assert (found.funnel[-1].left > 0) == (uid in sold)
            assert bool(found.fitting) == (uid in sold)
        if uid in plan.waiting and found.verdict is not Verdict.FITS:
            assert found.summary
    assert lab.plan() == plan
