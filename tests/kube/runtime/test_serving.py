"""Serving: questions in JSON, answered or refused; health and metrics."""

from __future__ import annotations

import asyncio

import httpx2

from dovetail.kube.runtime.serving import Application, NotUnderstood, json_service, monitoring

LARGEST = 16


def called(app: Application, method: str, path: str, content: bytes = b"") -> tuple[int, str]:
    async def call() -> tuple[int, str]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
            answer = await client.request(method, path, content=content)
            return answer.status_code, answer.text

    return asyncio.run(call())


async def echo(body: bytes) -> bytes:
    if body == b"?":
        raise NotUnderstood("what?")
    return body


def test_a_question_is_answered_refused_or_too_large() -> None:
    app = json_service({"/echo": echo}, LARGEST)
    assert called(app, "POST", "/echo", b"{}") == (200, "{}")
    assert called(app, "POST", "/echo", b"?") == (400, "what?")
    assert called(app, "POST", "/echo", b"x" * LARGEST) == (200, "x" * LARGEST)
    assert called(app, "POST", "/echo", b"x" * (LARGEST + 1)) == (413, "more than 16 bytes")
    assert called(app, "GET", "/echo")[0] == 405
    assert called(app, "POST", "/other")[0] == 404


def test_a_daemon_is_healthy_before_it_is_ready_and_shows_its_metrics() -> None:
    is_ready = False
    app = monitoring(lambda: is_ready)
    assert called(app, "GET", "/healthz") == (200, "ok")
    assert called(app, "GET", "/readyz") == (503, "not yet")
    is_ready = True
    assert called(app, "GET", "/readyz") == (200, "ok")
    status, text = called(app, "GET", "/metrics")
    assert status == 200
    assert "process_cpu_seconds_total" in text
