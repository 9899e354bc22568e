"""Every metric there is, in one place.

Labels take few values, known beforehand: route templates, classes of status codes, names of phases;
never anything a client makes up. An observation costs about a microsecond.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
POWERS_OF_TEN = (0, 1, 10, 100, 1_000, 10_000, 100_000)
POWERS_OF_TWO = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def counter(name: str, what: str, *labels: str) -> Counter:
    return Counter(f"dovetail_{name}", what, labels, registry=REGISTRY)


def gauge(name: str, what: str, *labels: str) -> Gauge:
    # With several workers, the word of the one that spoke last.
    return Gauge(
        f"dovetail_{name}", what, labels, registry=REGISTRY, multiprocess_mode="mostrecent"
    )


def histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(f"dovetail_{name}", what, labels, buckets=buckets, registry=REGISTRY)


BUILD = gauge("build_info", "The version that runs; always 1.", "version")
REQUESTS = histogram(
    "request_duration_seconds",
    "From the head of a request to the end of its answer.",
    SECONDS,
    "method",
    "route",
    "status",
)
REFUSALS = counter(
    "refused_requests_total",
    "Requests answered with an error, by status code; 409 is a conflict.",
    "route",
    "status",
)
CLAIMS = counter(
    "claims_total",
    "Claims: granted, refused (no room), conflict (somebody was faster), invalid or failed.",
    "outcome",
)
PHASES = histogram("phase_duration_seconds", "Where requests spend their time.", SECONDS, "phase")
CANDIDATES = histogram(
    "candidates_returned", "Candidates in an answer, before encoding.", POWERS_OF_TEN
)
CUT_OFFS = counter(
    "searches_cut_off_total", "Searches refused for being too long or finding too many.", "reason"
)
SNAPSHOT_CHECKED = gauge(
    "snapshot_checked_timestamp_seconds",
    "When the snapshot was last known to be true to the ledger; its age is time() minus this.",
)
SNAPSHOT_ROWS = gauge("snapshot_rows", "Providers in the snapshot.")
SNAPSHOT_TREES = gauge("snapshot_trees", "Trees in the snapshot.")
SNAPSHOT_BYTES = gauge("snapshot_bytes", "Memory of the snapshot's columns.")
SNAPSHOT_CHANGES = counter(
    "snapshot_changes_total",
    "What the snapshot took in: whole forests, trees, trees with new usage, new sets of names.",
    "kind",
)
BATCHES = histogram("commit_batch_size", "Writes that shared one commit (SQLite).", POWERS_OF_TWO)
