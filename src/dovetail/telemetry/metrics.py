"""Metrics for Prometheus: how they are declared, and the one way in which daemons show them.

Each package declares its metrics beside the code that counts: in the module that does, or in a
`metrics.py` where several do. Server and scheduler show `METRICS`; the agent has `AGENT_METRICS`.
Labels take few values, known beforehand: route templates, classes of status codes, names of
phases; never anything a client makes up. An observation costs about a microsecond.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    start_http_server,
)
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = CONTENT_TYPE_LATEST
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where worker processes leave their numbers for whichever of them is asked."""

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
POWERS_OF_TEN = (0, 1, 10, 100, 1_000, 10_000, 100_000)
POWERS_OF_TWO = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics that a daemon shows: a registry, and constructors of what is in it."""

    def __init__(self, prefix: str) -> None:
        """Names of its metrics begin with the prefix; those of the process are always there."""
        self.registry = CollectorRegistry()
        self._prefix = prefix
        ProcessCollector(registry=self.registry)

    def counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(self._prefix + name, what, labels, registry=self.registry)

    def gauge(self, name: str, what: str, *labels: str) -> Gauge:
        # With several workers, the word of the one that spoke last.
        return Gauge(
            self._prefix + name,
            what,
            labels,
            registry=self.registry,
            multiprocess_mode="mostrecent",
        )

    def histogram(
        self, name: str, what: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(self._prefix + name, what, labels, buckets=buckets, registry=self.registry)

    def page(self) -> bytes:
        """All metrics as text of the type `CONTENT_TYPE`, of all workers if there are several."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    @contextmanager
    def http_server(self, host: str, port: int) -> Iterator[int]:
        """A thread that serves them, for daemons without a server of HTTP; its port.

        Raises OSError.
        """
        server, thread = start_http_server(port, host, registry=self.registry)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


METRICS = Metrics("dovetail_")
"""Of server and scheduler, which share ledger and service."""
PlatformCollector(registry=METRICS.registry)
GCCollector(registry=METRICS.registry)
