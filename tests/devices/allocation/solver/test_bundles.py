"""Bundles and single devices: what is pruned as alike never hides the only solution.

Problems are drawn tight, with several bundles of a family, so that most need backtracking.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dovetail.devices.allocation.solver.problem import Bundle, DeviceDemand, DevicePlace
from dovetail.devices.allocation.solver.search import assign

KEYS = (("numa",), ("slot",), ("numa", "slot"))
Left = tuple[int, ...]
Agreed = dict[str, object]


class Unit(msgspec.Struct, frozen=True):
    """A unit to be found, and the sets it is part of with what their devices agree in."""

    bit: int
    within: tuple[tuple[str, tuple[str, ...] | None], ...]


def units(bundle: Bundle, path: str, within: tuple[object, ...] = ()) -> Iterator[Unit]:
    for number in range(bundle.count):
        here = f"{path}/{number}"
        sets = (*within, (here, bundle.same))
        for each in bundle.demands:
            yield from [Unit(each.bit, sets)] * each.count  # type: ignore[arg-type]
        for at, part in enumerate(bundle.parts):
            yield from units(part, f"{here}.{at}", sets)


def wanted_by(bundles: Sequence[Bundle]) -> list[Unit]:
    return [unit for number, bundle in enumerate(bundles) for unit in units(bundle, str(number))]


def can_be_met(places: Sequence[DevicePlace], wanted: Sequence[Unit], left: Left) -> bool:
    """Every place for every unit, one after the other."""
    dead: set[object] = set()

    def go(at: int, left: Left, agreed: Agreed) -> bool:
        if at == len(wanted):
            return True
        state = (at, left, frozenset(agreed.items()))
        if state in dead:
            return False
        unit = wanted[at]
        for number, place in enumerate(places):
            if not left[number] or not place.mask & unit.bit:
                continue
            has = {path: value(place, number, keys) for path, keys in unit.within}
            if None in has.values() or any(
                agreed.get(path, found) != found for path, found in has.items()
            ):
                continue
            rest = (*left[:number], left[number] - 1, *left[number + 1 :])
            if go(at + 1, rest, {**agreed, **has}):
                return True
        dead.add(state)
        return False

    return sum(left) >= len(wanted) and go(0, left, {})


def value(place: DevicePlace, number: int, keys: tuple[str, ...] | None) -> object:
    if keys is None:
        return number
    found = tuple(place.attributes.get(key) for key in keys)
    return None if None in found else found


def places_drawn(chance: random.Random) -> list[DevicePlace]:
    found = []
    shapes: dict[object, int] = {}
    for _ in range(chance.randint(2, 6)):
        mask, free = chance.randint(1, 3), chance.randint(1, 4)
        attributes = {key: chance.choice("0012") for key in ("numa", "slot")}
        if not chance.randrange(10):
            del attributes["slot"]
        shape = shapes.setdefault((mask, tuple(attributes.items())), len(shapes))
        found.append(DevicePlace(shape, mask, attributes, free))
    return found


def demands(chance: random.Random, largest: int) -> tuple[Bundle, ...]:
    """For plain units, or for units of a single device."""
    return tuple(
        Bundle(
            1,
            (DeviceDemand(chance.choice((1, 2)), chance.randint(1, largest)),),
            same=chance.choice(((), None)),
        )
        for _ in range(chance.randint(1, 2))
    )


def wishes_drawn(chance: random.Random) -> list[Bundle]:
    """Some bundles, of which some have bundles within and some a twin; and demands beside them."""
    found = []
    for _ in range(chance.randint(1, 2)):
        within = Bundle(chance.randint(1, 2), (), demands(chance, 1), chance.choice(KEYS))
        parts = demands(chance, 2) + ((within,) if not chance.randrange(3) else ())
        bundle = Bundle(chance.randint(1, 3), (), parts, chance.choice(KEYS))
        found += [bundle] * chance.randint(1, 2)
    found += [each for each in demands(chance, 3) if chance.randrange(2)]
    chance.shuffle(found)
    return found


def faults(
    places: list[DevicePlace], bundles: list[Bundle], takes: list[dict[int, int]]
) -> Iterator[str]:
    """What is wrong with a solution."""
    used = [0] * len(places)
    for number, (bundle, taken) in enumerate(zip(bundles, takes, strict=True)):
        wanted = list(units(bundle, str(number)))
        if sum(taken.values()) != len(wanted) or min(taken.values()) < 1:
            yield "not the number asked for"
        own = tuple(taken.get(at, 0) for at in range(len(places)))
        if not can_be_met(places, wanted, own):
            yield "what a wish takes does not meet it"
        used = [before + more for before, more in zip(used, own, strict=True)]
    if any(count > each.free for count, each in zip(used, places, strict=True)):
        yield "more than there is"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_bundles_and_single_devices_are_refused_only_if_nothing_is_found(
    seed: int, cheapest: bool
) -> None:
    chance = random.Random(seed)
    places, bundles = places_drawn(chance), wishes_drawn(chance)
    wanted = wanted_by(bundles)
    free = tuple(each.free for each in places)
    # Too much by far is refused at a glance: nothing to be learnt there.
    while len(wanted) > sum(free):
        bundles.pop()
        wanted = wanted_by(bundles)
    found = assign(places, bundles, cheapest=cheapest)
    event("solved" if found is not None else "refused")
    assert (found is not None) == can_be_met(places, wanted, free)
    if found is not None:
        assert list(faults(places, bundles, found)) == []
