"""The words of the domain: values without I/O that every other package speaks in."""
