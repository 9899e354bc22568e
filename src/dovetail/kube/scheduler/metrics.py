"""Metrics of the scheduler, counted by its parts and shown by the daemon.

Labels take few values, known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Literal, get_args

from dovetail.telemetry.metrics import METRICS, SECONDS

Phase = Literal["decide", "claim", "allocate", "bind", "total"]

ATTEMPTS = METRICS.counter(
    "scheduler_attempts_total",
    "Turns of pods: how each ended. `taken`, `claimed already` and `void` are conflicts.",
    "outcome",
)
PHASES = METRICS.histogram(
    "scheduler_phase_duration_seconds",
    "Where the time of a pod goes; total is from its turn to its binding.",
    SECONDS,
    "phase",
)
DEPTHS = METRICS.gauge("scheduler_queue_pods", "Pods in the queue.", "state")
SWEPT = METRICS.counter(
    "scheduler_swept_total",
    "What comparing the ledger with the pods found: claims to release, to adopt, to make again "
    "or to correct, and pods in conflict.",
    "what",
)
RESOURCE_CLAIMS = METRICS.counter(
    "scheduler_resource_claims_total",
    "ResourceClaims of pods that got devices of DRA drivers: written, found written already, "
    "replaced, withdrawn since somebody else had a device, removed.",
    "what",
)
OVERLAPS = METRICS.counter(
    "scheduler_device_overlaps_total",
    "Bound pods that were found to share a device with a ResourceClaim of somebody else.",
)

OBSERVERS = {name: PHASES.labels(name).observe for name in get_args(Phase)}


@contextmanager
def timed(name: Phase) -> Iterator[None]:
    started = perf_counter()
    try:
        yield
    finally:
        OBSERVERS[name](perf_counter() - started)
