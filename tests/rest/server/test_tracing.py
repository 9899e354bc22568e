"""Spans: one per request, one per phase below it, part of the caller's trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from dovetail.telemetry.tracing import TRACING, asked_for
from tests.rest.client import Client

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
QUERY = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    TRACING.use(provider.get_tracer("test"))
    yield exporter
    TRACING.use(None)
    provider.shutdown()


def test_a_request_is_a_span_with_a_span_for_each_phase(
    client: Client, spans: InMemorySpanExporter
) -> None:
    client.call("POST", "/resource_providers", {"name": "host"})
    spans.clear()
    client.get(QUERY)
    *phases, request = spans.get_finished_spans()
    assert request.name == "GET /allocation_candidates"
    assert request.kind is SpanKind.SERVER
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["http.route"] == "/allocation_candidates"
    assert [phase.name for phase in phases] == ["parse", "snapshot", "search", "encode"]
    for phase in phases:
        assert phase.parent is not None
        assert phase.parent.span_id == request.context.span_id


def test_a_write_has_its_phase(client: Client, spans: InMemorySpanExporter) -> None:
    client.call("POST", "/resource_providers", {"name": "host"})
    assert [span.name for span in spans.get_finished_spans()] == [
        "write",
        "POST /resource_providers",
    ]


def test_questions_about_the_fleet_have_theirs(client: Client, spans: InMemorySpanExporter) -> None:
    question = {"query": "resources=VCPU:1", "add": [{"name": "host", "inventories": {"VCPU": 8}}]}

    def phases(method: str, path: str, body: Any = None) -> list[str]:
        spans.clear()
        assert client.call(method, path, body).status_code == 200
        return [span.name for span in spans.get_finished_spans()[:-1]]

    assert phases("GET", "/dovetail/v1/explain?resources=VCPU:1") == [
        "parse",
        "snapshot",
        "explain",
        "read",
        "encode",
    ]
    assert phases("POST", "/dovetail/v1/whatif", question) == [
        "parse",
        "read",
        "snapshot",
        "suppose",
        "explain",
        "search",
        "read",
        "encode",
    ]


def test_the_trace_of_the_caller_goes_on(client: Client, spans: InMemorySpanExporter) -> None:
    client.get(QUERY, traceparent=CALLER)
    request = spans.get_finished_spans()[-1]
    assert f"{request.context.trace_id:032x}" == CALLER.split("-")[1]
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == CALLER.split("-")[2]


def test_a_trace_parent_that_is_none_starts_a_new_trace(
    client: Client, spans: InMemorySpanExporter
) -> None:
    assert client.get(QUERY, traceparent="nonsense").status_code == 200
    assert spans.get_finished_spans()[-1].parent is None


def test_an_unknown_path_gives_the_span_no_name_of_its_own(
    client: Client, spans: InMemorySpanExporter
) -> None:
    client.get("/no/such/thing")
    assert spans.get_finished_spans()[-1].name == "GET"


def test_without_a_tracer_nothing_is_even_imported() -> None:
    program = (
        "import sys, dovetail.rest.server.app; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_the_standard_variables_switch_it_on(environment: dict[str, str], on: bool) -> None:
    assert asked_for(environment) is on
