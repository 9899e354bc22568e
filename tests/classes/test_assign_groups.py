"""Groups and single devices: what is pruned as alike never hides the only solution.

Problems are drawn tight, with several groups of a family, so that most need backtracking.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dovetail.classes.assign import Demand, Group, Place, Problem, assign

KEYS = (("numa",), ("slot",), ("numa", "slot"))
Left = tuple[int, ...]


def met(units: list[tuple[int, list[int]]], left: Left) -> bool:
    """Whether each unit finds one of the places that are open to it."""
    states = {left}
    for _, options in units:
        states = {
            (*each[:at], each[at] - 1, *each[at + 1 :])
            for each in states
            for at in options
            if each[at]
        }
    return bool(states)


def everything(places: list[Place], problem: Problem) -> bool:
    """Every value for every group, every device for every single demand, every unit anywhere."""
    values = [
        {
            tuple(each.attributes[key] for key in group.keys)
            for each in places
            if all(key in each.attributes for key in group.keys)
        }
        for group in problem.groups
    ]
    return any(_possible(places, problem, chosen) for chosen in product(*values))


def _possible(places: list[Place], problem: Problem, chosen: tuple[tuple[str, ...], ...]) -> bool:
    options = [
        [
            at
            for at, each in enumerate(places)
            if each.mask & demand.bit
            and all(
                tuple(each.attributes.get(key) for key in problem.groups[group].keys)
                == chosen[group]
                for group in demand.groups
            )
        ]
        for demand in problem.demands
    ]
    singles = [at for at, demand in enumerate(problem.demands) if demand.single]
    for homes in product(*(options[at] for at in singles)):
        home = dict(zip(singles, homes, strict=True))
        units = [
            (at, [home[at]] if at in home else options[at])
            for at, demand in enumerate(problem.demands)
            for _ in range(demand.count)
        ]
        if met(units, tuple(each.free for each in places)):
            return True
    return False


@st.composite
def places_drawn(draw: st.DrawFn) -> list[Place]:
    found = []
    shapes: dict[object, int] = {}
    for _ in range(draw(st.integers(2, 5))):
        mask, free = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        attributes = {key: draw(st.sampled_from("001")) for key in ("numa", "slot")}
        if draw(st.integers(0, 9)) == 0:
            del attributes["slot"]
        shape = shapes.setdefault((mask, tuple(attributes.items())), len(shapes))
        found.append(Place(shape, mask, attributes, free))
    return found


def templates(largest: int) -> st.SearchStrategy[list[tuple[int, int, bool]]]:
    """Bit, count, single."""
    one = st.tuples(st.sampled_from([1, 2]), st.integers(1, largest), st.booleans())
    return st.lists(one, min_size=1, max_size=2)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Some families of groups, of which one may have groups within; and demands beside them."""
    outer: list[Group] = []
    inner: list[Group] = []
    demands: list[Demand] = [
        Demand(bit, count, single)
        for bit, count, single in draw(templates(3))
        if draw(st.booleans())
    ]
    drawn = [
        (draw(st.sampled_from(KEYS)), draw(templates(2)), draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 2)))
    ]
    total = sum(copies for _, _, copies in drawn)
    child = (draw(st.sampled_from(KEYS)), draw(templates(1))) if draw(st.booleans()) else None
    for family, (keys, template, copies) in enumerate(drawn):
        for _ in range(copies):
            number = len(outer)
            outer.append(Group(keys, (-1, f"family{family}")))
            demands += [Demand(bit, count, single, (number,)) for bit, count, single in template]
            if child and family == 0:
                path = (number, total + len(inner))
                inner.append(Group(child[0], (number, "child")))
                demands += [Demand(bit, count, single, path) for bit, count, single in child[1]]
    return Problem(tuple(demands), (*outer, *inner))


def faults(places: list[Place], problem: Problem, takes: list[dict[int, int]]) -> Iterator[str]:
    """What is wrong with a solution."""
    used = [0] * len(places)
    agreed: dict[int, set[object]] = {}
    for demand, taken in zip(problem.demands, takes, strict=True):
        if sum(taken.values()) != demand.count or min(taken.values()) < 1:
            yield "not the number asked for"
        if demand.single and len(taken) != 1:
            yield "not a single device"
        for at, units in taken.items():
            used[at] += units
            if not places[at].mask & demand.bit:
                yield "not of the class"
            for group in demand.groups:
                keys = problem.groups[group].keys
                agreed.setdefault(group, set()).add(tuple(map(places[at].attributes.get, keys)))
    if any(count > each.free for count, each in zip(used, places, strict=True)):
        yield "more than there is"
    if any(len(values) > 1 or None in next(iter(values)) for values in agreed.values()):  # type: ignore[operator]
        yield "no agreement"


@settings(max_examples=150, deadline=None)
@given(places_drawn(), problems(), st.booleans())
def test_groups_and_single_devices_are_refused_only_if_nothing_is_found(
    places: list[Place], problem: Problem, cheapest: bool
) -> None:
    found = assign(places, problem, cheapest=cheapest)
    event("solved" if found is not None else "refused")
    assert (found is not None) == everything(places, problem)
    if found is not None:
        assert list(faults(places, problem, found)) == []
