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
from dovetail.node.plugins.common.roles import NicFacts, NicRule, RoleBook
from dovetail.node.topology import Machine, Nic

GIVEN = NicRule(name_env="AFFINITY_NIC_NAME")
"""How a container without a rule of its role is told of a NIC that a class gave it."""


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
    chosen: tuple[str, ...] = ()
    """NICs that a resource class gave it, whatever its role; `nic` is the first of them."""

    @property
    def nics(self) -> tuple[str, ...]:
        return self.chosen or ((self.nic,) if self.nic else ())


class NicState(PluginState[NicHolding], frozen=True, kw_only=True):
    pass


class Nics(ResourceDecisions):
    """The decisions about NICs."""

    def __init__(self, machine: Machine, book: RoleBook, resource: str) -> None:
        super().__init__(machine, book, resource)
        self.interfaces = interfaces(machine, book)

    def hints(self, state: NicState, request: PluginRequest) -> tuple[Hint, ...] | None:
        """None if it has no preference; raises Impossible if it can be nowhere."""
        if request.chosen:
            return self.hint_near(self.given(request))
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
        own = list(holdings)
        if chosen := [name for each in own for name in each.chosen]:
            return self.hint_near(chosen)
        nodes = self.nodes_of(each.nic for each in own)
        return (Hint(nodes.mask, preferred=len(nodes) == 1),) if nodes else None

    def hint_near(self, chosen: Iterable[str]) -> tuple[Hint, ...] | None:
        """Where these are is where they are."""
        nodes = self.nodes_of(chosen)
        return (Hint(nodes.mask, preferred=True),) if nodes else None

    def nodes_of(self, names: Iterable[str]) -> CpuSet:
        found = (self.interfaces.get(name) for name in names)
        return CpuSet(nic.numa for nic in found if nic is not None and nic.numa is not None)

    def given(self, request: PluginRequest) -> tuple[str, ...]:
        """The NICs that a resource class gave to the container. Raises Impossible."""
        names = tuple(sorted({each.id for each in request.chosen}))
        for name in names:
            if name not in self.interfaces:
                there = ", ".join(self.interfaces) or "none"
                given = f"{request.shown} was given the NIC {name} by a resource class"
                raise Impossible(f"{given}; there is {there}")
        return names

    def allocate(self, state: NicState, request: PluginRequest) -> NicState:
        """With the container's holding in it; raises Impossible."""
        before = state.of(request.pod, request.container)
        bandwidth, given = self.bandwidth(request), self.given(request)
        asked = request.role.name, bandwidth, given
        same = before and (before.role, before.bandwidth, before.chosen) == asked
        # Its NIC may be gone since.
        if before and same and (not before.nic or before.nic in self.interfaces):
            return state
        if given:
            nic = given[0]
            if self.interfaces[nic] not in self.able(state, request):
                raise Impossible(self.shortage(state, request))
        else:
            nic = self.chosen(state, request).name if request.role.nic else ""
        holding = NicHolding(**owner_of(request), nic=nic, bandwidth=bandwidth, chosen=given)
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
            if nic.name in each.nics and not (request and each.is_for(request))
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
        rule, nics = self.rule(holding), self.present(holding)
        if rule is None:
            return {}
        named = (
            (rule.ipv6_env, [each.ipv6 for each in nics]),
            (rule.ipv4_env, [each.ipv4 for each in nics]),
            (rule.name_env, [each.name for each in nics]),
        )
        return {name: ",".join(filter(None, each)) for name, each in named if name and any(each)}

    def annotations(self, holding: NicHolding) -> dict[str, str]:
        rule = self.rule(holding)
        spaces = dict.fromkeys(each.netns for each in self.present(holding) if each.netns)
        return {rule.netns_annotation: ",".join(spaces)} if rule and spaces else {}

    def rule(self, holding: NicHolding) -> NicRule | None:
        """Who was given a NIC by class is told of it, whatever the role."""
        role = self.book.roles.get(holding.role)
        rule = role.nic if role else None
        return rule or (GIVEN if holding.chosen else None)

    def present(self, holding: NicHolding) -> list[Interface]:
        """Those that are still there."""
        return [self.interfaces[name] for name in holding.nics if name in self.interfaces]


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
