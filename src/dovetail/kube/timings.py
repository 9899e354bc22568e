"""Timings: how often the parts of a replica look, and how long they wait, in seconds.

The daemon takes them as they are; tests hand in short ones. What users may set is in the settings.
"""

from __future__ import annotations

import msgspec


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    first_backoff: float = 1.0
    """Of a pod whose turn failed; twice as long each time."""
    longest_backoff: float = 10.0
    stale: float = 300.0
    """A pod that fits nowhere is tried again after this, whatever happened or not."""
    longest_wait: float = 10.0
    """The scheduling loop looks around for pods that were forgotten."""
    gather_changes: float = 0.1
    """What may help is gathered for so long before pods are woken."""
    drain: float = 20.0
    """What is being bound has so long to come to its end when the scheduler stops."""
    ledger_watch: float = 1.0
    housekeeping: float = 1.0
    """Between looks at queue and devices, and between tries to begin to lead."""
    reconcile: float = 60.0
    """Between comparisons of the ledger with the pods."""
    class_status: float = 1.0
    """Between two writes of the status of the same class."""
    optional_kinds: float = 10.0
    """Classes and slices are waited for at the start: a cluster may not have these kinds at all."""
