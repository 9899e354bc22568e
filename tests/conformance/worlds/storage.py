"""Worlds about storage: one provider in use, and computes with local or shared disk.

Facts only, as tables; builder.py makes them. A provider's UUID is read by the test files as
the variable NAME_UUID unless the table names another one.
"""

from tests.conformance.worlds.builder import Claim, Provider, World
from tests.conformance.worlds.names import SHARES

OVERCOMMITTED_CPUS = {"total": 24, "allocation_ratio": 16.0}
RESERVING_DISK = {"total": 2000, "reserved": 100}


# One provider in use by three consumers of two users.

ALLOCATION = World(
    variables=("ALT_RP_UUID", "ALT_RP_NAME", "ALT_USER_ID"),
    trees=(
        Provider(
            "$RP_NAME",
            "RP_UUID",
            inventories={
                "DISK_GB": {"total": 2048, "step_size": 10, "min_unit": 10, "max_unit": 1000},
                "VCPU": 10,
            },
        ),
    ),
    claims=(
        Claim("CONSUMER_0", "RP_UUID", {"DISK_GB": 1000}, "$PROJECT_ID", "$USER_ID"),
        Claim("CONSUMER_ID", "RP_UUID", {"VCPU": 6}, "$PROJECT_ID", "$USER_ID"),
        Claim(
            "ALT_CONSUMER_ID", "RP_UUID", {"DISK_GB": 20, "VCPU": 1}, "$PROJECT_ID", "$ALT_USER_ID"
        ),
    ),
)


# Two computes of two NUMA nodes with a network port each; one aggregate holds the computes
# and two providers of shared disk. Only cn2 has a disk of its own.


def _ported_numa_node(number: str) -> Provider:
    port = Provider(f"pf{number}", inventories={"SRIOV_NET_VF": 8})
    return Provider(f"numa{number}", children=(port,))


CPUS_AND_MEMORY = {
    "VCPU": OVERCOMMITTED_CPUS,
    "MEMORY_MB": {"total": 131072, "allocation_ratio": 1.5},
}

SHARED_STORAGE = World(
    trees=(
        Provider(
            "cn1",
            aggregates=("AGG_UUID",),
            inventories=CPUS_AND_MEMORY,
            traits=("HW_CPU_X86_SSE", "HW_CPU_X86_SSE2"),
            children=(_ported_numa_node("1_1"), _ported_numa_node("1_2")),
        ),
        Provider(
            "cn2",
            aggregates=("AGG_UUID",),
            inventories={**CPUS_AND_MEMORY, "DISK_GB": RESERVING_DISK},
            children=(_ported_numa_node("2_1"), _ported_numa_node("2_2")),
        ),
        *(
            Provider(
                name,
                aggregates=("AGG_UUID",),
                inventories={"DISK_GB": RESERVING_DISK},
                traits=(SHARES,),
            )
            for name in ("ss", "ss2")
        ),
    ),
)


# Two computes without resources above NUMA nodes with CPUs; ss1 shares its disk with both
# computes, ss2 with one NUMA node only.


def _cpu_node(number: str, *aggregates: str) -> Provider:
    return Provider(
        f"numa{number}", aggregates=aggregates, inventories={"VCPU": OVERCOMMITTED_CPUS}
    )


def _shared_disk(name: str, aggregate: str) -> Provider:
    return Provider(
        name, aggregates=(aggregate,), inventories={"DISK_GB": RESERVING_DISK}, traits=(SHARES,)
    )


NUMA_AGGREGATE = World(
    variables=("AGGB_UUID",),
    trees=(
        Provider(
            "cn1",
            aggregates=("AGGA_UUID",),
            children=(_cpu_node("1_1", "AGGC_UUID"), _cpu_node("1_2")),
        ),
        Provider(
            "cn2",
            aggregates=("AGGA_UUID", "AGGB_UUID"),
            children=(_cpu_node("2_1"), _cpu_node("2_2")),
        ),
        _shared_disk("ss1", "AGGA_UUID"),
        _shared_disk("ss2", "AGGC_UUID"),
    ),
)


# Three equal computes; the aggregates are for the tests to use.

NON_SHARED_STORAGE = World(
    variables=("AGGA_UUID", "AGGB_UUID", "AGGC_UUID"),
    trees=tuple(
        Provider(name, inventories={"VCPU": 24, "MEMORY_MB": 131072, "DISK_GB": 2000})
        for name in ("cn1", "cn2", "cn3")
    ),
)
