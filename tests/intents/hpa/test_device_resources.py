"""Device classes as resources, beside an assignment of every unit."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.documents import DeviceClass, Member
from dovetail.intents.hpa.demand import DeviceUnits
from dovetail.intents.hpa.device_resources import PREFIX, DeviceDemands, DeviceResources
from tests.intents.hpa.building import (
    Asked,
    cluster,
    device_class,
    devices,
    gpu,
    needing,
    node,
)

MODELS = "abcd"
models = st.sampled_from(MODELS)
selections = st.sets(models, min_size=1).map(sorted)


@given(
    st.lists(models, max_size=5),
    st.lists(selections, min_size=1, max_size=4, unique_by=tuple),
    st.data(),
)
def test_halls_condition_is_exact(
    there: list[str], selected: list[list[str]], data: st.DataObject
) -> None:
    """Resources suffice just if there is a device for each unit."""
    classes = [device_class(f"k{at}", model="|".join(each)) for at, each in enumerate(selected)]
    counts = [data.draw(st.integers(0, 3)) for _ in classes]
    on = node("n1", devices=[gpu(f"g{at}", model=each) for at, each in enumerate(there)])
    asked = [DeviceUnits("main", cls, n) for cls, n in zip(classes, counts, strict=True) if n]
    resources = DeviceResources(DeviceDemands.of(asked), {}, [on])
    (has,) = resources.capacities
    suffices = all(has.get(name, 0) >= amount for name, amount in resources.amounts(asked))
    wanted = [values for values, count in zip(selected, counts, strict=True) for _ in range(count)]
    assert resources.is_exact
    assert suffices == any(
        all(model in values for model, values in zip(chosen, wanted, strict=True))
        for chosen in permutations(there, len(wanted))
    )
    chosen = resources.choose("n1", [asked])
    assert (chosen is not None) == suffices


def resources_for(classes: list[DeviceClass], *there: Device) -> DeviceResources:
    asked = [DeviceUnits("main", each, 1) for each in classes]
    return DeviceResources(DeviceDemands.of(asked), {}, [node("n1", devices=there)])


def test_classes_that_are_apart_make_one_resource_each() -> None:
    found = resources_for(
        [device_class(each, model=each) for each in MODELS],
        *(gpu(each, model=each) for each in MODELS),
    )
    assert list(found.capacities[0]) == [f"{PREFIX}{each}" for each in MODELS]


def test_classes_nested_like_a_chain_make_one_resource_each() -> None:
    nested = [device_class(name, model="|".join(name)) for name in ("a", "ab", "abc", "abcd")]
    found = resources_for(nested, *(gpu(each, model=each) for each in MODELS))
    assert found.capacities == [
        {
            f"{PREFIX}a": 1,
            f"{PREFIX}a|ab": 2,
            f"{PREFIX}a|ab|abc": 3,
            f"{PREFIX}a|ab|abc|abcd": 4,
        }
    ]


def test_held_and_sick_devices_are_not_there() -> None:
    listed = [
        gpu("held", model="a"),
        Device(node="n1", name="sick", kind="gpu", healthy=False, properties={"model": "a"}),
        gpu("free", model="a"),
    ]
    wanting = needing("a", devices(device_class("any", model="a"), 2))
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=listed)),
        cluster("c2", node("n1", devices=listed, held_devices=["held"])),
    )
    assert asked.clusters("a") == "c1"
    assert asked.words("a", "c2") == "any: need 2 on one node, largest free 1 (n1)"


def test_a_class_of_the_cluster_is_what_that_cluster_says() -> None:
    there = [gpu("g1", model="a")]
    wanting = needing("a", devices("big"))
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=there), classes=[device_class("big", model="a")]),
        cluster("c2", node("n1", devices=there), classes=[device_class("big", model="b")]),
        cluster("c3", node("n1", devices=there)),
    )
    assert asked.clusters("a") == "c1"
    assert asked.words("a", "c3") == "big: need 1, none"


def test_two_workloads_do_not_share_a_device() -> None:
    """One GPU that both classes select is one too few for both."""
    classes = [device_class("big", model="a"), device_class("any", model="a|b")]
    both = [needing("x", devices("big")), needing("y", devices("any"))]
    asked = Asked(
        both,
        cluster("c1", node("n1", devices=[gpu("g1", model="a")]), classes=classes),
        cluster(
            "c2",
            node("n1", devices=[gpu("g1", model="a"), gpu("g2", model="b")]),
            classes=classes,
        ),
    )
    assert asked.sets("c1") == ["x", "y"]
    assert asked.why("c1") == "x+y: big|any"
    assert asked.sets("c2") == []
    placed = asked.hpa.placement("p1+c2", ("x", "y"))
    assert placed is not None
    assert {app.app: [each.device for each in app.devices()["n1"]] for app in placed.apps} == {
        "x": ["g1"],
        "y": ["g2"],
    }


def test_an_optional_device_goes_to_all_replicas_or_none() -> None:
    classes = [device_class("any", model="a")]
    wanting = needing("a", devices("any", optional=7), replicas=2)
    one, two = ([gpu(f"g{at}", model="a") for at in range(count)] for count in (1, 2))
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=one), node("n2"), classes=classes),
        cluster("c2", node("n1", devices=two), node("n2"), classes=classes),
    )
    assert [asked.score("a", each) for each in ("c1", "c2")] == [0, 7]
    assert asked.nodes("c2", "a") == {"a": {"n1": 2}}


# -- classes that are more than a flow


def pairs(key: str) -> DeviceClass:
    return DeviceClass("pair", members=(Member("any", 2),), same=(key,))


def test_units_of_several_devices_are_counted_as_they_can_be_formed() -> None:
    """Two pairs on one switch each, three devices make one."""
    classes = [device_class("any", model="a"), pairs("switch")]
    listed = [gpu(f"g{at}", model="a", switch=each) for at, each in enumerate("xxxyy")]
    wanting = needing("a", devices("pair"), replicas=2)
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=listed), classes=classes),
        cluster("c2", node("n1", devices=listed[:4]), classes=classes),
    )
    assert asked.clusters("a") == "c1"
    assert asked.words("a", "c2").startswith("pair: need 2 in all, free 1")
    placed = asked.hpa.placement("p1+c1", ("a",))
    assert placed is not None
    assert len(placed.apps[0].devices()["n1"]) == 4


def test_a_nested_class_beside_its_own_members_is_checked_device_by_device() -> None:
    classes = [device_class("any", model="a"), pairs("switch")]
    listed = [gpu(f"g{at}", model="a", switch=each) for at, each in enumerate("xxy")]
    both = [needing("x", devices("pair")), needing("y", devices("any"))]
    asked = Asked(both, cluster("c1", node("n1", devices=listed), classes=classes))
    assert asked.joint("c1", "x", "y") == 0
    placed = asked.hpa.placement("p1+c1", ("x", "y"))
    assert placed is not None
    assert [len(app.devices()["n1"]) for app in placed.apps] == [2, 1]


def test_units_of_one_device() -> None:
    """Three units at once fit on a device of five once."""
    pool = DeviceClass("pool", ((Expression("model", Operator.IN, ("p",)),),), single_device=True)
    listed = [
        Device(node="n1", name=name, kind="pool", units=5, properties={"model": "p"})
        for name in ("p1", "p2")
    ]
    on = cluster("c1", node("n1", devices=listed), classes=[pool])
    assert Asked([needing("a", devices("pool", 3), replicas=2)], on).clusters("a") == "c1"
    assert Asked([needing("a", devices("pool", 3), replicas=3)], on).clusters("a") == ""
    assert Asked([needing("a", devices("pool", 6))], on).clusters("a") == ""


def test_pods_of_a_workload_ask_for_devices_in_one_way() -> None:
    """By claim or by class, as the nodes have it that they are on: not some so and some so."""
    any_gpu = device_class("any", model="a")
    one, two = ([gpu(f"g{at}", model="a") for at in range(count)] for count in (1, 2))
    wanting = needing("a", devices(any_gpu), replicas=2)
    asked = Asked(
        [wanting],
        cluster("c1", node("n1", devices=one, devices_by_claim=True), node("n2", devices=one)),
        cluster("c2", node("n1", devices=one), node("n2", devices=two, devices_by_claim=True)),
        cluster("c3", node("n1", devices=one), node("n2", devices=two), node("n3")),
    )
    assert asked.clusters("a") == "c2 c3"
    access = {}
    for on in ("c2", "c3"):
        placed = asked.hpa.placement(f"p1+{on}", ("a",))
        assert placed is not None
        (grant,) = placed.apps[0].consumers
        access[on] = str(grant.devices["devices-any"].access)
        assert placed.apps[0].workloads[0].fabrics == {}
    assert access == {"c2": "claim", "c3": "class"}
