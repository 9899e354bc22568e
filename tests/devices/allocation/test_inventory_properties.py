"""Whatever happens in whatever order, the book says what a recount from scratch says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import compile_selector
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus, DeviceHolding, DeviceRequest
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.documents import DeviceClass
from tests.devices import brute_force, fleets
from tests.devices.fleets import HOLDERS, NODES

CLASSES = (*fleets.LEAVES, "inner", "outer")


class World(msgspec.Struct):
    """What is true at the moment, however it came about."""

    classes: dict[str, DeviceClass] = {}
    nodes: dict[str, tuple[Device, ...]] = {}
    holders: dict[str, tuple[str, tuple[DeviceHolding, ...]]] = {}

    def free(self, node: str) -> dict[str, int]:
        left = self.units(node)
        for at, holdings in self.holders.values():
            for each in holdings:
                if at == node and each.device in left:
                    left[each.device] = max(0, left[each.device] - each.units)
        return left

    def units(self, node: str) -> dict[str, int]:
        return {each.name: each.units if each.healthy else 0 for each in self.nodes[node]}

    def count(self, name: str, node: str, units: dict[str, int]) -> int:
        cls = self.classes[name]
        if cls.members:
            if any(each not in self.classes for each in self.leaves(name)):
                return 0
            return brute_force.formable(name, self.nodes[node], units, self.classes)
        selects = compile_selector(cls.selector)
        return sum(units[each.name] for each in self.nodes[node] if selects(each.attributes))

    def leaves(self, name: str) -> list[str]:
        cls = self.classes.get(name)
        if cls is None or not cls.members:
            return [name]
        return [name, *(leaf for each in cls.members for leaf in self.leaves(each.name))]

    def status(self, name: str) -> ClassStatus:
        units = sum(self.count(name, node, self.units(node)) for node in self.nodes)
        free = sum(self.count(name, node, self.free(node)) for node in self.nodes)
        return ClassStatus(units, units - free)


def holdings() -> st.SearchStrategy[tuple[DeviceHolding, ...]]:
    one = st.builds(DeviceHolding, st.sampled_from(["d0", "d1", "d2"]), st.integers(1, 2))
    return st.lists(one, min_size=1, max_size=2).map(tuple)


def events(classes: Sequence[DeviceClass]) -> st.SearchStrategy[tuple[object, ...]]:
    node, holder = st.sampled_from(NODES), st.sampled_from(HOLDERS)
    return st.one_of(
        st.tuples(st.just("set_class"), st.sampled_from(classes)),
        st.tuples(st.just("drop_class"), st.sampled_from(CLASSES)),
        st.tuples(st.just("set_node"), node, fleets.devices(most=3, most_units=2)),
        st.tuples(st.just("drop_node"), node),
        st.tuples(st.just("hold"), holder, node, holdings()),
        st.tuples(st.just("place"), holder, node, fleets.requests(CLASSES, most=2)),
        st.tuples(st.just("release"), holder),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """It begins with all classes, and may go anywhere from there."""
    classes = draw(fleets.class_sets())
    more = draw(st.lists(events(classes), max_size=8))
    return [*(("set_class", each) for each in classes), *more]


def happen(event: tuple[object, ...], kept: DeviceInventory, world: World) -> None:
    kind, name, *rest = event
    match kind:
        case "set_class":
            assert isinstance(name, DeviceClass)
            kept.set_class(name)
            world.classes[name.name] = name
        case "drop_class":
            kept.drop_class(str(name))
            world.classes.pop(str(name), None)
        case "set_node":
            kept.set_node(str(name), rest[0])  # type: ignore[arg-type]
            world.nodes[str(name)] = rest[0]  # type: ignore[assignment]
        case "drop_node":
            kept.drop_node(str(name))
            world.nodes.pop(str(name), None)
        case "release":
            kept.release(str(name))
            world.holders.pop(str(name), None)
        case "hold" | "place":
            node, wanted = rest
            found = kept.choose(node, wanted) if kind == "place" else wanted  # type: ignore[arg-type]
            if found:
                if world.holders.get(str(name)) != (node, found):
                    # It comes last in line.
                    world.holders.pop(str(name), None)
                world.holders[str(name)] = (node, found)  # type: ignore[assignment]
                kept.hold(str(name), node, found)  # type: ignore[arg-type]


def check(kept: DeviceInventory, world: World) -> None:
    for name in world.classes:
        status = kept.status(name)
        assert 0 <= status.requested <= status.allocatable
        assert status == world.status(name)
        free = kept.free(name)
        for row, node in enumerate(NODES):
            expected = world.count(name, node, world.free(node)) if node in world.nodes else 0
            assert free[row] == expected
    for node, devices in world.nodes.items():
        for each in devices:
            assert sum(kept.units_by_holder(node, each.name).values()) <= each.units


def new_book() -> DeviceInventory:
    rows = Rows()
    for node in NODES:
        rows.row(node)
    return DeviceInventory(rows)


@settings(max_examples=50, deadline=None)
@given(histories())
def test_requested_is_from_0_to_allocatable_after_any_event_order_and_equals_a_recount(
    history: list[tuple[object, ...]],
) -> None:
    kept, world = new_book(), World()
    before: dict[str, ClassStatus] = {}
    for event in history:
        happen(event, kept, world)
        check(kept, world)
        now = {name: kept.status(name) for name in world.classes}
        differing = {name for name, status in now.items() if before.get(name) != status}
        assert differing <= kept.changed_classes()
        before = now


@settings(max_examples=50, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_restart_replay_equals(history: list[tuple[object, ...]], chance: object) -> None:
    """Classes, nodes and holders become known in any order, but for holders among themselves."""
    kept, world = new_book(), World()
    for event in history:
        happen(event, kept, world)
    hardware: list[tuple[object, ...]] = [
        *(("set_class", each) for each in world.classes.values()),
        *(("set_node", node, devices) for node, devices in world.nodes.items()),
    ]
    oldest_first = iter([("hold", holder, *held) for holder, held in world.holders.items()])
    facts = [*hardware, *(None for _ in world.holders)]
    chance.shuffle(facts)  # type: ignore[attr-defined]
    again = new_book()
    for fact in facts:
        happen(fact or next(oldest_first), again, World())
    for name in world.classes:
        assert again.status(name) == kept.status(name)
        assert again.free(name).tolist() == kept.free(name).tolist()
    assert {each: again.holdings_of(each) for each in HOLDERS} == {
        each: kept.holdings_of(each) for each in HOLDERS
    }
    assert set(again.conflicts()) == set(kept.conflicts())
    for node, devices in world.nodes.items():
        for each in devices:
            assert again.units_by_holder(node, each.name) == kept.units_by_holder(node, each.name)


@settings(max_examples=50, deadline=None)
@given(
    fleets.class_sets(),
    st.lists(fleets.devices(most=4), min_size=1, max_size=2),
    st.lists(
        st.tuples(
            st.sampled_from(HOLDERS), st.sampled_from(NODES), fleets.requests(CLASSES, most=2)
        ),
        max_size=8,
    ),
    st.sampled_from(Strategy),
)
def test_no_device_over_its_units(
    classes: tuple[DeviceClass, ...],
    nodes: list[tuple[Device, ...]],
    pods: list[tuple[str, str, list[DeviceRequest]]],
    strategy: Strategy,
) -> None:
    """Pods come, and come again elsewhere, with whatever they are given: it is added up here."""
    kept = fleets.inventory(classes, *nodes)
    held: dict[str, tuple[str, tuple[DeviceHolding, ...]]] = {}
    for holder, node, requests in pods:
        found = kept.choose(node, requests, strategy)
        if found:
            assert kept.hold(holder, node, found) == ()
            held[holder] = (node, found)
        for number, devices in enumerate(nodes, 1):
            for device in devices:
                units = sum(
                    each.units
                    for at, holdings in held.values()
                    for each in holdings
                    if (at, each.device) == (f"n{number}", device.name)
                )
                assert units <= (device.units if device.healthy else 0)


@settings(max_examples=50, deadline=None)
@given(histories(), st.sampled_from(NODES), fleets.requests(CLASSES, most=2))
def test_create_and_delete_is_identity(
    history: list[tuple[object, ...]], node: str, requests: list[DeviceRequest]
) -> None:
    kept, world = new_book(), World()
    for event in history:
        happen(event, kept, world)
    before = {name: (kept.status(name), kept.free(name).tolist()) for name in world.classes}
    kept.changed_classes()
    found = kept.choose(node, requests)
    assert kept.fits(requests)[NODES.index(node)] == (found is not None)
    if found is not None:
        assert kept.hold("passing", node, found) == ()
        kept.release("passing")
    after = {name: (kept.status(name), kept.free(name).tolist()) for name in world.classes}
    assert after == before
    assert kept.changed_classes() == frozenset()
