"""Cases small enough to be worked out by hand; they hold the oracle, and the engine with it.

The first few are those in which the reference implementation answers wrongly.
"""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.request import Group, Request
from tests.engine.conftest import Answer
from tests.engine.forest import SHARING, Forest, Inventory, grow, node
from tests.engine.oracle import Candidate

TWO_HOSTS_AND_A_SHARE = grow(
    node("cn1", VCPU=4, aggregates=["agg"]),
    node("cn2", node("cn2-numa", VCPU=4, aggregates=["agg"])),
    node("ss", DISK_GB=9, traits=[SHARING], aggregates=["agg"]),
)


def group(suffix: str = "", /, **conditions: Any) -> Group:
    """A group whose resources are the conditions in capitals."""
    resources = {name: value for name, value in conditions.items() if name.isupper()}
    others = {name: value for name, value in conditions.items() if not name.isupper()}
    return Group(suffix=suffix, resources=resources, **others)


def asked(*groups: Group, **wide: Any) -> Request:
    return Request(groups=groups, **wide)


def found(answers: set[Candidate]) -> set[str]:
    """Candidates as text: "a VCPU:2, b DISK_GB:1" in the order of names."""
    return {
        ", ".join(f"{name} {held}:{amount}" for name, held, amount in sorted(one.allocations))
        for one in answers
    }


def test_sums_are_those_of_one_candidate_only(answer: Answer) -> None:
    forest = grow(node("root", node("a", VCPU=4), node("b", VCPU=4)))
    request = asked(group(VCPU=1), group("_1", VCPU=1))
    assert found(answer(forest, request)) == {"a VCPU:2", "b VCPU:2", "a VCPU:1, b VCPU:1"}
    assert len(answer(forest, request)) == 4


def test_shared_resources_alone_keep_all_their_anchors(answer: Answer) -> None:
    request = asked(group(DISK_GB=1), group("_1", VCPU=1))
    assert found(answer(TWO_HOSTS_AND_A_SHARE, request)) == {
        "cn1 VCPU:1, ss DISK_GB:1",
        "cn2-numa VCPU:1, ss DISK_GB:1",
    }


def test_a_nested_provider_may_share(answer: Answer) -> None:
    forest = grow(
        node("cn", VCPU=4, aggregates=["agg"]),
        node("box", node("tray", DISK_GB=9, traits=[SHARING], aggregates=["agg"]), VCPU=4),
    )
    assert found(answer(forest, asked(group(VCPU=1, DISK_GB=1)))) == {
        "cn VCPU:1, tray DISK_GB:1",
        "box VCPU:1, tray DISK_GB:1",
    }


def test_a_group_without_resources_heeds_its_tree(answer: Answer) -> None:
    forest = grow(node("a", VCPU=4), node("b", VCPU=4))
    request = asked(group(VCPU=1), group("_HERE", in_tree="b"))
    assert found(answer(forest, request)) == {"b VCPU:1"}


def test_a_group_without_resources_may_only_forbid(answer: Answer) -> None:
    forest = grow(node("a", VCPU=4, traits=["LARGE"]), node("b", VCPU=4))
    request = asked(group(VCPU=1), group("_SMALL", forbidden=frozenset(["LARGE"])))
    assert found(answer(forest, request)) == {"b VCPU:1"}


@pytest.mark.parametrize(
    ("held", "amount", "fits"),
    [
        (Inventory(4, used=2), 2, True),
        (Inventory(4, used=2), 3, False),
        (Inventory(4, reserved=2), 3, False),
        (Inventory(3, ratio=1.5), 4, True),
        (Inventory(3, ratio=1.5), 5, False),
        (Inventory(8, min_unit=3), 2, False),
        (Inventory(8, max_unit=3), 4, False),
        (Inventory(8, step_size=3), 4, False),
        (Inventory(8, step_size=3), 6, True),
        (Inventory(2, used=5), 1, False),
    ],
)
def test_capacity_and_units(answer: Answer, held: Inventory, amount: int, fits: bool) -> None:
    forest = grow(node("a", VCPU=held))
    expected = {f"a VCPU:{amount}"} if fits else set()
    assert found(answer(forest, asked(group(VCPU=amount)))) == expected
    assert found(answer(forest, asked(group("_1", VCPU=amount)))) == expected


def test_sums_heed_capacity_and_max_unit_but_neither_step_nor_min_unit(answer: Answer) -> None:
    forest = grow(
        node("small", VCPU=5),
        node("strict", VCPU=Inventory(9, max_unit=5)),
        node("stepped", VCPU=Inventory(9, min_unit=3, step_size=3)),
    )
    twice = asked(group("_1", VCPU=3), group("_2", VCPU=3))
    assert found(answer(forest, twice)) == {"stepped VCPU:6"}


def test_a_suffixed_group_takes_all_from_one_provider(answer: Answer) -> None:
    forest = grow(
        node("split", node("cpu", VCPU=4), node("ram", MEMORY_MB=4)),
        node("whole", VCPU=4, MEMORY_MB=4),
    )
    assert found(answer(forest, asked(group("_1", VCPU=1, MEMORY_MB=1)))) == {
        "whole MEMORY_MB:1, whole VCPU:1"
    }
    assert found(answer(forest, asked(group(VCPU=1, MEMORY_MB=1)))) == {
        "whole MEMORY_MB:1, whole VCPU:1",
        "cpu VCPU:1, ram MEMORY_MB:1",
    }


