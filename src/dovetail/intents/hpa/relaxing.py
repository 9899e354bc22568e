"""Relaxing: what would make an app fit a cluster: the smallest change of each kind.

Explanations ask. Tried are less of an amount (the most that fits, by bisection), fewer replicas, a
requirement left out; where nothing helps alone, two left out together. Each trial is a packing, so
nothing is said to help that does not; trials are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, islice

from msgspec.structs import replace

from dovetail.core.explanation import ConstraintChange, Reason, Relaxation
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    DeviceRequirement,
    LabelRequirement,
    ResourceConsumer,
)
from dovetail.intents.hpa.demand import AppHardware, IntentConsumer
from dovetail.intents.hpa.packer import Fit, Packer
from dovetail.intents.hpa.refusals import amount_text
from dovetail.intents.manifests.requirements import is_overcommittable
from dovetail.podfit.packing.solver.problem import BudgetSpent
from dovetail.podfit.pod_sum import CPU, units

MOST_PAIRS = 60
MEBIBYTE, MEGABYTE = 2**20, 10**6


class AppRelaxations:
    """Of an app that does not fit."""

    def __init__(self, app: AppHardware, packer: Packer) -> None:
        self._app, self._packer = app, packer

    def found(self) -> Iterator[Relaxation]:
        is_any = False
        for each in (*self._with_other_requirements(), *self._with_fewer()):
            is_any = True
            yield each
        if not is_any:
            yield from self._without_two()

    def _with_other_requirements(self) -> Iterator[Relaxation]:
        for each, one in self._mandatory():
            found = self._with_less(each, one) if isinstance(one, AllocatableRequirement) else None
            found = found or self._without(each, one)
            if found is not None:
                yield found

    def _with_less(
        self, of: IntentConsumer, requirement: AllocatableRequirement
    ) -> Relaxation | None:
        resource = requirement.resource
        wanted = units(resource, requirement.requests)
        step = _step(resource, wanted)

        def with_amount(number: int) -> AppHardware:
            return changed(self._app, of, requirement, _lowered(requirement, number * step))

        most = self._most(with_amount, (wanted - 1) // step)
        if most is None:
            return None
        number, fit = most
        texts = amount_text(resource, wanted), amount_text(resource, number * step)
        return _relaxation(Reason.AMOUNT, of.consumer.name, *texts, fit, of=f"{resource} ")

    def _with_fewer(self) -> Iterator[Relaxation]:
        for at, demand in enumerate(self._app.demands(0)):
            count = demand.workload.count
            if not demand.workload.per_node and count > 1:
                most = self._most(partial(self._app.resized, at), count - 1)
                if most is not None:
                    number, fit = most
                    name, texts = demand.workload.name, (str(count), str(number))
                    yield _relaxation(Reason.AMOUNT, name, *texts, fit, of="replicas ")

    def _without(self, of: IntentConsumer, requirement: AnyRequirement) -> Relaxation | None:
        fit = fit_of(self._packer, changed(self._app, of, requirement, None))
        if fit is None:
            return None
        text = requirement_text(requirement)
        return _relaxation(reason_of(requirement), of.consumer.name, text, None, fit)

    def _without_two(self) -> Iterator[Relaxation]:
        pairs = combinations(list(self._mandatory()), 2)
        for pair in islice(pairs, MOST_PAIRS):
            app = self._app
            for each, one in pair:
                app = changed(app, each, one, None)
            fit = fit_of(self._packer, app)
            if fit is not None:
                yield _joined(
                    _relaxation(
                        reason_of(one), each.consumer.name, requirement_text(one), None, fit
                    )
                    for each, one in pair
                )

    def _mandatory(self) -> Iterator[tuple[IntentConsumer, AnyRequirement]]:
        for consumers in self._app.consumers:
            for each in consumers:
                for requirement in each.consumer.requirements:
                    if requirement.mandatory:
                        yield each, requirement

    def _most(self, with_number: Callable[[int], AppHardware], most: int) -> tuple[int, Fit] | None:
        """The largest number from 1 to `most` with which the app fits; None: there is none."""
        low, high = 0, most
        found: Fit | None = None
        while low < high:
            middle = (low + high + 1) // 2
            fit = fit_of(self._packer, with_number(middle))
            if fit is None:
                high = middle - 1
            else:
                low, found = middle, fit
        return (low, found) if found is not None else None


def fit_of(packer: Packer, app: AppHardware, options: int = 0) -> Fit | None:
    """None: it does not fit, as far as is known."""
    try:
        return packer.fit(app.demands(options))
    except BudgetSpent:
        return None


def requirement_text(requirement: AnyRequirement) -> str:
    if isinstance(requirement, AllocatableRequirement):
        amount = units(requirement.resource, requirement.requests)
        return f"{requirement.resource} {amount_text(requirement.resource, amount)}"
    if isinstance(requirement, LabelRequirement):
        values = ", ".join(requirement.values)
        if requirement.operator == "In":
            return f"{requirement.key}={values}"
        return f"{requirement.key} {requirement.operator} {values}".rstrip()
    name = requirement.class_name or (requirement.selector and requirement.selector.name)
    return f"{name} {requirement.count}"


def reason_of(requirement: AnyRequirement) -> Reason:
    if isinstance(requirement, LabelRequirement):
        return Reason.NODE_AFFINITY
    return Reason.CLASS if isinstance(requirement, DeviceRequirement) else Reason.AMOUNT


def changed(
    app: AppHardware, of: IntentConsumer, old: AnyRequirement, new: AnyRequirement | None
) -> AppHardware:
    """With another requirement of a consumer; None: without it."""

    def change(each: IntentConsumer) -> ResourceConsumer:
        if (each.intent, each.consumer.name) != (of.intent, of.consumer.name):
            return each.consumer
        kept = (
            new if one.name == old.name else one
            for one in each.consumer.requirements
            if one.name != old.name or new is not None
        )
        return replace(each.consumer, requirements=tuple(one for one in kept if one is not None))

    return app.changed(change)


def _lowered(one: AllocatableRequirement, amount: int) -> AllocatableRequirement:
    """Limits go down with requests where they are equal, or have to be."""
    requests = Fraction(amount, 1000 if one.resource == CPU else 1)
    is_tied = one.limits == one.requests or not is_overcommittable(one.resource)
    limits = requests if one.limits is not None and is_tied else one.limits
    return replace(one, requests=requests, limits=limits)


def _step(resource: str, wanted: int) -> int:
    """Amounts of memory are tried as they are written, in whole MiB or MB."""
    if resource == CPU:
        return 1
    return next((step for step in (MEBIBYTE, MEGABYTE) if not wanted % step and wanted > step), 1)


def _relaxation(
    reason: Reason, consumer: str, old: str, new: str | None, fit: Fit, *, of: str = ""
) -> Relaxation:
    """`of`: what old and new are amounts of."""
    change = ConstraintChange(
        reason=reason, group=consumer, old=f"{of}{old}", new=None if new is None else f"{of}{new}"
    )
    if new is None:
        words = query = f"{consumer}: without {old}"
    else:
        words, query = f"{consumer}: {of}{new} instead of {old}", f"{consumer}: {of}{new}"
    nodes = {name for counts in fit.nodes for name in counts}
    return Relaxation(changes=(change,), hosts=len(nodes), query=query, words=words)


def _joined(relaxations: Iterable[Relaxation]) -> Relaxation:
    found = list(relaxations)
    return Relaxation(
        changes=tuple(change for each in found for change in each.changes),
        hosts=found[0].hosts,
        query="; ".join(each.query for each in found),
        words=" and ".join(each.words for each in found),
    )
