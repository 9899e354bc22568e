"""How requirements change a pod template: the one rule for the pod that is packed and the one
that runs.

`workloads.with_requirements` applies it for packing, `editing` for the objects that are sent. What
an intent does not speak of stays as the chart has it.

* Of several amounts for one resource of one container the largest counts.
* Extended resources and huge pages cannot be overcommitted: their limits equal their requests.
* A limit below the new request would make an object that no API server takes: it is raised. So is
  what the pod requests as a whole, where it does.
* Devices are no part of it: podfit does not count them (`claims` writes them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import msgspec

from dovetail.core.quantity import format  # noqa: A004
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    LabelRequirement,
    ResourceConsumer,
)
from dovetail.intents.manifests import node_rules
from dovetail.intents.manifests.drafts import Draft, RawObject, child, items
from dovetail.intents.manifests.errors import UnknownContainer
from dovetail.podfit.pod_sum import HUGE_PAGES, is_pod_level, pod_sum, quantity_of

NATIVE_DOMAIN = "kubernetes.io"


class GrantedConsumer(msgspec.Struct, frozen=True):
    """A consumer, and those of its requirements that it gets."""

    consumer: ResourceConsumer
    requirements: tuple[AnyRequirement, ...]


class WantedAmount(msgspec.Struct, frozen=True):
    """Of one resource, for one container."""

    requests: Fraction
    limits: Fraction | None
    why: str


ContainerAmounts = Mapping[str, Mapping[str, WantedAmount]]
"""By container and resource."""


def is_overcommittable(resource: str) -> bool:
    """Whether limits may be more than requests: not for extended resources and huge pages."""
    if resource.startswith(HUGE_PAGES):
        return False
    domain, slash, _ = resource.partition("/")
    return not slash or domain == NATIVE_DOMAIN or domain.endswith(f".{NATIVE_DOMAIN}")


@lru_cache(maxsize=4096)
def written_amount(resource: str, amount: Fraction) -> str:
    """As people write it: pieces as a plain number, bytes in the shorter of both scales."""
    if not is_overcommittable(resource) and not resource.startswith(HUGE_PAGES):
        return str(amount)
    return min(format(amount), format(amount, binary=resource != "cpu"), key=len)


def apply(draft: Draft, granted: Sequence[GrantedConsumer]) -> ContainerAmounts:
    """To the draft of a pod template; answers the amounts written. Raises UnknownContainer."""
    amounts: dict[str, dict[str, WantedAmount]] = {}
    selected: dict[str, str] = {}
    for each in granted:
        for requirement in each.requirements:
            if isinstance(requirement, AllocatableRequirement):
                name = container_name(draft, each.consumer)
                _gather(amounts.setdefault(name, {}), requirement, each.consumer)
            elif isinstance(requirement, LabelRequirement):
                _write_label(draft, requirement, selected, _why(each.consumer, requirement))
    for name, wanted in amounts.items():
        _write_amounts(draft, name, wanted)
    if amounts:
        _raise_pod_level(draft)
    return amounts


def _why(consumer: ResourceConsumer, requirement: AnyRequirement) -> str:
    return f"requirement {requirement.name} of consumer {consumer.name}"


def containers_of(template: Mapping[str, object]) -> dict[str, tuple[str, RawObject]]:
    """By name, with their paths; init containers included."""
    spec = template.get("spec") or {}
    assert isinstance(spec, Mapping)
    return {
        str(each.get("name")): (f"spec.{group}[{each.get('name')}]", each)
        for group in ("initContainers", "containers")
        for each in items(spec, group)
    }


def container_name(draft: Draft, consumer: ResourceConsumer) -> str:
    """The one that the consumer names; where it names none, the only one there is."""
    names = list(containers_of(draft.value))
    if consumer.container in names:
        return consumer.container
    if not consumer.container and len(names) == 1:
        return names[0]
    raise UnknownContainer(draft.where, consumer.container, names)


def _gather(
    amounts: dict[str, WantedAmount],
    requirement: AllocatableRequirement,
    consumer: ResourceConsumer,
) -> None:
    found = WantedAmount(requirement.requests, requirement.limits, _why(consumer, requirement))
    known = amounts.get(requirement.resource)
    if known is not None:
        limits = [each for each in (known.limits, found.limits) if each is not None]
        found = WantedAmount(
            max(known.requests, found.requests),
            max(limits, default=None),
            f"{known.why}, {found.why}",
        )
    amounts[requirement.resource] = found


def _write_amounts(draft: Draft, container: str, wanted: Mapping[str, WantedAmount]) -> None:
    path, target = containers_of(draft.value)[container]
    for resource, each in wanted.items():
        owner = ResourceFields(draft, child(target, "resources"), f"{path}.resources", resource)
        owner.write(each)


def items_of(parent: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = parent.get(key) or {}
    assert isinstance(found, Mapping)
    return found


class ResourceFields(msgspec.Struct, frozen=True):
    """Where requests and limits of one resource stand, of a container or of a pod as a whole."""

    draft: Draft
    resources: RawObject
    path: str
    resource: str

    def write(self, wanted: WantedAmount) -> None:
        """Both, so that the API server takes them."""
        amount, limit, why = wanted.requests, wanted.limits, wanted.why
        if not is_overcommittable(self.resource):
            amount = limit = max(amount, limit or amount)
        self.put("requests", amount, why)
        if limit is None:
            limit = self.quantity("limits")
        if limit is not None and limit < amount:
            had = written_amount(self.resource, limit)
            limit, why = amount, f"a limit of {had} is below the request: raised ({why})"
        if limit is not None:
            self.put("limits", limit, why)

    def put(self, field: str, amount: Fraction, why: str) -> None:
        """A quantity that is the same, written otherwise, stays as the chart has it."""
        text = written_amount(self.resource, amount)
        if self.quantity(field) != quantity_of(text):
            path = f"{self.path}.{field}[{self.resource}]"
            self.draft.put(child(self.resources, field), self.resource, text, path=path, why=why)

    def quantity(self, field: str) -> Fraction | None:
        written = items_of(self.resources, field).get(self.resource)
        return None if written is None else quantity_of(str(written))


def _raise_pod_level(draft: Draft) -> None:
    """A pod as a whole requests no less than its containers do together, and no limit of theirs is
    above its own."""
    whole = draft.value["spec"].get("resources") or {}
    for field, least in (
        ("requests", _sum_of_requests(draft.value)),
        ("limits", _largest_limits(draft.value)),
    ):
        written = items_of(whole, field)
        for resource in [name for name in written if is_pod_level(name) and name in least]:
            fields = ResourceFields(draft, whole, "spec.resources", resource)
            if quantity_of(str(written[resource])) < least[resource]:
                why = f"the pod as a whole had {written[resource]}, less than its containers have"
                fields.put(field, least[resource], why)


def _sum_of_requests(template: RawObject) -> Mapping[str, Fraction]:
    spec = template["spec"]
    sidecars = (
        (_requests(each), each.get("restartPolicy") == "Always")
        for each in items(spec, "initContainers")
    )
    return pod_sum(
        (*sidecars, *((_requests(each), True) for each in items(spec, "containers")))
    ).total()


def _requests(container: RawObject) -> dict[str, Fraction]:
    resources = items_of(container, "resources")
    written = {**items_of(resources, "limits"), **items_of(resources, "requests")}
    return {name: quantity_of(str(text)) for name, text in written.items()}


def _largest_limits(template: RawObject) -> Mapping[str, Fraction]:
    found: dict[str, Fraction] = {}
    for _, each in containers_of(template).values():
        for name, text in items_of(items_of(each, "resources"), "limits").items():
            found[name] = max(found.get(name, Fraction(0)), quantity_of(str(text)))
    return found


def _write_label(
    draft: Draft, requirement: LabelRequirement, selected: dict[str, str], why: str
) -> None:
    """`selected`: what this edit has put into the nodeSelector. Two requirements on one label both
    hold, even where no node can meet both."""
    expression = node_rules.expression_of(requirement)
    if not requirement.mandatory:
        node_rules.prefer(draft, requirement.weight, expression, why)
        return
    key = requirement.key
    if (
        node_rules.is_plain(requirement)
        and selected.get(key, requirement.values[0]) == (requirement.values[0])
    ):
        selected[key] = requirement.values[0]
        node_rules.select(draft, key, requirement.values[0], why)
    else:
        node_rules.require(draft, expression, why)


def as_mandatory(requirements: Iterable[AnyRequirement]) -> tuple[AnyRequirement, ...]:
    """For packing: an optional label that adds to the score has to hold where it was counted. In
    the object it is a preference."""
    return tuple(
        each if each.mandatory else msgspec.structs.replace(each, mandatory=True)
        for each in requirements
    )
