"""Why there is no pick: the fewest apps and controllers, and what each controller leaves."""

from __future__ import annotations

from hypothesis import assume, given, settings

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.combining import combine
from dovetail.intents.candidates.conflicts import NoPick, limited_to
from dovetail.intents.candidates.partitions import ControllerAnswer, PartitionCandidates
from dovetail.intents.candidates.picking import pick
from tests.intents.candidates.oracle import Literal
from tests.intents.candidates.section8 import affinity, listed, lists
from tests.intents.candidates.test_picking import hardware
from tests.intents.candidates.worlds import World, crowded_worlds

THREE = ("c1", "c2", "c3")


def refused(
    *answers: ControllerAnswer, apps: str = "ab", clusters: tuple[str, ...] = THREE
) -> NoPick:
    found = pick(combine(answers, tuple(apps), clusters))
    assert isinstance(found, NoPick), found
    assert found.is_proven
    return found


def is_feasible(world: World, answers: list[ControllerAnswer], apps: tuple[str, ...]) -> bool:
    literal = Literal(limited_to(answers, apps), apps, world.clusters)
    return next(literal.assignments(), None) is not None


@settings(max_examples=100, deadline=None)
@given(crowded_worlds())
def test_nothing_can_be_left_out_of_the_smallest_conflict(world: World) -> None:
    found = pick(combine(world.answers, world.apps, world.clusters))
    assume(isinstance(found, NoPick))
    assert isinstance(found, NoPick)
    conflict = found.conflict
    assert conflict is not None
    answers = [each for each in world.answers if each.controller in conflict.controllers]
    assert not is_feasible(world, answers, conflict.apps)
    for app in conflict.apps:
        others = tuple(each for each in conflict.apps if each != app)
        if others and not combine(world.answers, world.apps, world.clusters).refusals:
            assert is_feasible(world, answers, others)
    for answer in answers:
        rest = [each for each in answers if each is not answer]
        assert is_feasible(world, rest, conflict.apps)


def test_apps_that_have_nothing_to_do_with_it_are_left_out() -> None:
    """Of four apps, b and d want the same cluster, which takes one of them."""
    only = ClusterSet.allow({"c2"})
    found = refused(
        hardware({"c2": ["b", "d"]}),
        lists("generic", b=listed(only), d=listed(only)),
        lists("other", a=listed(ClusterSet.deny({"c1"}))),
        apps="abcd",
    )
    assert found.conflict is not None
    assert found.conflict.apps == ("b", "d")
    assert found.conflict.controllers == ("generic", "hpa")
    assert found.words == (
        "b can go to c2 and d can go to c2, but not all at once: c2 takes 1 of b and d at once"
    )


def test_more_apps_than_clusters_that_must_be_apart() -> None:
    apart = affinity(denied=[("a", "b"), ("b", "c"), ("a", "c")])
    found = refused(apart, apps="abc", clusters=("c1", "c2"))
    assert found.conflict is not None
    assert found.conflict.apps == ("a", "b", "c")
    assert "a and b must not share a cluster" in found.words


def test_words_stay_short_with_many_apps() -> None:
    apps = "abcdefgh"
    apart = affinity(denied=[(one, two) for one in apps for two in apps if one < two])
    found = refused(apart, apps=apps, clusters=tuple(f"c{n}" for n in range(7)))
    assert found.words == (
        "a, b, c and 5 more can go to every cluster between them, but not all at once:"
        " a and b must not share a cluster; a and c must not share a cluster;"
        " a and d must not share a cluster; a and e must not share a cluster; and 24 more such"
    )


def test_two_controllers_that_leave_nothing_in_common() -> None:
    found = refused(
        lists("x", a=listed(ClusterSet.allow({"c1"}))),
        lists("y", a=listed(ClusterSet.allow({"c2", "c3"}))),
        lists("z", a=listed(EVERYWHERE)),
    )
    assert found.words == "a: count 1 > 0 clusters"
    assert found.conflict is not None
    assert found.conflict.controllers == ("x", "y")
    narrowing = found.apps["a"]
    assert [(each.controller, each.size) for each in narrowing.limits] == [("x", 1), ("y", 2)]
    assert narrowing.size == 0
    assert narrowing.words == "a: x leaves c1; y leaves c2 and c3; all together leave none"
    assert found.apps["b"].words == "b: all together leave every cluster"


def test_words_stay_short_on_large_fleets() -> None:
    clusters = tuple(f"c{n:04}" for n in range(2000))
    few = lists("x", a=listed(ClusterSet.allow(clusters[:900])))
    most = lists("y", a=listed(ClusterSet.deny(clusters[:901])))
    found = refused(few, most, apps="a", clusters=clusters)
    assert found.apps["a"].words == (
        "a: x leaves 900 clusters; y leaves 1099 clusters; all together leave none"
    )


def test_relations_that_contradict_name_their_apps() -> None:
    found = refused(affinity(denied=[("a", "b")], required=[("a", "b")]), apps="abc")
    assert found.words == "a and b: a requires b, and must not share a cluster with it"
    assert found.conflict is not None
    assert found.conflict.apps == ("a", "b")
    assert found.conflict.controllers == ("affinity",)


def test_an_app_that_requires_one_that_is_not_there() -> None:
    found = refused(affinity(required=[("a", "x")]))
    assert found.words == "a: a requires x, which is no app of the group"
    assert found.conflict is not None
    assert found.conflict.controllers == ("affinity",)


def test_candidates_that_controllers_did_not_tell() -> None:
    """There may be a pick among them; what is known is told all the same."""
    cut = ControllerAnswer(
        controller="hpa",
        candidates=PartitionCandidates(
            alternatives=({"a": listed(ClusterSet.allow(()))},), is_complete=False
        ),
    )
    found = pick(combine([cut], tuple("a"), THREE))
    assert isinstance(found, NoPick)
    assert not found.is_proven
    assert found.words == "a: count 1 > 0 clusters"
