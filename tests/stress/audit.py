"""The books compared: what clients were told, what the API says, what the tables hold.

Every check returns the faults that it found, in words; none means that the books agree.
"""

from __future__ import annotations

from collections import Counter

from tests.stress.client import PROJECT, holding
from tests.stress.fleet import Provider, providers
from tests.stress.history import Allocations, Doubt, History, State
from tests.stress.wire import Wire

SAMPLE = 200


def overdrawn(wire: Wire) -> list[str]:
    """Inventories with more use than capacity, at this moment."""
    faults = []
    for provider in providers():
        usages = wire.read(f"/resource_providers/{provider.uuid}/usages")["usages"]
        faults += _above_capacity(provider, usages)
    return faults


def outdated(wire: Wire) -> list[str]:
    """Providers of which a server that lived through it all offers more, or less, than is free."""
    offered = wire.read("/allocation_candidates?resources=VCPU:1")["provider_summaries"]
    faults = []
    for provider, summary in offered.items():
        usages = wire.read(f"/resource_providers/{provider}/usages")["usages"]
        seen = {name: entry["used"] for name, entry in summary["resources"].items()}
        if seen != usages:
            faults.append(f"{provider}: offered as if {seen} was used, and it is {usages}")
    return faults


def audit(wire: Wire, history: History) -> list[str]:
    """Everything that can be said once the clients are quiet."""
    faults = list(history.faults)
    books: dict[str, Allocations] = {}
    for provider in providers():
        faults += _audit_provider(wire, provider, books)
    faults += _audit_held(wire, history, books)
    faults += _audit_released(wire, history, books)
    doubted = {consumer for doubt in history.doubts for consumer in doubt.after}
    for doubt in history.doubts:
        faults += _audit_doubt(wire, doubt)
    strangers = set(books) - set(history.held) - history.released - doubted
    faults += [f"nobody claimed for {consumer}: {books[consumer]}" for consumer in strangers]
    return faults + _audit_project(wire, books)


def _audit_provider(wire: Wire, provider: Provider, books: dict[str, Allocations]) -> list[str]:
    path = f"/resource_providers/{provider.uuid}"
    usages = wire.read(f"{path}/usages")["usages"]
    total: Counter[str] = Counter(dict.fromkeys(provider.stocks, 0))
    for consumer, entry in wire.read(f"{path}/allocations")["allocations"].items():
        books.setdefault(consumer, {})[provider.uuid] = entry["resources"]
        total.update(entry["resources"])
    faults = _above_capacity(provider, usages)
    if usages != dict(total):
        faults.append(f"{provider.name}: usages {usages}, allocations add up to {dict(total)}")
    return faults


def _above_capacity(provider: Provider, usages: dict[str, int]) -> list[str]:
    return [
        f"{provider.name} is oversubscribed: {usages[name]} of {stock.capacity} {name}"
        for name, stock in provider.stocks.items()
        if usages[name] > stock.capacity
    ]


def _audit_held(wire: Wire, history: History, books: dict[str, Allocations]) -> list[str]:
    faults = []
    for consumer, expected in history.held.items():
        found = holding(wire, consumer)
        if found != expected:
            faults.append(f"{consumer}: {found} instead of the acknowledged {expected}")
        if books.get(consumer) != expected.allocations:
            faults.append(f"{consumer}: its providers say {books.get(consumer)}, not {expected}")
    return faults


def _audit_released(wire: Wire, history: History, books: dict[str, Allocations]) -> list[str]:
    back = history.released & set(books)
    faults = [f"{consumer} was released, and has {books[consumer]}" for consumer in sorted(back)]
    sample = sorted(history.released)[:SAMPLE]
    return faults + [f"{one} was released, and is back" for one in sample if holding(wire, one)]


def _audit_doubt(wire: Wire, doubt: Doubt) -> list[str]:
    found: State = {consumer: holding(wire, consumer) for consumer in doubt.after}
    if doubt.explains(found):
        return []
    return [f"half done: {found} is neither {doubt.before} nor {doubt.after}"]


def _audit_project(wire: Wire, books: dict[str, Allocations]) -> list[str]:
    usages = dict(wire.read(f"/usages?project_id={PROJECT}")["usages"].get("INSTANCE", {}))
    consumers = usages.pop("consumer_count", 0)
    total: Counter[str] = Counter()
    for allocations in books.values():
        for resources in allocations.values():
            total.update(resources)
    if (consumers, usages) == (len(books), dict(total)):
        return []
    return [f"the project has {consumers} consumers with {usages}, not {len(books)} with {total}"]
