"""Buying: whether a guest may have one more unit of a type, by buyers, caps, stock and windows.

The seller asks it before it looks for a node, and tells it of each sale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from dovetail.core.explanation_text import count_of
from dovetail.machines.documents import MachineSpec, MachineType
from dovetail.machines.pods import type_of, user_of
from dovetail.machines.selling.buyers import may_buy, may_buy_type
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.selling.windows import WindowHold, holds, units_taken
from dovetail.machines.stock.families import FamilyBook
from dovetail.podfit.objects import Namespace, Pod

UNKNOWN_NAMESPACE = Namespace()


class Buying:
    def __init__(
        self,
        spec: MachineSpec,
        namespaces: Mapping[str, Namespace],
        holders: Iterable[Pod],
        now: datetime,
    ) -> None:
        """`holders` are the guests that have a unit already."""
        self._spec = spec
        self._types = {each.name: each for each in spec.machine_types}
        self._namespaces = namespaces
        self._counted = {
            each.name
            for each in spec.machine_types
            if each.windows or each.caps.per_namespace is not None or each.caps.per_user is not None
        }
        """Types of which it matters who has how many."""
        self._by_namespace: Counter[tuple[str, str]] = Counter()
        self._by_user: Counter[tuple[str, str]] = Counter()
        self.holds: dict[str, tuple[WindowHold, ...]] = {
            each.name: holds(each, now) for each in spec.machine_types if each.windows
        }
        for pod in holders if self._counted else ():
            self.bought(pod, type_of(pod))

    def bought(self, pod: Pod, name: str, count: int = 1) -> None:
        if name not in self._counted:
            return
        self._by_namespace[name, pod.metadata.namespace] += count
        self._by_user[name, self.user(pod)] += count

    def returned(self, pod: Pod, name: str) -> None:
        self.bought(pod, name, -1)

    def user(self, pod: Pod) -> str:
        return user_of(pod, self._namespaces.get(pod.metadata.namespace))

    def refusal(self, pod: Pod, name: str, book: FamilyBook) -> Waiting | None:
        """Why this guest may not have another unit now; None: it may."""
        return (
            self.not_a_buyer(pod, name)
            or self.at_its_cap(pod, name)
            or self.sold_out(name, book)
            or self.held_back(pod, name, book)
        )

    def not_a_buyer(self, pod: Pod, name: str) -> Waiting | None:
        if may_buy_type(self._spec, self._types[name], self.namespace(pod.metadata.namespace)):
            return None
        return Waiting(
            WaitReason.NOT_A_BUYER,
            f"namespace {pod.metadata.namespace!r} is not among the buyers of {name}",
        )

    def at_its_cap(self, pod: Pod, name: str) -> Waiting | None:
        caps, namespace, user = self._types[name].caps, pod.metadata.namespace, self.user(pod)
        most = caps.per_namespace
        if most is not None and self._by_namespace[name, namespace] >= most:
            return Waiting(
                WaitReason.NAMESPACE_CAP_REACHED,
                f"namespace {namespace!r} holds {count_of(most, 'unit')} of {name}, the most it may"
                " have",
            )
        most = caps.per_user
        if most is not None and user and self._by_user[name, user] >= most:
            return Waiting(
                WaitReason.USER_CAP_REACHED,
                f"user {user!r} holds {count_of(most, 'unit')} of {name}, the most one user may"
                " have",
            )
        return None

    def sold_out(self, name: str, book: FamilyBook) -> Waiting | None:
        if book.free(name) > 0:
            return None
        return Waiting(WaitReason.SOLD_OUT, sold_out_words(self._types[name], book))

    def held_back(self, pod: Pod, name: str, book: FamilyBook) -> Waiting | None:
        """For windows of others, where there are units left."""
        free = book.free(name)
        held = self.held_for_windows(name, self.namespace(pod.metadata.namespace))
        if held and free <= sum(held.values()):
            names = ", ".join(repr(each) for each in held)
            return Waiting(
                WaitReason.HELD_FOR_WINDOW,
                f"what is left of {name}, {count_of(free, 'unit')}, is held for window {names}",
            )
        relative = self.held_relative(pod.metadata.namespace, name, book.best_node(name), book)
        if relative:
            return Waiting(
                WaitReason.HELD_FOR_WINDOW,
                f"a unit of {name} would be made of {relative}, and what is left of that is held"
                " for a window",
            )
        return None

    def held_relative(self, namespace: str, name: str, node: str, book: FamilyBook) -> str:
        """The type of its family of which a unit that is sold there would take what a window holds
        for others; empty if there is none. Parents and children are sold from one stock."""
        others = [each.name for each in book.family.shapes if each.name != name]
        found = ""
        for other in filter(self.holds.get, others):
            held = sum(self.held_for_windows(other, self.namespace(namespace)).values())
            before = book.free(other)
            book.add(name, node)
            if book.free(other) < min(before, held):
                found = other
            book.remove(name, node)
        return found

    def namespace(self, name: str) -> Namespace:
        return self._namespaces.get(name, UNKNOWN_NAMESPACE)

    def held_for_windows(self, name: str, namespace: Namespace | None) -> dict[str, int]:
        """Units by window that others than its buyers cannot have now; none that this namespace,
        if one is given, may have itself."""
        windows = self.holds.get(name, ())
        taken = units_taken(
            windows,
            (
                (self.namespace(holder), count)
                for (kind, holder), count in sorted(self._by_namespace.items())
                if kind == name
            ),
        )
        return {
            hold.name: hold.units - used
            for hold, used in zip(windows, taken, strict=True)
            if hold.units > used and not (namespace and may_buy(hold.buyers, namespace))
        }


def sold_out_words(kind: MachineType, book: FamilyBook) -> str:
    name = kind.name
    sold = book.sold[name]
    if not kind.available:
        return f"{name} has no stock"
    if sold >= kind.available == 1:
        return f"the only unit of {name} is sold"
    if sold >= kind.available:
        return f"all {kind.available} units of {name} are sold"
    spent = book.spent(name)
    if spent == name:
        return f"{sold} of {kind.available} units of {name} are sold, and parts of the others"
    return (
        f"{sold} of {kind.available} units of {name} are sold, and of {spent}, of which they are"
        " made, too little is left"
    )
