"""Who holds a device: whatever the order of calls, never both."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dovetail.node.device_plugins.holders import GRANT_SECONDS, LINGER_SECONDS, PluginDeviceHolders

IDS = ("a", "b", "c")


class HoldersMachine(RuleBasedStateMachine):
    """Against what a class's pods and the kubelet's pods really have in their containers."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.holders = PluginDeviceHolders(lambda: self.now)
        self.classes: set[str] = set()
        self.under_way: dict[str, float] = {}
        """And since when."""
        self.kubelet: set[str] = set()
        self.passing: list[str] = []

    @rule(id_=some.sampled_from(IDS))
    def class_allocates(self, id_: str) -> None:
        refused = self.holders.take_for_class([id_])
        assert bool(refused) == (id_ in self.kubelet or id_ in self.passing)
        if not refused and id_ not in self.classes:
            self.under_way[id_] = self.now

    @rule(id_=some.sampled_from(IDS), admitted=some.booleans())
    def class_is_done(self, id_: str, *, admitted: bool) -> None:
        if id_ not in self.under_way:
            return
        del self.under_way[id_]
        if admitted:
            self.classes.add(id_)
        else:
            self.holders.give_back([id_])
        self.holders.set_held(self.classes)

    @rule(id_=some.sampled_from(IDS))
    def class_pod_ends(self, id_: str) -> None:
        self.classes.discard(id_)
        self.holders.set_held(self.classes)

    @rule(id_=some.sampled_from(IDS))
    def kubelet_asks(self, id_: str) -> None:
        if id_ in self.kubelet or id_ in self.passing:
            return
        refused = self.holders.take_for_kubelet([id_])
        assert bool(refused) == (id_ in self.classes or id_ in self.under_way)
        if not refused:
            self.passing.append(id_)

    @precondition(lambda self: self.passing)
    @rule(given=some.booleans())
    def plugin_answers_the_kubelet(self, *, given: bool) -> None:
        id_ = self.passing.pop()
        self.holders.passed_to_kubelet([id_], given=given)
        if given:
            self.kubelet.add(id_)

    @rule(seconds=some.sampled_from((0.0, 1.0, LINGER_SECONDS / 2)))
    def kubelet_is_read(self, seconds: float) -> None:
        """It has written down what it has within the time that is waited for it."""
        self.holders.kubelet_holds(self.kubelet, self.now)
        self._wait(seconds)

    @rule(id_=some.sampled_from(IDS))
    def kubelet_pod_ends(self, id_: str) -> None:
        self.kubelet.discard(id_)
        self._wait(LINGER_SECONDS + 1)
        self.holders.kubelet_holds(self.kubelet, self.now)

    def _wait(self, seconds: float) -> None:
        """Calls of plugins have deadlines: none is under way as long as a grant lasts."""
        self.now += seconds
        for id_ in [id_ for id_, at in self.under_way.items() if self.now - at > GRANT_SECONDS / 2]:
            self.class_is_done(id_=id_, admitted=False)

    @invariant()
    def never_both(self) -> None:
        assert not (self.classes | self.under_way.keys()) & {*self.kubelet, *self.passing}


def test_whatever_is_taken_and_given_back_nobody_has_what_is_anothers() -> None:
    run_state_machine_as_test(HoldersMachine, settings=settings(max_examples=60, deadline=None))


def test_what_was_just_given_to_the_kubelet_is_not_free_because_it_is_not_written_yet() -> None:
    now = 100.0
    holders = PluginDeviceHolders(lambda: now)
    assert not holders.take_for_kubelet(["a"])
    holders.passed_to_kubelet(["a"], given=True)
    holders.kubelet_holds([], now + 1)
    assert holders.held_elsewhere(["a"]) == ["a"]
    holders.kubelet_holds(["a"], now + 2)
    holders.kubelet_holds([], now + 3)
    assert not holders.held_elsewhere(["a"])


def test_a_grant_that_nobody_confirms_ends_some_time() -> None:
    now = [0.0]
    holders = PluginDeviceHolders(lambda: now[0])
    assert not holders.take_for_class(["a"])
    # Another pod's holdings are told meanwhile.
    holders.set_held(["b"])
    assert holders.held_by_classes() == {"a", "b"}
    now[0] = GRANT_SECONDS + 1
    assert holders.held_by_classes() == {"b"}


def test_what_a_class_has_it_may_ask_for_again_while_the_kubelet_is_unknown() -> None:
    holders = PluginDeviceHolders(lambda: 0.0)
    holders.set_held(["a"])
    holders.unknown = "not asked"
    assert not holders.take_for_class(["a"])
    assert "not asked" in str(holders.take_for_class(["b"]))
