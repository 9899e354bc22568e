"""Metrics of the runtime, counted by its parts and shown by each daemon.

Labels take few values, known beforehand.
"""

from __future__ import annotations

from dovetail.telemetry.metrics import METRICS, SECONDS

WATCH_EVENTS = METRICS.counter(
    "kube_watch_events_total", "Events of watches, by kind and type of event.", "kind", "type"
)
RELISTS = METRICS.counter("kube_lists_total", "Whole lists an informer asked for.", "kind")
WATCH_ENDS = METRICS.counter(
    "kube_watch_ends_total",
    "Ends of watches: closed by the server, gone (too old), cut, or refused.",
    "kind",
    "why",
)
CONTACT = METRICS.gauge(
    "kube_contact_timestamp_seconds",
    "When the API server was last heard of, by kind; the age is time() minus this.",
    "kind",
)
CACHED = METRICS.gauge("kube_cached_objects", "Objects an informer keeps.", "kind")
HANDLER_FAILURES = METRICS.counter(
    "kube_handler_failures_total", "Handlers of informers that raised an exception.", "kind"
)
QUEUE_DEPTH = METRICS.gauge("kube_queue_depth", "Keys that wait to be worked on.", "queue")
QUEUE_WAIT = METRICS.histogram(
    "kube_queue_wait_seconds", "From adding a key to working on it.", SECONDS, "queue"
)
QUEUE_WORK = METRICS.histogram("kube_queue_work_seconds", "Working on a key.", SECONDS, "queue")
QUEUE_RETRIES = METRICS.counter(
    "kube_queue_retries_total", "Keys that failed and wait again.", "queue"
)
LEADING = METRICS.gauge("kube_leading", "Whether this process leads, by election.", "election")
EVENTS = METRICS.counter(
    "kube_events_total", "Events for users: sent, repeated, dropped or failed.", "outcome"
)
