"""What pods of a set demand of each other, at a size that nobody could try by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from dovetail.podfit.objects import Pod
from dovetail.podfit.packing import Packed, Unpackable, pack
from tests.podfit.building import REQUIRED, Fleet, Json, node, pod
from tests.podfit.packing.brute import to_pack

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
FEW_STEPS = 5000
"""Enough only if what is alike is taken together."""


def zones(nodes: int = 99, *, count: int = 3, cpu: str = "64") -> Fleet:
    return Fleet([node(f"n{at}", {ZONE: f"z{at % count}"}, cpu=cpu) for at in range(nodes)])


def app(
    name: str,
    cpu: str = "1",
    *,
    apart: Sequence[tuple[str, str]] = (),
    near: Sequence[tuple[str, str]] = (),
    spread: Sequence[str] = (),
    port: int = 0,
) -> Pod:
    """Terms are labels and topologies; a spread is of its own pods, with a skew of one."""
    spec: Json = {
        "affinity": {
            "podAntiAffinity": {REQUIRED: [term(*each) for each in apart]},
            "podAffinity": {REQUIRED: [term(*each) for each in near]},
        },
        "topologySpreadConstraints": [
            {
                "topologyKey": topology,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
            for topology in spread
        ],
    }
    if port:
        ports = [{"hostPort": port}]
        spec["containers"] = [{"name": "main", "ports": ports}]
    return pod(name, {"app": name}, requests={"cpu": cpu}, **spec)


def term(name: str, topology: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": topology}


def packed(fleet: Fleet, *kinds: tuple[Pod, int]) -> tuple[Mapping[str, int], ...]:
    found = pack(fleet.table, to_pack(kinds), budget=FEW_STEPS)
    assert isinstance(found, Packed)
    assert [sum(on.values()) for on in found.assignment] == [count for _, count in kinds]
    return found.assignment


def unpackable(fleet: Fleet, *kinds: tuple[Pod, int]) -> Unpackable:
    found = pack(fleet.table, to_pack(kinds), budget=FEW_STEPS)
    assert isinstance(found, Unpackable)
    assert found.is_most
    return found


def by_zone(on: Mapping[str, int], count: int = 3) -> list[int]:
    found: Counter[int] = Counter()
    for name, pods in on.items():
        found[int(name[1:]) % count] += pods
    return [found[zone] for zone in range(count)]


def test_pods_that_keep_apart_by_node_take_a_node_each() -> None:
    database = app("db", apart=[("db", HOST)])
    (on,) = packed(zones(), (database, 99))
    assert set(on.values()) == {1}
    found = unpackable(zones(), (database, 100))
    assert found.fitting == 99
    assert "pod anti-affinity: a pod that it means is in kubernetes.io/hostname=n0" in found.words


def test_pods_that_keep_apart_by_zone_take_a_zone_each() -> None:
    database = app("db", apart=[("db", ZONE)])
    on, _ = packed(zones(), (database, 3), (app("web"), 500))
    assert by_zone(on) == [1, 1, 1]
    assert unpackable(zones(), (database, 4), (app("web"), 500)).fitting == 3


def test_anti_affinity_holds_both_ways() -> None:
    quiet, loud = app("quiet", apart=[("loud", ZONE)]), app("loud")
    for kinds in (((quiet, 20), (loud, 20)), ((loud, 20), (quiet, 20))):
        one, other = packed(zones(), *kinds)
        assert all(
            not there or not beside
            for there, beside in zip(by_zone(one), by_zone(other), strict=True)
        )


def test_a_zone_for_each_of_two_that_keep_apart_has_to_be_large_enough() -> None:
    """Of three zones with 33 nodes, two have to be for the one that needs more than a zone has."""
    quiet, loud = app("quiet", "64", apart=[("loud", ZONE)]), app("loud", "64")
    packed(zones(), (quiet, 34), (loud, 33))
    assert unpackable(zones(), (quiet, 34), (loud, 34)).fitting == 33


def test_pods_are_spread_over_zones() -> None:
    (on,) = packed(zones(), (app("web", spread=[ZONE]), 100))
    assert sorted(by_zone(on)) == [33, 33, 34]


def test_pods_are_spread_over_zones_and_nodes_at_once() -> None:
    (on,) = packed(zones(), (app("web", spread=[ZONE, HOST]), 120))
    assert by_zone(on) == [40, 40, 40]
    assert set(on.values()) == {1, 2}


def test_a_full_zone_holds_up_the_others() -> None:
    """A pod of the third zone is missing, so the others have one more each, and no more."""
    fleet = zones(6, cpu="4")
    for at in (2, 5):
        fleet.table.add_pod(pod(f"full-{at}", on=f"n{at}", requests={"cpu": "4"}))
    web = app("web", spread=[ZONE])
    packed(fleet, (web, 2))
    found = unpackable(fleet, (web, 3))
    assert found.fitting == 2


def test_the_first_of_a_group_goes_anywhere_and_the_others_to_it() -> None:
    """Each zone has 33 nodes of 64 CPUs: sixteen pods of four to a node."""
    worker = app("worker", "4", near=[("worker", ZONE)])
    (on,) = packed(zones(), (worker, 528))
    assert sorted(by_zone(on)) == [0, 0, 528]
    found = unpackable(zones(), (worker, 529))
    assert found.fitting == 528
    assert found.words.startswith("528 of 529 fit; node ")
    assert found.words.endswith("Insufficient cpu: wants 4, free 0 of 64, 4 short")


def test_pods_wait_for_those_that_they_want_to_be_near() -> None:
    cache, web = app("cache", "8", spread=[ZONE]), app("web", near=[("cache", ZONE)])
    log = app("log", near=[("web", HOST)])
    log_on, web_on, _ = packed(zones(), (log, 50), (web, 100), (cache, 2))
    assert log_on.keys() <= web_on.keys()
    assert by_zone(web_on).count(0) >= 1


def test_pods_that_want_what_nobody_is_fit_nowhere() -> None:
    found = unpackable(zones(), (app("web", near=[("cache", ZONE)]), 1))
    assert found.fitting == 0
    assert "pod affinity: no pod that it means is in" in found.words


def test_pods_that_want_each_other_cannot_begin() -> None:
    one, other = app("one", near=[("other", ZONE)]), app("other", near=[("one", ZONE)])
    assert unpackable(zones(), (one, 1), (other, 1)).fitting == 0


def test_a_host_port_is_used_once_on_a_node() -> None:
    web = app("web", port=80)
    (on,) = packed(zones(), (web, 99))
    assert len(on) == 99
    assert "host port 80/TCP is in use on the node" in unpackable(zones(), (web, 100)).words


def test_pods_that_are_there_already_count() -> None:
    fleet = zones(6)
    fleet.table.add_pod(pod("there", {"app": "db"}, on="n0"))
    database = app("db", apart=[("db", ZONE)])
    (on,) = packed(fleet, (database, 2))
    assert by_zone(on) == [0, 1, 1]
    assert unpackable(fleet, (database, 3)).fitting == 2


def test_nodes_are_not_alike_where_one_has_pods_that_count() -> None:
    for taken, free in (("n0", "n1"), ("n1", "n0")):
        fleet = zones(2)
        fleet.table.add_pod(pod("there", {"app": "web"}, on=taken))
        (on,) = packed(fleet, (app("web", spread=[HOST]), 1))
        assert on == {free: 1}


def test_pods_on_nodes_that_a_spread_does_not_count_even_nothing_out() -> None:
    """The first zone has no room for the pods that are spread, and what is on its other node is
    none of their business."""
    full = node("full", {ZONE: "a", "size": "s"}, cpu="0")
    other = node("other", {ZONE: "a", "size": "l"})
    room = node("room", {ZONE: "b", "size": "s"})
    web = app("web", spread=[ZONE])
    small, large = (
        msgspec.structs.replace(
            web, spec=msgspec.structs.replace(web.spec, node_selector={"size": size}, **rest)
        )
        for size, rest in (("s", {}), ("l", {"topology_spread_constraints": ()}))
    )
    assert unpackable(Fleet([full, other, room]), (large, 2), (small, 2)).fitting == 1


def test_pods_without_a_domain_do_not_keep_apart() -> None:
    """Nodes without the label are in no zone."""
    fleet = zones(3)
    fleet.table.set_node(node("none", cpu="10"))
    (on,) = packed(fleet, (app("db", apart=[("db", ZONE)]), 13))
    assert on == {"n0": 1, "n1": 1, "n2": 1, "none": 10}


def test_a_kind_that_waits_for_one_behind_it_is_not_to_blame() -> None:
    found = unpackable(
        zones(3),
        (app("web", near=[("cache", ZONE)]), 2),
        (app("one"), 1),
        (app("other", "2"), 1),
        (app("cache"), 1),
        (app("huge", "65"), 1),
    )
    assert (found.kind, found.fitting) == (4, 0)


def test_an_application_of_six_kinds_at_once() -> None:
    found = packed(
        zones(),
        (app("db", "16", apart=[("db", ZONE)]), 3),
        (app("cache", "4", spread=[ZONE]), 6),
        (app("api", "2", spread=[ZONE]), 30),
        (app("web", spread=[ZONE, HOST]), 30),
        (app("job", near=[("db", ZONE)]), 40),
        (app("rest"), 100),
    )
    assert [by_zone(on) for on in found[:4]] == [[1] * 3, [2] * 3, [10] * 3, [10] * 3]
