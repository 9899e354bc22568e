"""Machines: plans, sales and hand-overs, timed; `make bench-machines` runs it."""
