"""The forests and groups that the nested placement specification draws, and words to compare with.

Candidates are compared by what they allocate, as the specification writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.request import Affinity, Group
from tests.engine.forest import Inventory, grow, node
from tests.engine.oracle import Candidate

Taken = frozenset[tuple[str, str, int]]

NUMA_HOST = grow(
    node(
        "compute node",
        node("numa0", node("fpga0_0", FPGA=1), VCPU=Inventory(4, used=2), MEMORY_MB=2048),
        node("numa1", node("fpga1_0", FPGA=1), node("fpga1_1", FPGA=1), VCPU=4, MEMORY_MB=2048),
    )
)
COMPUTE = Group(suffix="_COMPUTE", resources={"VCPU": 2, "MEMORY_MB": 512})
ACCEL = Group(suffix="_ACCEL", resources={"FPGA": 1})

NETWORK_HOST = grow(
    node(
        "compute node",
        node(
            "nic1",
            node("pf1_1", VF=4, traits=["NET1"]),
            node("pf1_2", VF=4, traits=["NET2"]),
            traits=["HW_NIC_ROOT"],
        ),
        node(
            "nic2",
            node("pf2_1", VF=2, traits=["NET1"]),
            node("pf2_2", VF=2, traits=["NET2"]),
            traits=["HW_NIC_ROOT"],
        ),
    )
)
VIF_NET1 = Group(suffix="_VIF_NET1", resources={"VF": 1}, required=(frozenset(["NET1"]),))
VIF_NET2 = Group(suffix="_VIF_NET2", resources={"VF": 1}, required=(frozenset(["NET2"]),))
NIC_AFFINITY = Group(suffix="_NIC_AFFINITY", required=(frozenset(["HW_NIC_ROOT"]),))

POLICY_HOST = grow(
    node(
        "compute node",
        node("nic1", node("pf1_1", VF=4), node("pf1_2", VF=4), traits=["HW_NIC_ROOT"]),
        node("nic2", traits=["HW_NIC_ROOT"]),
    )
)
VIF1 = Group(suffix="_VIF1", resources={"VF": 1})
VIF2 = Group(suffix="_VIF2", resources={"VF": 1})


def suffixes(*groups: Group) -> frozenset[str]:
    return frozenset(group.suffix for group in groups)


def same_subtree(*groups: Group, apart: tuple[Group, ...] = ()) -> Affinity:
    return Affinity(together=suffixes(*groups), apart=suffixes(*apart))


def taking(**amounts: Mapping[str, int]) -> Taken:
    return frozenset(
        (provider, name, amount)
        for provider, held in amounts.items()
        for name, amount in held.items()
    )


def taken(answers: set[Candidate]) -> set[Taken]:
    return {candidate.allocations for candidate in answers}


def on_numa(numa: str, fpga: str) -> Taken:
    return taking(**{numa: {"VCPU": 2, "MEMORY_MB": 512}, fpga: {"FPGA": 1}})


def two_pfs(one: str, other: str) -> Taken:
    return taking(**{one: {"VF": 1}, other: {"VF": 1}})
