"""Explanations and previews say what the plan does, and leave the snapshot as it was."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from dovetail.core.explanation import Verdict
from dovetail.machines.explaining.guest import explain_guest
from dovetail.machines.preview.dry_run import dry_run
from dovetail.machines.preview.forecast import forecast
from dovetail.machines.validation.world import World
from tests.machines.lab import Lab, kind, small

NODES = ("n1", "n2", "n3", "n4")
NAMESPACES = ("team", "other")
TYPES = ("whole", "half", "quarter", "small", "large")


def random_lab(rng: Random) -> Lab:
    half, quarter = (
        kind(
            name,
            cpu=cpu,
            available=rng.randint(1, 4),
            spec={"dependence": {"parent": parent, "availableRatio": 0.5}},
        )
        for name, cpu, parent in (("half", 4, "whole"), ("quarter", 2, "half"))
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
        quarter,
        kind("small", available=rng.randint(1, 4), **terms),
        kind("large", cpu=12, available=1),
        nodes={name: rng.sample(TYPES, rng.randint(1, 2)) for name in NODES},
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
        {"nodeSelector": {"kubernetes.io/hostname": rng.choice(NODES)}},
        {"priority": rng.randint(1, 3)},
        {"schedulingGates": [{"name": "example.com/quota"}]},
        {"affinity": apart},
    )
    return rng.choice(choices)


def ask(lab: Lab, rng: Random, name: str) -> None:
    of = rng.choice((*TYPES, "half", "small", "unknown"))
    group = (rng.choice(("g", "h")), rng.randint(1, 3)) if rng.random() < 0.3 else None
    lab.ask(
        name,
        of,
        namespace=rng.choice(NAMESPACES),
        unit_group=group,
        minutes_ago=rng.randint(1, 50),
        **random_demands(rng),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_guest_fits_exactly_if_the_plan_sells_it_a_unit(seed: int) -> None:
    rng = Random(seed)
    lab = random_lab(rng)
    for number in range(rng.randint(0, 6)):
        ask(lab, rng, f"early-{number}")
        lab.sell()
    if rng.random() < 0.3:
        lab.occupy(rng.choice(NODES), cpu="6")
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
    assert lab.plan() == plan


@pytest.mark.parametrize("seed", range(20))
def test_previews_leave_the_snapshot_as_it_was(seed: int) -> None:
    rng = Random(seed)
    lab = random_lab(rng)
    for number in range(rng.randint(0, 6)):
        ask(lab, rng, f"guest-{number}")
        lab.sell()
    plan = lab.plan()
    forecasts = {each.type: each for each in forecast(lab.snapshot())}
    world = World(nodes=lab.nodes, machines=(lab.machine,), accepted=lab.machine)
    previews = dry_run(lab.snapshot(), world).stock
    assert lab.plan() == plan
    sold = Counter(unit.type for unit in lab.units.values() if not unit.is_stock)
    for each in previews:
        assert forecasts[each.type].sold == sold[each.type]
        if each.verdict == "fits":
            assert sum(each.after.values()) == each.wanted
