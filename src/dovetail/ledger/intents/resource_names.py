"""Resource classes for Kubernetes' resources: the one naming, for nodes and charges of intents.

Different resources have different classes: a name that others could be mistaken for ends in a
digest of itself.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from dovetail.podfit.pod_sum import CPU, MEMORY, PODS, STORAGE

NATIVE = {
    CPU: "CUSTOM_MILLICPU",
    MEMORY: "CUSTOM_MEMORY_BYTES",
    PODS: "CUSTOM_PODS",
    STORAGE: "CUSTOM_EPHEMERAL_STORAGE_BYTES",
}
PLAIN = re.compile(r"[a-z0-9]+(?:\.[a-z0-9]+)*/[a-z0-9]+", re.ASCII)
"""The last separator is the slash, all others are dots: as underscores, no two are alike."""
LONGEST_PLAIN = 200
DIGEST_DIGITS = 16


@lru_cache(maxsize=4096)
def class_of_resource(resource: str) -> str:
    """`CUSTOM_NVIDIA_COM_GPU` of `nvidia.com/gpu`. Its units are those that podfit counts."""
    if resource in NATIVE:
        return NATIVE[resource]
    name = "CUSTOM_" + re.sub(r"[^A-Z0-9]", "_", resource.upper())
    is_plain = PLAIN.fullmatch(resource) is not None and len(name) <= LONGEST_PLAIN
    if is_plain and name not in NATIVE.values():
        return name
    digest = hashlib.sha256(resource.encode()).hexdigest()[:DIGEST_DIGITS].upper()
    # No plain name has two underscores in a row.
    return f"{name[:LONGEST_PLAIN]}__{digest}"