def test_traits_of_the_unsuffixed_group_come_from_those_that_serve_it(answer: Answer) -> None:
    forest = grow(
        node(
            "root",
            node("cpu", VCPU=4, traits=["NET1"]),
            node("ram", MEMORY_MB=4, traits=["NET2"]),
            traits=["LARGE"],
        )
    )
    both = group(VCPU=1, MEMORY_MB=1, required=(frozenset(["NET1"]), frozenset(["NET2"])))
    assert found(answer(forest, asked(both))) == {"cpu VCPU:1, ram MEMORY_MB:1"}
    idle = group(VCPU=1, MEMORY_MB=1, required=(frozenset(["LARGE"]),))
    assert found(answer(forest, asked(idle))) == set()
    banned = group(VCPU=1, MEMORY_MB=1, forbidden=frozenset(["NET2"]))
    assert found(answer(forest, asked(banned))) == set()


def members(*aggregates: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset([aggregate]) for aggregate in aggregates)


def test_the_roots_aggregates_count_for_the_unsuffixed_group_only(answer: Answer) -> None:
    forest = grow(node("root", node("cpu", VCPU=4), aggregates=["zone"]))
    assert found(answer(forest, asked(group(VCPU=1, member_of=members("zone"))))) == {"cpu VCPU:1"}
    assert found(answer(forest, asked(group("_1", VCPU=1, member_of=members("zone"))))) == set()
    out = frozenset(["zone"])
    assert found(answer(forest, asked(group(VCPU=1, not_member_of=out)))) == set()
    assert found(answer(forest, asked(group("_1", VCPU=1, not_member_of=out)))) == {"cpu VCPU:1"}


def test_memberships_are_not_pieced_together(answer: Answer) -> None:
    forest = grow(node("root", node("cpu", VCPU=4, aggregates=["one"]), aggregates=["two"]))
    assert answer(forest, asked(group(VCPU=1, member_of=members("one", "two")))) == set()


def test_a_sharing_provider_is_a_member_itself(answer: Answer) -> None:
    def forest(*aggregates: str) -> Forest:
        return grow(
            node("cn", VCPU=4, aggregates=["agg", "zone"]),
            node("ss", DISK_GB=9, traits=[SHARING], aggregates=["agg", *aggregates]),
        )

    request = asked(group(VCPU=1, DISK_GB=1, member_of=members("zone")))
    assert found(answer(forest(), request)) == set()
    assert found(answer(forest("zone"), request)) == {"cn VCPU:1, ss DISK_GB:1"}


def test_a_sharing_provider_is_kept_out_with_the_anchor_not_with_its_own_root(
    answer: Answer,
) -> None:
    def forest(anchored: list[str], nested: list[str]) -> Forest:
        tray = node("tray", DISK_GB=9, traits=[SHARING], aggregates=["agg"])
        return grow(
            node("cn", VCPU=4, aggregates=["agg", *anchored]), node("box", tray, aggregates=nested)
        )

    request = asked(group(VCPU=1, DISK_GB=1, not_member_of=frozenset(["bad"])))
    assert found(answer(forest([], ["bad"]), request)) == {"cn VCPU:1, tray DISK_GB:1"}
    assert found(answer(forest(["bad"], []), request)) == set()
    disk = asked(group(DISK_GB=1, not_member_of=frozenset(["bad"])))
    assert found(answer(forest(["bad"], []), disk)) == {"tray DISK_GB:1"}


def test_in_tree_shuts_sharing_out_of_the_unsuffixed_group_only(answer: Answer) -> None:
    spread = asked(group(VCPU=1, DISK_GB=1, in_tree="cn1"))
    assert found(answer(TWO_HOSTS_AND_A_SHARE, spread)) == set()
    single = asked(group("_CPU", VCPU=1), group("_DISK", DISK_GB=1, in_tree="ss"))
    assert found(answer(TWO_HOSTS_AND_A_SHARE, single)) == {
        "cn1 VCPU:1, ss DISK_GB:1",
        "cn2-numa VCPU:1, ss DISK_GB:1",
    }


def test_root_conditions_are_on_the_anchor_not_on_the_sharing_tree(answer: Answer) -> None:
    request = asked(group(VCPU=1, DISK_GB=1), root_forbidden=frozenset([SHARING]))
    assert len(answer(TWO_HOSTS_AND_A_SHARE, request)) == 2
    disk = asked(group(DISK_GB=1), root_forbidden=frozenset([SHARING]))
    assert found(answer(TWO_HOSTS_AND_A_SHARE, disk)) == {"ss DISK_GB:1"}


def test_clients_without_nesting_get_one_provider_per_tree(answer: Answer) -> None:
    request = asked(group(VCPU=1, DISK_GB=1), one_provider_per_tree=True)
    assert len(answer(TWO_HOSTS_AND_A_SHARE, request)) == 2
    nested = grow(node("cn", node("disk", DISK_GB=9), VCPU=4))
    assert answer(nested, request) == set()


def test_names_that_are_nowhere(answer: Answer) -> None:
    forest = grow(node("a", VCPU=4, traits=["LARGE"], aggregates=["agg"]))
    nowhere = frozenset(["NOWHERE"])
    for unmet in (
        group(NOWHERE=1),
        group("_1", NOWHERE=1),
        group(VCPU=1, required=(nowhere,)),
        group(VCPU=1, member_of=(nowhere,)),
        group(VCPU=1, in_tree="NOWHERE"),
    ):
        assert answer(forest, asked(unmet)) == set()
    for met in (
        group(VCPU=1, required=(nowhere | {"LARGE"},)),
        group(VCPU=1, forbidden=nowhere),
        group(VCPU=1, member_of=(nowhere | {"agg"},)),
        group(VCPU=1, not_member_of=nowhere),
    ):
        assert found(answer(forest, asked(met))) == {"a VCPU:1"}


def test_nothing_is_found_in_an_empty_forest(answer: Answer) -> None:
    assert answer(Forest([]), asked(group(VCPU=1))) == set()
