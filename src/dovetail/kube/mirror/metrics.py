"""Metrics of the mirror, counted by its followers. Labels take few values, known beforehand."""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, SECONDS

FOLLOWED = METRICS.gauge(
    "mirror_clusters", "Clusters that this process follows, by their state.", "state"
)
NODES_WRITTEN = METRICS.counter(
    "mirror_nodes_written_total", "Nodes written to the ledger, since they had changed."
)
WRITES = METRICS.counter(
    "mirror_writes_total", "Batches written to the ledger: done or failed.", "outcome"
)
WRITE_SECONDS = METRICS.histogram(
    "mirror_write_seconds", "Writing a batch of nodes to the ledger.", SECONDS
)
