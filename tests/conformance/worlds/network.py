"""Worlds about networks: NUMA hosts with devices, and hosts with bandwidth for their ports.

Facts only, as tables; builder.py makes them. A provider's UUID is read by the test files as
the variable NAME_UUID unless the table names another one.
"""

from tests.conformance.worlds.builder import Claim, Provider, World
from tests.conformance.worlds.names import EGRESS, INGRESS, PACKETS, SHARES

# cn1: everything sits in NUMA nodes, their devices and two network agents. cn2: a flat host
# with three network cards. Both share the disk of ss1.


def _numa_node(number: int, memory: dict[str, int], *traits: str, **devices: str) -> Provider:
    return Provider(
        f"numa{number}",
        inventories={"VCPU": 4, "MEMORY_MB": {"total": 2048, **memory}},
        traits=("HW_NUMA_ROOT", *traits),
        children=tuple(
            Provider(name, inventories={kind: 8 if kind == "VGPU" else 1})
            for name, kind in devices.items()
        ),
    )


def _uplink(name: str, network: int, bandwidth: int) -> Provider:
    return Provider(name, inventories={EGRESS: bandwidth}, traits=(f"CUSTOM_PHYSNET{network}",))


def _card(number: int, *ports: tuple[int, int]) -> Provider:
    """A network card; a port is its physical network and its number of functions."""
    return Provider(
        f"nic{number}",
        traits=("CUSTOM_HW_NIC_ROOT",),
        children=tuple(
            Provider(
                f"pf{number}_{place}",
                inventories={"CUSTOM_VF": functions},
                traits=(f"CUSTOM_PHYSNET{network}",),
            )
            for place, (network, functions) in enumerate(ports, start=1)
        ),
    )


NUMA_HOST = Provider(
    "cn1",
    aggregates=("AGGA_UUID",),
    traits=("COMPUTE_VOLUME_MULTI_ATTACH",),
    children=(
        _numa_node(0, {"min_unit": 512, "step_size": 256}, fpga0="FPGA", pgpu0="VGPU"),
        _numa_node(
            1, {"min_unit": 256, "max_unit": 1024}, "CUSTOM_FOO", fpga1_0="FPGA", fpga1_1="FPGA"
        ),
        Provider(
            "sriov_agent",
            traits=("CUSTOM_VNIC_TYPE_DIRECT",),
            children=(_uplink("esn1", 1, 10000), _uplink("esn2", 2, 20000)),
        ),
        Provider(
            "ovs_agent",
            traits=("CUSTOM_VNIC_TYPE_NORMAL",),
            children=(_uplink("br_int", 0, 1000),),
        ),
    ),
)

FLAT_HOST = Provider(
    "cn2",
    aggregates=("AGGA_UUID",),
    inventories={
        "VCPU": 8,
        "MEMORY_MB": {"total": 2048, "min_unit": 1024, "step_size": 128},
        "DISK_GB": 1000,
    },
    traits=("CUSTOM_FOO",),
    children=(
        _card(1, (1, 4), (2, 4)),
        _card(2, (1, 2), (2, 2), (1, 2), (2, 2)),
        _card(3, (1, 8)),
    ),
)

NETWORK_DISK = Provider(
    "ss1", aggregates=("AGGA_UUID",), inventories={"DISK_GB": 2000}, traits=(SHARES,)
)

NETWORK_CLAIMS = (
    Claim("NUMA_CONSUMER", "NUMA0_UUID", {"VCPU": 2}, "numafx-project", "numafx-user"),
    Claim("FLAT_CONSUMER", "CN2_UUID", {"VCPU": 3}, "numafx-project", "numafx-user"),
)

NUMA_NETWORK = World(trees=(NETWORK_DISK, NUMA_HOST, FLAT_HOST), claims=NETWORK_CLAIMS)

RACK = Provider(
    "gp1", children=(Provider("p1", children=(NUMA_HOST,)), Provider("p2", children=(FLAT_HOST,)))
)

DEEP_NUMA_NETWORK = World(trees=(NETWORK_DISK, RACK), claims=NETWORK_CLAIMS)


# Four computes, each with a virtual switch and a card switch that offer bandwidth in one
# physical network; the last one is connected to two, with little bandwidth in each.

NORMAL = "CUSTOM_VNIC_TYPE_NORMAL"
DIRECT = (
    *("CUSTOM_VNIC_TYPE_DIRECT", "CUSTOM_VNIC_TYPE_DIRECT_PHYSICAL"),
    "CUSTOM_VNIC_TYPE_MACVTAP",
)


def _port(name: str, variable: str, bandwidth: int, *traits: str) -> Provider:
    return Provider(
        name, variable, inventories={EGRESS: bandwidth, INGRESS: bandwidth}, traits=traits
    )


def _compute(host: str, networks: tuple[str, ...], bridge: int, port: int) -> Provider:
    """A host; bridge and port are the bandwidths of every one of these."""
    switch, cards = f"{host}:Open vSwitch agent", f"{host}:NIC Switch agent"
    bridges, ports = [], []
    for place, network in enumerate(networks):
        suffix = str(place + 1) if place else ""
        physical = f"CUSTOM_PHYSNET_{network}"
        bridges.append(
            _port(f"{switch}:br-ex{suffix}", f"{host}:br_ex{suffix}", bridge, NORMAL, physical)
        )
        ports.append(
            _port(f"{cards}:enp129s0f{place}", f"{host}:pf{place}", port, *DIRECT, physical)
        )
    return Provider(
        host,
        host,
        inventories={"VCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 500},
        children=(
            Provider(
                switch,
                f"{host}:ovs_agent",
                inventories={PACKETS: 1000},
                traits=(NORMAL,),
                children=tuple(bridges),
            ),
            Provider(cards, f"{host}:sriov_agent", traits=DIRECT, children=tuple(ports)),
        ),
    )


NEUTRON_QOS_MULTI_SEGMENT = World(
    trees=(
        _compute("compute0", ("OTHER",), bridge=5000, port=10000),
        _compute("compute1", ("MSN_S1",), bridge=5000, port=10000),
        _compute("compute2", ("MSN_S2",), bridge=5000, port=10000),
        _compute("compute3", ("MSN_S1", "MSN_S2"), bridge=1000, port=1000),
    ),
)
