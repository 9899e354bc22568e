"""Machines for tests, down to unlikely ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import Cpu, Hugepages, Machine, Nic, NumaNode

SIZES = (2 << 20, 1 << 30)


class Loose(NamedTuple):
    """A CPU as it is drawn: what it shares has labels of any kind."""

    id: int
    socket: int
    numa: int
    core: int
    l2: int | None
    l3: int | None
    kind: str
    capacity: int | None


def settled(cpus: Iterable[Loose]) -> tuple[Cpu, ...]:
    """With labels replaced by the lowest CPU that has them."""
    lowest: dict[tuple[object, ...], int] = {}

    def named(cpu: Loose, *label: object) -> int:
        # Cores and caches are not shared between sockets or NUMA nodes.
        return lowest.setdefault((cpu.socket, cpu.numa, *label), cpu.id)

    return tuple(
        Cpu(
            id=cpu.id,
            core=named(cpu, "core", cpu.core),
            socket=cpu.socket,
            numa=cpu.numa,
            l2=None if cpu.l2 is None else named(cpu, "l2", cpu.l2),
            l3=None if cpu.l3 is None else named(cpu, "l3", cpu.l3),
            kind=cpu.kind,
            capacity=cpu.capacity,
        )
        for cpu in sorted(cpus)
    )


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """With gaps in every numbering, CPUs offline, nodes without CPUs or memory, hybrid cores."""
    nodes = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=4)))
    ids = draw(st.lists(st.integers(0, 70), min_size=1, max_size=12, unique=True))
    offline = draw(st.sets(st.integers(0, 70), max_size=3))
    label = st.integers(0, 2)
    cpus = settled(
        Loose(
            at,
            draw(label),
            draw(st.sampled_from(nodes)),
            draw(label),
            draw(st.none() | label),
            draw(st.none() | label),
            draw(st.sampled_from(["", "core", "atom"])),
            draw(st.none() | st.integers(1, 1024)),
        )
        for at in ids
    )
    return Machine(
        cpus=cpus,
        nodes=tuple(
            NumaNode(
                id=node,
                cpus=CpuSet(cpu.id for cpu in cpus if cpu.numa == node),
                memory=draw(st.integers(0, 2**30)) << 10,
                hugepages=draw(hugepages),
                distances={
                    other: 10 if other == node else draw(st.integers(11, 254)) for other in nodes
                },
            )
            for node in nodes
        ),
        nics=draw(nics(nodes)),
        offline=CpuSet(offline) - CpuSet(ids),
        isolated=CpuSet(draw(st.sets(st.sampled_from(ids)))),
    )


@st.composite
def _hugepages(draw: st.DrawFn) -> Mapping[int, Hugepages]:
    sizes = sorted(draw(st.sets(st.sampled_from(SIZES))))
    totals = {size: draw(st.integers(0, 512)) for size in sizes}
    return {size: Hugepages(total, draw(st.integers(0, total))) for size, total in totals.items()}


hugepages = _hugepages()


@st.composite
def nics(draw: st.DrawFn, nodes: list[int]) -> tuple[Nic, ...]:
    names = sorted(draw(st.sets(st.sampled_from(["eth0", "eth1", "enp1s0f0np0", "ib0"]))))
    global_ = st.ip_addresses(v=6, network="fd00::/8").map(str)
    local = st.ip_addresses(v=6, network="fe80::/64").map(str)
    return tuple(
        Nic(
            name=name,
            numa=draw(st.none() | st.sampled_from(nodes)),
            speed=draw(st.none() | st.sampled_from([1000, 25000])),
            mac=f"02:00:00:00:00:{at:02x}",
            addresses=(
                *draw(st.lists(global_, max_size=2, unique=True)),
                *draw(st.lists(local, max_size=1)),
            ),
        )
        for at, name in enumerate(names)
    )
