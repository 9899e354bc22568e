"""A server that is told of a collector sends its spans there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cli.run.test_serve import running


class Collector(ThreadingHTTPServer):
    """Takes OTLP over HTTP and keeps the spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.batches: list[ExportTraceServiceRequest] = []

    def span_names(self) -> set[str]:
        return {
            span.name
            for batch in self.batches
            for resource in batch.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    def services(self) -> set[str]:
        return {
            attribute.value.string_value
            for batch in self.batches
            for resource in batch.resource_spans
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
        }


class Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.batches.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: what matters is what arrived."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_spans_arrive_even_those_of_the_last_moment(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = collector.server_address[:2]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{host!s}:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    options = ("--auth", "noauth2", "--policy", "open")
    with running(*options, cwd=tmp_path) as serving:
        url = serving.url
        assert httpx2.get(f"{url}/livez").status_code == 200
        listing = httpx2.get(f"{url}/resource_providers", headers={"x-auth-token": "admin"})
        assert listing.status_code == 200
        serving.send_signal(signal.SIGTERM)
        serving.wait(60)
    assert {"GET /resource_providers", "read", "GET /livez"} <= collector.span_names()
    assert collector.services() == {"dovetail"}
