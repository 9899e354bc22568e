"""The finder of providers: which trees serve groups with affinity. No I/O, no clock, no randomness.

Each part uses those above it:

    work          long work in steps, so that others get their turn
    journal       which trees of the snapshot changed
    snapshot      the fleet in columns, true at one moment of the ledger
    feasible      constraint masks over the columns: trees that could serve a request
    combine/      backtracking with forward pruning within each tree
    kept_options  what both found out, kept from search to search, brought up to date by change
    search        all candidates, in a fixed order, lazily
    rank/         the best of them, by named policies
    explain/      why there are none, or not more
"""

from dovetail.engine.search import Candidate, Search, search
from dovetail.engine.snapshot import Snapshot

__all__ = ["Candidate", "Search", "Snapshot", "search"]
