"""The questions asked of both servers, and what is read from an answer to compare two of them."""

from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson

Parameters = tuple[tuple[str, str], ...]

SIMPLE: Parameters = (("resources", "VCPU:4,MEMORY_MB:8192,DISK_GB:50"),)
VM_GROUPS: Parameters = (
    ("resources", "DISK_GB:50"),
    ("resources_NUMA", "VCPU:4,MEMORY_MB:8192"),
    ("required_NUMA", "HW_NUMA_ROOT"),
    ("resources_ACC", "FPGA:1"),
    ("resources_P1", "SRIOV_NET_VF:1"),
    ("required_P1", "CUSTOM_PHYSNET_A"),
    ("resources_P2", "SRIOV_NET_VF:1"),
    ("required_P2", "CUSTOM_PHYSNET_B"),
    ("group_policy", "none"),
)
FULL_VM: Parameters = (*VM_GROUPS, ("same_subtree", "_NUMA,_ACC,_P1,_P2"))
SINGLE_FPGA: Parameters = (("resources", "FPGA:1"),)

# One more than a NUMA node has.
TOO_MANY_VCPU: Parameters = (("resources", "VCPU:33,MEMORY_MB:8192,DISK_GB:50"),)
# An FPGA and a physical function are never above one another.
IMPOSSIBLE_SUBTREE: Parameters = (*VM_GROUPS, ("same_subtree", "_ACC,_P1,_P2"))
# A trait every Placement knows and no provider of the fleet has.
ABSENT_TRAIT: Parameters = (*SIMPLE, ("required", "HW_CPU_X86_AVX512F"))


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    parameters: Parameters
    limit: int | None = None

    @property
    def text(self) -> str:
        limit = () if self.limit is None else (("limit", str(self.limit)),)
        return urlencode((*self.parameters, *limit), safe=":,")

    @property
    def path(self) -> str:
        return f"/allocation_candidates?{self.text}"


SIMPLE_10 = Query("simple, limit 10", SIMPLE, 10)
FULL_VM_10 = Query("full VM, limit 10", FULL_VM, 10)
SINGLE_FPGA_10 = Query("one FPGA, limit 10", SINGLE_FPGA, 10)

QUERIES = (
    SIMPLE_10,
    Query("simple, limit 1000", SIMPLE, 1000),
    Query("simple, no limit", SIMPLE),
    FULL_VM_10,
    Query("full VM, limit 1000", FULL_VM, 1000),
    Query("full VM, no limit", FULL_VM),
    Query("nothing fits: VCPU", TOO_MANY_VCPU),
    Query("nothing fits: same_subtree", IMPOSSIBLE_SUBTREE),
    Query("nothing fits: trait", ABSENT_TRAIT),
)


def candidates(answer: bytes) -> Counter[bytes]:
    """The candidates of an answer, each in a form that does not depend on order."""
    requests = orjson.loads(answer)["allocation_requests"]
    return Counter(
        orjson.dumps(_ordered(request), option=orjson.OPT_SORT_KEYS) for request in requests
    )


def _ordered(request: dict[str, dict[str, object]]) -> dict[str, object]:
    mappings = {
        suffix: sorted(providers)
        for suffix, providers in request["mappings"].items()
        if isinstance(providers, list)
    }
    return {"allocations": request["allocations"], "mappings": mappings}
