"""Metrics of the operator of machines, counted by its parts and shown by the daemon."""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, SECONDS

UNITS = METRICS.gauge(
    "machines_units",
    "Units by group and type: maximum, reserved, used (a parent's with its children's shares), "
    "waiting.",
    "group",
    "type",
    "state",
)
SALES = METRICS.counter(
    "machines_sales_total", "Sales of units: sold, or refused by the ledger.", "outcome"
)
PLANNING = METRICS.histogram("machines_plan_seconds", "Making the plan of one group.", SECONDS)
HAND_OVER = METRICS.histogram(
    "machines_hand_over_seconds",
    "From a guest's turn to the lifting of its gate: ledger, room, gate.",
    SECONDS,
)
WRITES = METRICS.counter("machines_writes_total", "Writes to the API server, by kind.", "kind")
REVIEWS = METRICS.counter(
    "machines_webhook_reviews_total",
    "Reviews by the admission webhook, of guests and of Machines: allowed or refused.",
    "kind",
    "outcome",
)
CERTIFICATE_ENDS = METRICS.gauge(
    "machines_webhook_certificate_end_seconds",
    "Until when the certificate is valid that the webhook serves, in Unix seconds.",
)
