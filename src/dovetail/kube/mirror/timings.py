"""How often the mirror asks, writes and gives up; tests pass smaller numbers."""

from __future__ import annotations

import msgspec


class MirrorTimings(msgspec.Struct, frozen=True, kw_only=True):
    registrations_seconds: float = 2.0
    """Between two looks at which clusters are registered."""
    batch_seconds: float = 1.0
    """How long changes of a cluster are gathered before they are written."""
    probe_seconds: float = 5.0
    """Between two questions whether a cluster answers."""
    probe_deadline_seconds: float = 5.0
    away_seconds: float = 15.0
    """A cluster that has answered nothing for so long is away."""
    silent_watch_seconds: float = 400.0
    """So is one of which a watch has told nothing for so long, however it answers: a live watch
    brings a bookmark about once a minute."""
    report_seconds: float = 5.0
    """Between two reports of all clusters' states to the ledger."""
    optional_seconds: float = 60.0
    """Between two looks whether a cluster has a kind by now that it did not have."""
    new_nodes_seconds: float = 10.0
    """Between two looks for nodes whose CPU policies are not known."""
    policies_seconds: float = 600.0
    """Between two questions about CPU policies, where there was no answer."""
    sweep_seconds: float = 60.0
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 30.0


TIMINGS = MirrorTimings()
