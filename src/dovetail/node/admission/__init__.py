"""Lets pods in, as a whole or not at all: hints, merge, allocations, one transaction."""
