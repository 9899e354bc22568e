"""The NRI plugin: containerd asks before it starts something."""
