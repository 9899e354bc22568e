"""A machine with two NUMA nodes and cgroup v2, in QEMU: what this one may not have."""
