"""Who holds which device of one plugin: a class, or a pod of the kubelet. First come, first served.

Both sides take IDs here before the plugin is called, and nothing is awaited in between: of two
that want one device at the same time one has it, and the other is told why not. What the kubelet
gave out before is read from it (`kubelet_devices.py`); what it is giving out passes through here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

LINGER_SECONDS = 60.0
"""For what the kubelet was given and did not write down yet. Once seen, what it writes counts."""

GRANT_SECONDS = 600.0
"""For what a class was given and nobody confirmed: an admission does not take that long."""


class PluginDeviceHolders:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: frozenset[str] = frozenset()
        self._granted: dict[str, float] = {}
        """Taken for a class, and not among the held ones as yet; when that began."""
        self._passing: Counter[str] = Counter()
        """The kubelet's Allocate is at the plugin with these."""
        self._passed: dict[str, float] = {}
        """The kubelet was given these, and has not been seen with them; when that was."""
        self._elsewhere: frozenset[str] = frozenset()
        """What the kubelet says it gave out."""
        self.unknown = ""
        """Why it is not known what the kubelet gave out; empty if it is."""

    # Classes.

    def set_held(self, ids: Collection[str]) -> bool:
        """What classes hold; whether that is news to the kubelet."""
        before = self.held_by_classes()
        self._held = frozenset(ids)
        for each in self._held & self._granted.keys():
            del self._granted[each]
        return before != self.held_by_classes()

    def take_for_class(self, ids: Iterable[str]) -> str | None:
        """From now on the kubelet is not given them; or why they cannot be had."""
        ids = tuple(ids)
        mine = self.held_by_classes()
        others = [each for each in ids if each not in mine]
        if others and self.unknown:
            return f"it is not known which devices the kubelet gave to pods: {self.unknown}"
        if taken := self.held_elsewhere(others):
            return f"the kubelet gave {', '.join(taken)} to a pod"
        now = self._clock()
        self._granted.update({each: now for each in ids if each not in self._held})
        return None

    def give_back(self, ids: Iterable[str]) -> None:
        """What was taken for a class and came to nothing."""
        for each in ids:
            self._granted.pop(each, None)

    def held_by_classes(self) -> Set[str]:
        now = self._clock()
        for each in [id_ for id_, at in self._granted.items() if now - at > GRANT_SECONDS]:
            del self._granted[each]
        return self._held | self._granted.keys()

    # The kubelet.

    def take_for_kubelet(self, ids: Iterable[str]) -> str | None:
        """From now on no class is given them; or why they cannot be had."""
        ids = tuple(ids)
        if taken := sorted(self.held_by_classes() & {*ids}):
            return f"{', '.join(taken)} is held by a pod that got it by a resource class"
        self._passing.update(ids)
        return None

    def passed_to_kubelet(self, ids: Iterable[str], *, given: bool) -> None:
        """The plugin answered the kubelet, or did not."""
        for each in ids:
            self._passing[each] -= 1
            if self._passing[each] <= 0:
                del self._passing[each]
            if given:
                self._passed[each] = self._clock()

    def kubelet_holds(self, ids: Collection[str], begun: float) -> None:
        """What it had given out at that time of the clock, or later."""
        self._elsewhere, self.unknown = frozenset(ids), ""
        self._passed = {
            each: at
            for each, at in self._passed.items()
            if each not in self._elsewhere and begun - at <= LINGER_SECONDS
        }

    def held_elsewhere(self, ids: Collection[str]) -> Sequence[str]:
        return [
            each
            for each in ids
            if each in self._elsewhere or each in self._passing or each in self._passed
        ]

    def counts(self, ids: Mapping[str, object]) -> tuple[int, int]:
        """Of these, how many classes hold, and how many the kubelet's pods."""
        return len(self.held_by_classes() & ids.keys()), len(self.held_elsewhere(tuple(ids)))
