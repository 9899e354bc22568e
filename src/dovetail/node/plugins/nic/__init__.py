"""The NIC plugin: NICs near to a container."""
