"""The answer beside brute force, on small random fleets: apps, sets of apps, options, placements.

What a candidate list means is the union of what it stands for: every set of apps that the answer
says fits does, and every set that fits is said to.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.expanding import candidates_document
from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.fleet import ClusterNode
from dovetail.intents.hpa.answer import HpaAnswer, hpa_answer
from dovetail.intents.hpa.placement import PlannedDevice
from tests.intents.hpa.brute import BruteCluster, Options
from tests.intents.hpa.building import fleet
from tests.intents.hpa.worlds import World

seeds = st.integers(0, 10**6)


@given(seeds, st.booleans())
@settings(max_examples=200, deadline=None)
def test_sets_of_apps_are_those_that_fit(seed: int, has_devices: bool) -> None:
    world = World(seed, has_devices=has_devices)
    found, brute = asked(world), BruteCluster(world.group, world.cluster)
    apps = [each.name for each in world.group.apps]
    for size in range(1, len(apps) + 1):
        for chosen in combinations(apps, size):
            assert is_said_to_fit(found, chosen) == brute.fits(chosen), (seed, chosen)


@given(seeds, st.booleans())
@settings(max_examples=120, deadline=None)
def test_scores_are_the_best_there_are(seed: int, has_devices: bool) -> None:
    world = World(seed, has_devices=has_devices)
    found, brute = asked(world), BruteCluster(world.group, world.cluster)
    apps = [each.name for each in world.group.apps]
    for name in apps:
        if brute.fits([name]):
            score = found.answer.scores.get(name, {}).get(world.cluster.name, 0)
            assert score == brute.best([name]), (seed, name)
    if brute.fits(apps):
        assert found.score_of_set(world.cluster.name, apps) == brute.best(apps), seed
        if not found.answer.candidates.contended:  # type: ignore[union-attr]
            assert brute.best(apps) == sum(brute.best([name]) for name in apps), seed
    else:
        assert found.score_of_set(world.cluster.name, apps) is None


@given(seeds, st.booleans())
@settings(max_examples=120, deadline=None)
def test_placements_hold(seed: int, has_devices: bool) -> None:
    """Put onto the nodes as they are planned, nothing is overfull, and devices are given once."""
    world = World(seed, has_devices=has_devices)
    found, brute = asked(world), BruteCluster(world.group, world.cluster)
    apps = [each.name for each in world.group.apps]
    placement = found.placement(world.cluster.name, apps)
    assert (placement is not None) == brute.fits(apps), seed
    if placement is None:
        return
    nodes = {each.node.metadata.name: each for each in world.cluster.nodes}
    granted: Options = frozenset(
        (app.app, one.consumer, one.requirement)
        for app in placement.apps
        for one in app.options
        if one.granted
    )
    assert brute.fits_with(apps, granted), seed
    for name, node in nodes.items():
        free, charged = brute.free(node), Counter[str]()
        for app in placement.apps:
            charged.update(app.charges().get(name, {}))
        assert all(amount <= free[resource] for resource, amount in charged.items()), seed
        _check_devices(node, [one for app in placement.apps for one in app.devices().get(name, ())])


def _check_devices(node: ClusterNode, planned: list[PlannedDevice]) -> None:
    taken = Counter[str]()
    for one in planned:
        taken[one.device] += one.units
    by_name = {each.name: each for each in node.devices}
    for name, units in taken.items():
        assert units <= by_name[name].units
        assert by_name[name].healthy
        assert name not in node.held_devices


@given(seeds)
@settings(max_examples=100, deadline=None)
def test_the_union_of_candidates_is_what_fits(seed: int) -> None:
    """Over a fleet of three clusters: each choice from the lists of any candidate, and no other."""
    world = World(seed, clusters=3)
    found = hpa_answer(world.group, fleet(*world.clusters))
    apps = [each.name for each in world.group.apps]
    clusters = [each.name for each in world.clusters]
    document = candidates_document(combine([found.answer], apps, clusters), most=10_000)
    union = {
        choice
        for candidate in document["candidates"]
        for choice in product(*(_clusters_of(candidate[app], clusters) for app in apps))
    }
    brutes = {each.name: BruteCluster(world.group, each) for each in world.clusters}
    feasible = {
        choice
        for choice in product(clusters, repeat=len(apps))
        if all(
            brutes[name].fits([app for app, on in zip(apps, choice, strict=True) if on == name])
            for name in set(choice)
        )
    }
    assert union == feasible, seed


def _clusters_of(entry: dict[str, Any], clusters: list[str]) -> list[str]:
    assert entry["count"] == 1
    if "allow" in entry:
        return list(entry["allow"])
    return [name for name in clusters if name not in entry["deny"]]


def asked(world: World) -> HpaAnswer:
    return hpa_answer(world.group, fleet(world.cluster))


def is_said_to_fit(found: HpaAnswer, apps: tuple[str, ...]) -> bool:
    """By lists and contended clusters alone, as the combination of candidates reads them."""
    candidates = found.answer.candidates
    assert isinstance(candidates, PartitionCandidates)
    assert candidates.is_complete
    (listed,) = candidates.alternatives
    if not all("p1+c1" in listed[app].parts[0].clusters for app in apps):
        return False
    sets = [one for each in candidates.contended for one in each.fitting]
    return not sets or any(set(apps) <= one for one in sets)
