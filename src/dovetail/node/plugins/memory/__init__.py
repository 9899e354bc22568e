"""The memory plugin: the NUMA nodes that containers are bound to."""
