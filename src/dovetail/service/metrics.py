"""Metrics of the use cases: claims, searches for candidates, the snapshot."""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, POWERS_OF_TEN

CLAIMS = METRICS.counter(
    "claims_total",
    "Claims: granted, refused (no room), conflict (somebody was faster), invalid or failed.",
    "outcome",
)
CANDIDATES = METRICS.histogram(
    "candidates_returned", "Candidates in an answer, before encoding.", POWERS_OF_TEN
)
CUT_OFFS = METRICS.counter(
    "searches_cut_off_total",
    "Searches refused or cut short for being too long or finding too many.",
    "reason",
)
SNAPSHOT_CHECKED = METRICS.gauge(
    "snapshot_checked_timestamp_seconds",
    "When the snapshot was last known to be true to the ledger; its age is time() minus this.",
)
SNAPSHOT_ROWS = METRICS.gauge("snapshot_rows", "Providers in the snapshot.")
SNAPSHOT_TREES = METRICS.gauge("snapshot_trees", "Trees in the snapshot.")
SNAPSHOT_BYTES = METRICS.gauge("snapshot_bytes", "Memory of the snapshot's columns.")
SNAPSHOT_CHANGES = METRICS.counter(
    "snapshot_changes_total",
    "What the snapshot took in: whole forests, trees, trees with new usage, new sets of names.",
    "kind",
)
