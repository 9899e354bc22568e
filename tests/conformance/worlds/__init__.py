"""The starting worlds of Placement's test files, by the names the files give them.

prepare() is all a runner needs. Worlds without providers differ in the server's profile only.
"""

import uuid

from tests.conformance.worlds import builder, granular, network, storage
from tests.conformance.worlds.builder import World, WorldError
from tests.conformance.worlds.names import CLASS_NAMES, VARIABLES

__all__ = ["WORLDS", "WorldError", "prepare"]

WORLDS = {
    "APIFixture": World(),
    "LegacyRBACPolicyFixture": World(profile="legacy-rbac"),
    "SecureRBACPolicyFixture": World(profile="secure-rbac"),
    "OpenPolicyFixture": World(profile="open-policy"),
    "CORSFixture": World(profile="cors"),
    "AllocationFixture": storage.ALLOCATION,
    "SharedStorageFixture": storage.SHARED_STORAGE,
    "NonSharedStorageFixture": storage.NON_SHARED_STORAGE,
    "NUMAAggregateFixture": storage.NUMA_AGGREGATE,
    "NUMANetworkFixture": network.NUMA_NETWORK,
    "DeepNUMANetworkFixture": network.DEEP_NUMA_NETWORK,
    "NeutronQoSMultiSegmentFixture": network.NEUTRON_QOS_MULTI_SEGMENT,
    "GranularFixture": granular.GRANULAR,
}


def prepare(world: World, url: str) -> dict[str, str]:
    """Fill an empty server; the environment variables the test file reads."""
    names = {variable: str(uuid.uuid4()) for variable in VARIABLES}
    return builder.build(world, url, names | CLASS_NAMES)
