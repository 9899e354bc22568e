"""Resources that go without saying are added to pods of a role."""

from __future__ import annotations

import asyncio
from fractions import Fraction

from dovetail.node.common.pods import Pod
from dovetail.node.sources.implicit_resources import ImplicitResources
from dovetail.node.wire.resource_plugin import ContainerType
from tests.support.node.fakes import FakeSource, container, pod, sandbox

ROLE = {"kubernetes.io/pod-role": "web"}


def asked(source: FakeSource, *always: str) -> dict[str, dict[str, Fraction]]:
    found = asyncio.run(ImplicitResources(source, {"web": ("NIC",)}, always).pod(sandbox("a")))
    assert isinstance(found, Pod)
    return {each.name: dict(each.requests) for each in found.containers}


def test_containers_that_stay_ask_for_one_of_each() -> None:
    own = pod(
        "a",
        container("setup", type=ContainerType.INIT, cpu=1),
        container("main", cpu=2),
        container("aide", type=ContainerType.SIDECAR),
        annotations=ROLE,
    )
    assert asked(FakeSource(own)) == {
        "setup": {"cpu": 1},
        "main": {"cpu": 2, "NIC": 1},
        "aide": {"NIC": 1},
    }


def test_who_asks_for_it_gets_as_much_as_asked_for() -> None:
    own = pod("a", container("main", NIC=3), annotations=ROLE)
    assert asked(FakeSource(own)) == {"main": {"NIC": 3}}


def test_other_roles_need_nothing() -> None:
    assert asked(FakeSource(pod("a", container("main", cpu=1)))) == {"main": {"cpu": 1}}


def test_container_that_asks_for_no_cpus_asks_for_the_least() -> None:
    own = pod("a", container("main", cpu=2), container("aide", cpu=0), container("idle"))
    assert asked(FakeSource(own), "cpu") == {
        "main": {"cpu": 2},
        "aide": {"cpu": Fraction(1, 1000)},
        "idle": {"cpu": Fraction(1, 1000)},
    }


def test_who_asks_for_it_by_another_name_asks_for_no_more() -> None:
    """A container of Katalyst's reclaimed pods has CPUs, under a name of their own."""
    own = pod("a", container("main", reclaimed=2000), container("idle", reclaimed=0))
    source = ImplicitResources(FakeSource(own), {}, ("cpu",), {"reclaimed": "cpu"})
    found = asyncio.run(source.pod(sandbox("a")))
    assert isinstance(found, Pod)
    main, idle = found.containers
    assert main.requests == {"reclaimed": 2000}
    assert idle.requests == {"reclaimed": 0, "cpu": Fraction(1, 1000)}


def test_what_the_pod_asks_for_as_a_whole_its_containers_do_not() -> None:
    own = pod("a", container("main"), requests={"cpu": Fraction(2)})
    assert asked(FakeSource(own), "cpu") == {"main": {}}


async def test_what_the_source_does_not_know_stays_unknown() -> None:
    source = FakeSource()
    needing = ImplicitResources(source, {"web": ("NIC",)}, ())
    assert await needing.pod(sandbox("a")) is None
    assert await needing.active() == []
    source.known = False
    assert await needing.active() is None
