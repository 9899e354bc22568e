"""Values of the domain, without I/O, that every other package speaks in, and their arrays."""
