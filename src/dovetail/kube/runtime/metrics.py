"""What the Kubernetes edge tells about its runtime. Labels take few values, known beforehand."""

from __future__ import annotations

from dovetail.telemetry.metrics import SECONDS, counter, gauge, histogram

WATCH_EVENTS = counter(
    "kube_watch_events_total", "Events of watches, by kind and type of event.", "kind", "type"
)
RELISTS = counter("kube_lists_total", "Whole lists an informer asked for.", "kind")
WATCH_ENDS = counter(
    "kube_watch_ends_total",
    "Ends of watches: closed by the server, gone (too old), cut, or refused.",
    "kind",
    "why",
)
CONTACT = gauge(
    "kube_contact_timestamp_seconds",
    "When the API server was last heard of, by kind; the age is time() minus this.",
    "kind",
)
CACHED = gauge("kube_cached_objects", "Objects an informer keeps.", "kind")
HANDLER_FAILURES = counter(
    "kube_handler_failures_total", "Handlers of informers that raised an exception.", "kind"
)
QUEUE_DEPTH = gauge("kube_queue_depth", "Keys that wait to be worked on.", "queue")
QUEUE_WAIT = histogram(
    "kube_queue_wait_seconds", "From adding a key to working on it.", SECONDS, "queue"
)
QUEUE_WORK = histogram("kube_queue_work_seconds", "Working on a key.", SECONDS, "queue")
QUEUE_RETRIES = counter("kube_queue_retries_total", "Keys that failed and wait again.", "queue")
LEADING = gauge("kube_leading", "Whether this process leads, by election.", "election")
EVENTS = counter(
    "kube_events_total", "Events for users: sent, repeated, dropped or failed.", "outcome"
)
