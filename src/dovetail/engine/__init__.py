"""Finds every place a request fits. Pure: no I/O, no clock, no randomness.

A Snapshot holds the fleet in columns; `search(snapshot, request)` narrows it to the trees that can
serve (feasible.py), then combines providers within each tree (combine.py).
"""

from dovetail.engine.search import Candidate, Search, search
from dovetail.engine.snapshot import Snapshot

__all__ = ["Candidate", "Search", "Snapshot", "search"]
