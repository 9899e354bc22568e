"""Terms of sale: buyers, caps, leases and windows of a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from dovetail.machines.documents import Buyers, Machine, MachineType, Window
from dovetail.machines.selling.buyers import is_label_requirement
from dovetail.machines.selling.recurrence import BadTime
from dovetail.machines.selling.windows import check_rule, duration_of, time_of, zone_of
from dovetail.machines.validation.world import SPEC, Field, FieldFault, type_fields

COUNTING = ("bound", "spec")
WHEN_SOLD_OUT = ("wait", "refuse")
WHEN_EXPIRED = ("announce", "evict")


def term_faults(machine: Machine) -> Iterator[FieldFault]:
    spec = machine.spec
    yield from _choice_faults(SPEC.at("counting"), spec.counting, COUNTING)
    yield from _buyer_faults(SPEC.at("buyers"), spec.buyers)
    for field, machine_type in type_fields(machine):
        sold_out, expired = machine_type.when_sold_out, machine_type.when_expired
        yield from _choice_faults(field.at("whenSoldOut"), sold_out, WHEN_SOLD_OUT)
        yield from _choice_faults(field.at("whenExpired"), expired, WHEN_EXPIRED)
        yield from _buyer_faults(field.at("buyers"), machine_type.buyers)
        caps = machine_type.caps
        for name, most in (("perNamespace", caps.per_namespace), ("perUser", caps.per_user)):
            if most is not None and most < 0:
                yield field.at("caps").at(name).fault(f"{most} is less than nothing")
        yield from _duration_faults(field.at("maxDuration"), machine_type.max_duration, least=1)
        yield from _duration_faults(field.at("announceBefore"), machine_type.announce_before)


def _choice_faults(field: Field, value: str, choices: tuple[str, ...]) -> Iterator[FieldFault]:
    if value not in choices:
        yield field.fault(f"{value!r} is none of {', '.join(choices)}")


def _buyer_faults(field: Field, buyers: Buyers | None) -> Iterator[FieldFault]:
    if buyers is None or buyers.namespace_selector is None:
        return
    place = field.at("namespaceSelector")
    for position, term in enumerate(buyers.namespace_selector.match_expressions):
        if not is_label_requirement(term):
            yield place.item("matchExpressions", position).fault(
                f"Kubernetes does not understand {term.key} {term.operator} {list(term.values)}"
            )


def _duration_faults(field: Field, text: str | None, least: int = 0) -> Iterator[FieldFault]:
    if text is None:
        return
    try:
        if duration_of(text) < timedelta(seconds=least):
            yield field.fault(f"{text} is no time at all")
    except BadTime as error:
        yield field.fault(str(error))


def window_faults(machine: Machine) -> Iterator[FieldFault]:
    for field, machine_type in type_fields(machine):
        names: set[str] = set()
        for position, window in enumerate(machine_type.windows):
            place = field.item("windows", position, window.name)
            if not window.name or window.name in names:
                yield place.at("name").fault(f"{window.name!r} is not a name of its own")
            names.add(window.name)
            yield from _unit_faults(place, machine_type, window)
            yield from _time_faults(place, window)


def _unit_faults(place: Field, machine_type: MachineType, window: Window) -> Iterator[FieldFault]:
    if not 0 < window.units <= machine_type.available:
        yield place.at("units").fault(
            f"{window.units} cannot be set aside of the {machine_type.available} that there are"
        )
    if window.buyers is None:
        yield place.at("buyers").fault("it has to say whom the units are set aside for")
    yield from _buyer_faults(place.at("buyers"), window.buyers)


def _time_faults(place: Field, window: Window) -> Iterator[FieldFault]:
    found = [
        *_duration_faults(place.at("duration"), window.duration, least=1),
        *_duration_faults(place.at("holdBefore"), window.hold_before),
        *_unreadable(place.at("start"), partial(time_of, window.start)),
        *_unreadable(place.at("timeZone"), partial(zone_of, window.time_zone)),
    ]
    if window.rrule and not found:
        found += _unreadable(place.at("rrule"), partial(check_rule, window))
    yield from found


def _unreadable(field: Field, read: Callable[[], object]) -> Iterator[FieldFault]:
    try:
        read()
    except BadTime as error:
        yield field.fault(str(error))
