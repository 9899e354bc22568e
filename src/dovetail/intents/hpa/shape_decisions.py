"""Decisions on one shape of clusters: which apps fit alone, which together, with which options.

The HPA controller makes one for each shape, and reads all answers off it. Apps and options are
numbered by their places in the group, and sets of them are bit masks. Questions come down to the
packer, each once; what follows from earlier answers is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from dovetail.intents.hpa.budget import HpaBudget
from dovetail.intents.hpa.cluster_shape import ClusterShape, Sight
from dovetail.intents.hpa.demand import AppHardware, HardwareOption, WorkloadDemand
from dovetail.intents.hpa.packer import Fit, Packer
from dovetail.intents.hpa.refusals import UNDECIDED, ShapeRefusal, contended_for, refusal_of
from dovetail.intents.hpa.subsets import (
    BestSubset,
    LargestSets,
    MonotoneFamily,
    ScarceResource,
    best_subset,
    largest_sets,
    smallest_failing,
)
from dovetail.podfit.packing.relations import relations_among
from dovetail.podfit.packing.solver.problem import BudgetSpent, StepBudget

STEPS_TO_ASK = 50
"""What a question takes that the solver is not needed for."""


class GroupHardware:
    """All apps of a group, with options numbered through."""

    def __init__(self, apps: Sequence[AppHardware]) -> None:
        self.apps = tuple(apps)
        self.options: tuple[HardwareOption, ...] = tuple(
            option for app in apps for option in app.options
        )
        self._first = []
        """By app, the number of its first option."""
        at = 0
        for app in apps:
            self._first.append(at)
            at += len(app.options)

    def options_of(self, apps: int) -> int:
        found = 0
        for at in members(apps):
            found |= ((1 << len(self.apps[at].options)) - 1) << self._first[at]
        return found

    def demands(self, apps: int, granted: int) -> list[WorkloadDemand]:
        """Of the workloads of these apps, in order, with these options."""
        found: list[WorkloadDemand] = []
        for at in members(apps):
            found += self.apps[at].demands(self.own_options(at, granted))
        return found

    def own_options(self, app: int, granted: int) -> int:
        """Those of the app, numbered as it numbers them."""
        return granted >> self._first[app] & (1 << len(self.apps[app].options)) - 1


def members(mask: int) -> Iterator[int]:
    """The numbers whose bits are set, in ascending order."""
    at = 0
    while mask >> at:
        if mask >> at & 1:
            yield at
        at += 1


class SharedApps(msgspec.Struct, frozen=True):
    """The apps that fit a shape alone, and how they share it."""

    sets: tuple[int, ...]
    """The largest that fit together; one, if all do."""
    is_complete: bool
    is_additive: bool
    """Whether apps that are together get all that each would get alone."""


class ShapeDecisions:
    def __init__(
        self,
        shape: ClusterShape,
        group: GroupHardware,
        sight: Sight,
        budget: HpaBudget,
        allowance: int,
    ) -> None:
        """`allowance`: steps for all questions on this shape; as many again for what is asked
        later, of the few clusters that may be picked."""
        self.group, self._budget = group, budget
        self._left = allowance
        self._least = budget.least_steps
        self.packer = Packer(shape.first, shape.nodes, sight.devices, budget.steps)
        self._fits: dict[tuple[int, int], Fit | None] = {}
        self._undecided: set[tuple[int, int]] = set()
        self._best: dict[int, BestSubset] = {}
        self._refusals: dict[int, ShapeRefusal] = {}
        self._contention: str | None = None
        self._looks_across = self._looks()
        every = (1 << len(group.apps)) - 1
        if not self._looks_across:
            # Mostly all of it fits; then nothing else has to be asked.
            self.fits(every, group.options_of(every))
        self.fitting = 0
        self.undecided = 0
        """Apps of which it would have taken too long to say whether they fit alone."""
        for at in range(len(group.apps)):
            answer = self.fits(self._with_those_near(at), 0)
            if answer:
                self.fitting |= 1 << at
            elif answer is None:
                self.undecided |= 1 << at
        self._least = 0
        self.shared = self._shared()
        self.spent = allowance - self._left
        self._left = max(self._left, allowance)

    def fit(self, apps: int, options: int) -> Fit | None:
        """Where their pods go with just these options. Raises BudgetSpent."""
        key = apps, options
        if key in self._undecided:
            raise BudgetSpent
        if key not in self._fits:
            self._budget.check()
            wanted = self._budget.steps
            steps = StepBudget(min(wanted, max(self._left, self._least)))
            if not steps.left:
                raise BudgetSpent
            try:
                demands = self.group.demands(apps, options)
                self._fits[key] = self.packer.fit(demands, budget=steps)
            except BudgetSpent:
                if steps.spent == wanted:
                    self._undecided.add(key)
                raise
            finally:
                self._left -= steps.spent + STEPS_TO_ASK
        return self._fits[key]

    def fits(self, apps: int, options: int) -> bool | None:
        """None: undecided. What is within a set that fits fits, unless apps look at each other."""
        if (apps, options) not in self._fits and not self._looks_across:
            for (more, granted), found in self._fits.items():
                if found is not None and not apps & ~more and not options & ~granted:
                    return True
                if found is None and not more & ~apps and not granted & ~options:
                    return False
        try:
            return self.fit(apps, options) is not None
        except BudgetSpent:
            return None

    def some_fit(self, apps: int, options: int) -> Fit:
        """Where pods of apps that fit with these options go: if it would take too long to say of
        just these, then as in a larger set that was packed."""
        try:
            found = self.fit(apps, options)
            assert found is not None
            return found
        except BudgetSpent:
            wanted = [(each.app, each.at) for each in self.group.demands(apps, options)]
            for (more, granted), found in self._fits.items():
                if found is not None and not apps & ~more and not options & ~granted:
                    known = self.group.demands(more, granted)
                    places = {(each.app, each.at): at for at, each in enumerate(known)}
                    return found.of([places[each] for each in wanted])
            raise

    def best(self, apps: int) -> BestSubset:
        """The options that these apps get together: of most weight. The apps fit together."""
        if apps not in self._best:
            self._best[apps] = self._best_options(apps)
        return self._best[apps]

    @property
    def is_proven(self) -> bool:
        """Whether no other set of apps, and no better options of one, may have been missed."""
        return self.shared.is_complete and all(each.is_proven for each in self._best.values())

    def granted(self, app: int) -> int:
        """The options that the app gets by itself, numbered as it numbers them; it fits."""
        return self.group.own_options(app, self.best(self._with_those_near(app)).members)

    def score(self, app: int) -> int:
        """Their weight."""
        options = self.group.apps[app].options
        return sum(options[at].requirement.weight for at in members(self.granted(app)))

    def joint_score(self, apps: int) -> int | None:
        """What the apps get together; None: they do not fit, or nobody knows."""
        return self.best(apps).weight if self.fits(apps, 0) else None

    # -- why not

    def refusal(self, app: int) -> ShapeRefusal:
        """Of an app that does not fit by itself."""
        if app not in self._refusals:
            if self.undecided >> app & 1:
                words = "undecided: packing took more steps than it may"
                self._refusals[app] = ShapeRefusal(token=UNDECIDED, words=words)
            else:
                demands = self.group.demands(self._with_those_near(app), 0)
                self._refusals[app] = refusal_of(self.packer, demands)
        return self._refusals[app]

    def contention(self) -> str:
        """Who is in whose way, for what: a smallest set of apps that do not fit together, or whose
        options do not. Later apps are left out first."""
        if self._contention is None:
            self._contention = self._contention_words()
        return self._contention

    def _contention_words(self) -> str:
        options = 0
        for at in members(self.fitting):
            options |= self.best(self._with_those_near(at)).members
        if self.fits(self.fitting, 0) is False:
            options = 0
        elif self.fits(self.fitting, options) is not False:
            return ""

        def fails(apps: Sequence[int]) -> bool:
            mask = sum(1 << at for at in apps)
            return self.fits(mask, options & self.group.options_of(mask)) is False

        apps = smallest_failing(list(members(self.fitting)), fails)
        mask = sum(1 << at for at in apps)
        demands = self.group.demands(mask, options & self.group.options_of(mask))
        names = "+".join(self.group.apps[at].name for at in apps)
        return f"{names}: {contended_for(self.packer, demands)}"

    def _best_options(self, apps: int) -> BestSubset:
        numbers = list(members(self.group.options_of(apps)))

        def mask_of(chosen: int) -> int:
            return sum(1 << numbers[at] for at in members(chosen))

        family = MonotoneFamily(
            lambda chosen: self.fits(apps, mask_of(chosen)), self._budget.option_questions
        )
        weights = [self.group.options[at].requirement.weight for at in numbers]
        found = best_subset(weights, family, list(self._scarce(apps, numbers)))
        return msgspec.structs.replace(found, members=mask_of(found.members))

    def _scarce(self, apps: int, options: Sequence[int]) -> Iterator[ScarceResource]:
        """What nodes have in all, beside what is mandatory, and what each option takes of it.

        An option counts only where no other changes the same amount of the same workload: then it
        takes what it takes, whatever else is granted.
        """
        plain = self._totals(apps, 0)
        taken = [
            {
                key: amount - plain.get(key, 0)
                for key, amount in self._totals(apps, 1 << option).items()
                if amount > plain.get(key, 0)
            }
            for option in options
        ]
        changed = [key for each in taken for key in each]
        table, ready = self.packer.table, self.packer.ready
        for resource in dict.fromkeys(name for _, name in changed):
            used = sum(amount for (_, name), amount in plain.items() if name == resource)
            yield ScarceResource(
                sum(max(table.free(node, resource), 0) for node in ready) - used,
                tuple(
                    sum(
                        amount
                        for key, amount in each.items()
                        if key[1] == resource and changed.count(key) == 1
                    )
                    for each in taken
                ),
            )

    def _totals(self, apps: int, options: int) -> dict[tuple[int, str], int]:
        """By workload and resource, of all its pods."""
        found: dict[tuple[int, str], int] = {}
        for at, demand in enumerate(self.group.demands(apps, options)):
            if not demand.workload.per_node:
                for name, amount in self.packer.request(demand).amounts:
                    found[at, name] = amount * demand.workload.count
        return found

    def _shared(self) -> SharedApps:
        together = 0
        for at in members(self.fitting):
            together |= self.best(self._with_those_near(at)).members
        every = self.fitting
        if self._looks_across:
            return SharedApps(tuple(self._sets_across()), False, False)
        if self.fits(every, together):
            return SharedApps((every,), True, True)
        if self.fits(every, 0):
            alone = sum(self.best(1 << at).weight for at in members(every))
            return SharedApps((every,), True, self.best(every).weight == alone)
        found = self._largest_sets()
        return SharedApps(found.sets, found.is_complete, False)

    def _largest_sets(self) -> LargestSets:
        numbers = list(members(self.fitting))

        def mask_of(chosen: int) -> int:
            return sum(1 << numbers[at] for at in members(chosen))

        family = MonotoneFamily(
            lambda chosen: self.fits(mask_of(chosen), 0), self._budget.questions
        )
        found = largest_sets(len(numbers), family, self._budget.sets)
        return LargestSets(tuple(mask_of(each) for each in found.sets), found.is_complete)

    # -- apps whose pods look at those of others

    def _looks(self) -> set[tuple[int, int]]:
        """Pairs of apps: pods of the first want to be near pods of the other, or are spread with
        them."""
        numbers = {app.name: at for at, app in enumerate(self.group.apps)}
        demands = self.group.demands((1 << len(numbers)) - 1, 0)
        relations = relations_among(self.packer.table.nodes, [each.request for each in demands])
        pairs = {
            (numbers[demands[one].app], numbers[demands[other].app])
            for one, other in relations.looks()
        }
        return {(one, other) for one, other in pairs if one != other}

    def _with_those_near(self, app: int) -> int:
        """The app, and if it does not fit without them, all that it looks at."""
        found, before = 1 << app, 0
        if not self._looks_across or self.fits(found, 0):
            return found
        while found != before:
            before = found
            for one, other in self._looks_across:
                if found >> one & 1:
                    found |= 1 << other
        return found

    def _sets_across(self) -> list[int]:
        """Sets that fit, such that every app is in one; what is within them may not fit, so the
        pick asks for the score of each set that it means to take."""
        found = [each for each in (self.fitting, *self._largest_sets().sets) if self.fits(each, 0)]
        found += [self._with_those_near(at) for at in members(self.fitting)]
        return list(dict.fromkeys(found))
