"""The node agent: pins CPUs, memory and NICs of containers by NUMA node, through plugins."""
