"""The world of granular requests: three computes, three sharing providers, three aggregates.

Facts only, as a table; builder.py makes them.
"""

from tests.conformance.worlds.builder import Provider, World
from tests.conformance.worlds.names import SHARES

PLAIN_COMPUTE = {"VCPU": 8, "MEMORY_MB": 4096}
PLAIN_NETWORK = {"SRIOV_NET_VF": 8, "CUSTOM_NET_MBPS": 4000}

GRANULAR = World(
    trees=(
        Provider(
            "cn_left",
            "CN_LEFT",
            aggregates=("AGGA",),
            inventories={**PLAIN_COMPUTE, **PLAIN_NETWORK, "DISK_GB": 500, "VGPU": 8},
            traits=(
                *("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_GPU_API_DXVA"),
                *("HW_NIC_DCB_PFC", "CUSTOM_FOO"),
            ),
        ),
        Provider(
            "cn_middle",
            "CN_MIDDLE",
            aggregates=("AGGA", "AGGB"),
            inventories={**PLAIN_COMPUTE, **PLAIN_NETWORK},
            traits=("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE", "HW_NIC_ACCEL_TLS"),
        ),
        Provider(
            "cn_right",
            "CN_RIGHT",
            aggregates=("AGGB", "AGGC"),
            inventories={**PLAIN_COMPUTE, "DISK_GB": 500, "VGPU": {"total": 8, "max_unit": 2}},
            traits=("HW_CPU_X86_MMX", "HW_GPU_API_DXVA", "CUSTOM_DISK_SSD"),
        ),
        Provider(
            "shr_disk_1",
            "SHR_DISK_1",
            aggregates=("AGGA",),
            inventories={"DISK_GB": 1000},
            traits=(SHARES, "CUSTOM_DISK_SSD"),
        ),
        Provider(
            "shr_disk_2",
            "SHR_DISK_2",
            aggregates=("AGGA", "AGGB"),
            inventories={"DISK_GB": 1000},
            traits=(SHARES,),
        ),
        Provider(
            "shr_net",
            "SHR_NET",
            aggregates=("AGGC",),
            inventories={"SRIOV_NET_VF": 16, "CUSTOM_NET_MBPS": 40000},
            traits=(SHARES,),
        ),
    ),
)
