"""Explanations of one app on one cluster: what is short, by how much, and what would help."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.explanation import Verdict, document
from dovetail.intents.fleet import ClusterHealth
from dovetail.intents.hpa.explaining import HardwareVerdict
from tests.intents.hpa.brute import BruteCluster
from tests.intents.hpa.building import (
    Asked,
    app,
    cluster,
    consumer,
    device_class,
    devices,
    gpu,
    label,
    needing,
    needs,
    node,
    pod,
    workload,
)
from tests.intents.hpa.worlds import World

GPU = "nvidia.com/gpu"


def explained(asked: Asked, name: str = "a", on: str = "c1") -> HardwareVerdict:
    return asked.hpa.explanation(name, f"p1+{on}")


def fixes(asked: Asked, name: str = "a", on: str = "c1") -> list[str]:
    return [each.words for each in explained(asked, name, on).explanation.relaxations]


def test_less_of_an_amount_is_the_most_that_fits() -> None:
    busy = [pod("p", "n1", requests={"cpu": "250m"})]
    asked = Asked([needing("a", needs("cpu", 5))], cluster("c1", node("n1", cpu=4, pods=busy)))
    found = explained(asked).explanation
    assert found.verdict is Verdict.NEVER
    assert found.summary == "cpu: need 5 on one node, largest free 3750m (n1)"
    assert fixes(asked) == ["a: cpu 3750m instead of 5"]
    (change,) = found.relaxations[0].changes
    assert (change.group, change.old, change.new) == ("a", "cpu 5", "cpu 3750m")


def test_what_would_fit_if_nothing_were_in_use_is_not_never() -> None:
    busy = [pod("p", "n1", requests={"cpu": 2})]
    asked = Asked([needing("a", needs("cpu", 4))], cluster("c1", node("n1", cpu=4, pods=busy)))
    found = explained(asked).explanation
    assert found.verdict is Verdict.NOT_NOW
    assert found.summary.endswith("; it would fit if nothing were in use")


def test_claims_and_held_devices_are_in_use_too() -> None:
    asked = Asked(
        [needing("a", needs(GPU, 1))],
        cluster("c1", node("n1", more={GPU: 1}, held={GPU: 1})),
    )
    assert explained(asked).explanation.verdict is Verdict.NOT_NOW
    held = node("n1", devices=[gpu("g1", model="a")], held_devices=["g1"])
    asked = Asked([needing("a", devices(device_class("any", model="a")))], cluster("c1", held))
    assert explained(asked).explanation.verdict is Verdict.NOT_NOW


def test_fewer_replicas() -> None:
    wanting = needing("a", needs("cpu", 3), replicas=5)
    asked = Asked([wanting], cluster("c1", *(node(f"n{at}", cpu=4) for at in range(3))))
    assert "a: replicas 3 instead of 5" in fixes(asked)


def test_memory_is_told_as_it_was_written() -> None:
    wanting = needing("a", needs("memory", 4 * 10**9))
    asked = Asked([wanting], cluster("c1", node("n1", memory=2_500_000_001)))
    assert fixes(asked) == ["a: memory 2500M instead of 4G"]


def test_a_label_that_no_node_has_is_left_out() -> None:
    wanting = needing("a", needs("cpu", 1), label("zone", "x"))
    asked = Asked([wanting], cluster("c1", node("n1", {"zone": "y"})))
    found = explained(asked).explanation
    assert found.summary == "zone=x: no node has it"
    assert fixes(asked) == ["a: without zone=x"]
    assert [(each.constraint, each.left) for each in found.funnel] == [("cpu 1", 1), ("zone=x", 0)]


def test_two_left_out_where_one_does_not_help() -> None:
    wanting = needing("a", label("zone", "x"), label("rack", "r"))
    asked = Asked([wanting], cluster("c1", node("n1")))
    assert fixes(asked) == ["a: without zone=x and a: without rack=r"]


def test_devices_are_told_by_their_class() -> None:
    wanting = needing("a", devices("big", 2))
    listed = [gpu("g1", model="b"), gpu("g2", model="a")]
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=listed), classes=[device_class("big", model="b")]),
    )
    found = explained(asked).explanation
    assert found.summary == "big: need 2 on one node, largest free 1 (n1)"
    assert fixes(asked) == ["a: without big 2"]
    assert [(each.constraint, each.left) for each in found.funnel] == [("big 2", 0)]


def test_by_consumer_and_requirement_how_many_nodes_are_left() -> None:
    core, api = workload("core"), workload("api")
    both = app(
        "a",
        core,
        api,
        consumers=[
            consumer(core, needs("cpu", 3), needs(GPU, 1)),
            consumer(api, needs("memory", 1)),
        ],
    )
    asked = Asked(
        [both],
        cluster("c1", node("n1", cpu=4), node("n2", cpu=2, more={GPU: 1}), node("n3", cpu=4)),
    )
    stages = explained(asked).explanation.funnel
    assert [(each.group, each.constraint, each.left) for each in stages] == [
        ("core", "cpu 3", 2),
        ("core", "nvidia.com/gpu 1", 0),
        ("api", "memory 1", 3),
    ]


def test_the_nearest_node_lacks_least() -> None:
    wanting = needing("a", needs("cpu", 4), needs(GPU, 1))
    asked = Asked([wanting], cluster("c1", node("n1", cpu=1), node("n2", cpu=3, more={GPU: 1})))
    nearest = explained(asked).explanation.nearest
    assert nearest[0].name == "n2"
    assert [(each.short, each.ever) for each in nearest[0].findings] == [(1000, False)]


def test_options_that_are_not_granted_say_why() -> None:
    wanting = needing(
        "a",
        needs(GPU, 2, name="two", optional=9),
        needs("cpu", 4, name="all", optional=5),
        needs("cpu", 9, name="more", optional=1),
    )
    asked = Asked([wanting], cluster("c1", node("n1", cpu=4, more={GPU: 1})))
    found = explained(asked)
    assert found.score == 5
    assert [(each.requirement, each.granted, each.words) for each in found.options] == [
        ("two", False, "nvidia.com/gpu: need 2 on one node, largest free 1 (n1)"),
        ("all", True, ""),
        ("more", False, "cpu: need 9 on one node, largest free 4 (n1)"),
    ]


def test_options_that_exclude_each_other_say_so() -> None:
    core, api = workload("core"), workload("api")
    both = app(
        "a",
        core,
        api,
        consumers=[
            consumer(core, needs(GPU, 1, optional=9)),
            consumer(api, needs(GPU, 1, optional=3)),
        ],
    )
    found = explained(Asked([both], cluster("c1", node("n1", more={GPU: 1}))))
    assert [(each.granted, each.words) for each in found.options] == [
        (True, ""),
        (False, "not together with others that weigh more"),
    ]


def test_an_app_that_fits_is_told_with_whom_it_contends() -> None:
    apps = [needing("a", needs("cpu", 3)), needing("b", needs("cpu", 2))]
    found = explained(Asked(apps, cluster("c1", node("n1", cpu=4))))
    assert found.explanation.verdict is Verdict.FITS
    assert found.contention == "a+b: cpu"


def test_a_cluster_that_does_not_answer() -> None:
    away = cluster("c1", node("n1"), state=ClusterHealth.AWAY, why="no route")
    found = explained(Asked([needing("a", needs("cpu", 1))], away)).explanation
    assert found.verdict is Verdict.NOT_NOW
    assert found.summary == "the cluster does not answer: no route"
    assert document(found)["total"] == 0


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=80, deadline=None)
def test_explanations_agree_with_brute_force(seed: int, has_devices: bool) -> None:
    """An app is said to fit just if it does, has a reason if not, and fixes only then."""
    world = World(seed, has_devices=has_devices)
    asked, brute = Asked(world.group, world.cluster), BruteCluster(world.group, world.cluster)
    for each in world.group.apps:
        found = explained(asked, each.name).explanation
        fits = brute.fits([each.name])
        assert (found.verdict is Verdict.FITS) == fits, (seed, each.name)
        assert found.summary
        assert "{" not in found.summary
        assert fits or asked.words(each.name, "c1") in found.summary
        assert not (fits and found.relaxations)
        document(found)
