"""Which NIC each container uses: a state in, a new state out. Pure.

NICs are shared: many containers use one. Each gets one that is near, the least used first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv6Address, ip_address
from itertools import combinations

import msgspec

from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints.hint import Hint
from dovetail.node.plugins.common.holdings import (
    PluginState,
    ResourceDecisions,
    ResourceHolding,
    owner_of,
)
from dovetail.node.plugins.common.requests import Impossible, PluginRequest
from dovetail.node.plugins.common.roles import NicFacts, RoleBook
from dovetail.node.topology import Machine, Nic


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """A NIC as it is given to containers."""

    name: str
    numa: int | None = None
    """Nothing: near to all."""
    speed: int | None = None
    netns: str = ""
    ipv6: str = ""
    ipv4: str = ""


class NicHolding(ResourceHolding, frozen=True, kw_only=True):
    nic: str = ""
    """None, if its role gets none."""
    bandwidth: int = 0
    """Mb/s that are set aside for it."""


class NicState(PluginState[NicHolding], frozen=True, kw_only=True):
    pass


class Nics(ResourceDecisions):
    """The decisions about NICs."""

    def __init__(self, machine: Machine, book: RoleBook, resource: str) -> None:
        super().__init__(machine, book, resource)
        self.interfaces = interfaces(machine, book)

    def hints(self, state: NicState, request: PluginRequest) -> tuple[Hint, ...] | None:
        """None if it has no preference; raises Impossible if it can be nowhere."""
        if request.role.nic is None:
            return None
        before = [each for each in state.own(request) if each.nic]
        there = all(each.nic in self.interfaces for each in before)
        if before and there and self.bandwidth(request) == asked_by(before):
            return self.hints_of(before)
        able = [each.numa for each in self.able(state, request)]
        if not able:
            raise Impossible(self.shortage(state, request))
        if None in able:
            return None
        nodes = sorted(self.machine.node_ids)
        return tuple(
            Hint(CpuSet(each).mask, preferred=size == 1)
            for size in range(1, len(nodes) + 1)
            for each in combinations(nodes, size)
            if set(able) & set(each)
        )

    def hints_of(self, holdings: Iterable[NicHolding]) -> tuple[Hint, ...] | None:
        """That of the NICs that a container has, or all of a pod together."""
        found = (self.interfaces.get(each.nic) for each in holdings)
        nodes = CpuSet(nic.numa for nic in found if nic is not None and nic.numa is not None)
        return (Hint(nodes.mask, preferred=len(nodes) == 1),) if nodes else None

    def allocate(self, state: NicState, request: PluginRequest) -> NicState:
        """With the container's holding in it; raises Impossible."""
        before = state.of(request.pod, request.container)
        bandwidth = self.bandwidth(request)
        same = before and (before.role, before.bandwidth) == (request.role.name, bandwidth)
        # Its NIC may be gone since.
        if before and same and (not before.nic or before.nic in self.interfaces):
            return state
        holding = NicHolding(
            **owner_of(request),
            nic=self.chosen(state, request).name if request.role.nic else "",
            bandwidth=bandwidth,
        )
        return state.with_holding(holding)

    def chosen(self, state: NicState, request: PluginRequest) -> Interface:
        """The least used of those that are near; of all, if near is not that important."""
        able = [*self.able(state, request)]
        near = [
            each
            for each in able
            if request.nodes is None or each.numa is None or each.numa in request.nodes
        ]
        chosen = near if near or request.preferred else able
        if not chosen:
            raise Impossible(self.shortage(state, request))
        return min(chosen, key=lambda each: (*self.use(state, request, each), each.name))

    def able(self, state: NicState, request: PluginRequest) -> Iterator[Interface]:
        """Those with enough bandwidth left, if that counts."""
        wanted = self.bandwidth(request)
        for each in self.interfaces.values():
            used, _ = self.use(state, request, each)
            if not wanted or (each.speed or 0) - used >= wanted:
                yield each

    def use(
        self, state: NicState, request: PluginRequest | None, nic: Interface
    ) -> tuple[int, int]:
        """Mb/s and containers."""
        there = [
            each
            for each in state.holdings
            if each.nic == nic.name and not (request and each.is_for(request))
        ]
        return sum(each.bandwidth for each in there), len(there)

    def bandwidth(self, request: PluginRequest) -> int:
        if (
            not request.role.nic
            or not request.role.nic.bandwidth
            or self.resource not in request.amounts
        ):
            return 0
        return -(
            -request.amounts[self.resource].numerator // request.amounts[self.resource].denominator
        )

    def shortage(self, state: NicState, request: PluginRequest) -> str:
        wanted = self.bandwidth(request)
        what = f"{wanted} Mb/s of a NIC" if wanted else "a NIC"
        where = "" if request.nodes is None else f" near to NUMA node {request.nodes}"
        there = "; ".join(
            f"{each.name} is near to {'all' if each.numa is None else f'node {each.numa}'}"
            + (
                f", {(each.speed or 0) - self.use(state, request, each)[0]} Mb/s free"
                if wanted
                else ""
            )
            for each in self.interfaces.values()
        )
        who = f"{request.shown} wants {what}{where} (role {request.role.name})"
        return f"{who}; {there or 'there is none'}"

    def envs(self, holding: NicHolding) -> dict[str, str]:
        """What a NIC does not have is left out; so is what has no name."""
        role, nic = self.book.roles.get(holding.role), self.interfaces.get(holding.nic)
        if role is None or role.nic is None or nic is None:
            return {}
        named = (
            (role.nic.ipv6_env, nic.ipv6),
            (role.nic.ipv4_env, nic.ipv4),
            (role.nic.name_env, nic.name),
        )
        return {name: value for name, value in named if name and value}

    def annotations(self, holding: NicHolding) -> dict[str, str]:
        role, nic = self.book.roles.get(holding.role), self.interfaces.get(holding.nic)
        if role is None or role.nic is None or nic is None or not nic.netns:
            return {}
        return {role.nic.netns_annotation: nic.netns}


