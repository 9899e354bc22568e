"""The amounts of a container that is resized: what the kubelet tells the runtime of it. Pure.

The specification says what is wished for. The kubelet may put that off, or has not come to it yet;
what it gives it tells the runtime, and that is what the gate goes by. It tells CPUs and limits of
memory. For a request of memory that is no limit there is only the specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from dovetail.core.quantity import format as written
from dovetail.node.admission.resource_slot import BYTES
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Amounts, ContainerSpec
from dovetail.node.sources import runtime as told_by_runtime
from dovetail.node.state.pod_state import ContainerHolding, amounts_of

TELLING = ("CpuShares", "CpuQuota", "CpuPeriod", "MemoryLimitInBytes")
"""Numbers that tell amounts."""

Told = Mapping[str, int]


def told_now(holding: ContainerHolding, asked: ContainerSettings) -> Told:
    """What is told last. A number that is not said stays as it was."""
    said = {name: asked.numbers[name] for name in TELLING if asked.numbers.get(name)}
    return dict(sorted({**holding.told, **said}.items()))


def as_held(container: ContainerSpec, holding: ContainerHolding | None) -> ContainerSpec:
    """With the amounts that it was given something for, whatever it wishes for by now."""
    return at_first(container, holding) if holding is not None and holding.told else container


def at_first(container: ContainerSpec, holding: ContainerHolding) -> ContainerSpec:
    """With the amounts that were given; those of the specification if they are not known."""
    if not holding.requests:
        return container
    return msgspec.structs.replace(
        container, requests=amounts_of(holding.requests), limits=amounts_of(holding.limits)
    )


def as_told(container: ContainerSpec, holding: ContainerHolding, told: Told) -> ContainerSpec:
    """With the amounts that it is to have by what is told now."""
    held = at_first(container, holding)
    then = told_by_runtime.amounts(ContainerSettings(numbers=holding.told))
    now = told_by_runtime.amounts(ContainerSettings(numbers=told))
    requests = _followed(held.requests, container.requests, then[0], now[0])
    limits = _followed(held.limits, container.limits, then[1], now[1])
    return msgspec.structs.replace(container, requests=requests, limits=limits)


def changed_whole(who: str, then: Amounts, now: Amounts) -> str:
    """In words, what a pod has as a whole and is to have otherwise; nothing if it is the same."""
    for name, amount in sorted(then.items()):
        if (other := now.get(name, Fraction(0))) != amount:
            binary = name.startswith(BYTES)
            had, wants = (written(each, binary=binary) for each in (amount, other))
            return (
                f"{who} was given {name} {had} as a whole, and would have {wants}: that stays as it"
                " is while the pod runs. Make the pod anew, or take the resize back"
            )
    return ""


def _followed(held: Amounts, wished: Amounts, then: Amounts, now: Amounts) -> dict[str, Fraction]:
    """Amounts whose telling changed; one that was not what was told is as it is wished for."""
    found = dict(held)
    for name in then.keys() | now.keys():
        before = then.get(name, held.get(name))
        if before == now.get(name):
            # Told first, it is what was given something for; what is wished for comes to be told.
            continue
        follows = name in then and held.get(name) == then[name]
        amount = (now if follows else wished).get(name)
        if amount is None:
            found.pop(name, None)
        else:
            found[name] = amount
    return found