def asked_by(holdings: Sequence[NicHolding]) -> int:
    """Mb/s; init containers are over before the others start."""
    init = (each.bandwidth for each in holdings if each.init)
    return max(sum(each.bandwidth for each in holdings if not each.init), *init, 0)


def interfaces(machine: Machine, book: RoleBook) -> dict[str, Interface]:
    """By name. The file may tell of NICs that sysfs does not show, as in other namespaces."""
    found = {nic.name: nic for nic in machine.nics}
    names = sorted({*found, *book.nics})
    return {
        name: _interface(
            found.get(name, Nic(name=name)), book.nics.get(name, NicFacts()), machine.node_ids
        )
        for name in names
        if not book.nics.get(name, NicFacts()).ignore
    }


def _interface(nic: Nic, facts: NicFacts, nodes: CpuSet) -> Interface:
    """The first address of each kind that others can reach."""
    numa = nic.numa if facts.numa is None else facts.numa
    addresses = [ip_address(each) for each in nic.addresses]
    reachable = [each for each in addresses if not each.is_link_local and not each.is_loopback]
    ipv6 = next((str(each) for each in reachable if isinstance(each, IPv6Address)), "")
    ipv4 = next((str(each) for each in reachable if not isinstance(each, IPv6Address)), "")
    return Interface(
        name=nic.name,
        # One on a node that is not online is near to nothing that we know.
        numa=numa if numa in nodes else None,
        speed=nic.speed if facts.speed is None else facts.speed,
        netns=nic.netns if facts.netns is None else facts.netns,
        ipv6=ipv6 if facts.ipv6 is None else facts.ipv6,
        ipv4=ipv4 if facts.ipv4 is None else facts.ipv4,
    )
