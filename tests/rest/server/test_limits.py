"""Limits on what one request may cost."""

from __future__ import annotations

import pytest

from dovetail.rest.server.settings import RequestLimits
from dovetail.service import asking as candidates
from tests.rest.conftest import Make
from tests.rest.fleets import NDJSON, load, tree


def test_a_body_that_is_too_large(serve: Make) -> None:
    client = serve(limits=RequestLimits(body_bytes=100))
    reply = client.call("POST", "/resource_providers", {"name": "x" * 150})
    assert reply.status_code == 413
    assert "100 bytes" in reply.json()["errors"][0]["detail"]


def test_a_fleet_that_is_too_large(serve: Make) -> None:
    client = serve(limits=RequestLimits(fleet_bytes=10))
    reply = client.call("POST", "/dovetail/v1/fleet", b'{"name": "some host"}', content_type=NDJSON)
    assert reply.status_code == 413
    assert reply.headers["content-type"] == "application/problem+json"


def test_a_query_that_is_too_long(serve: Make) -> None:
    client = serve(limits=RequestLimits(query_bytes=50))
    assert client.get(f"/resource_providers?name={'x' * 60}").status_code == 414


def test_an_answer_that_is_too_large(serve: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time alone does not bound memory: a second of answers is a hundred megabytes."""
    monkeypatch.setattr(candidates, "MOST_CANDIDATES", 500)
    client = serve()
    load(client, tree("host", *(tree(f"gpu{n}", inventories={"VGPU": 8}) for n in range(32))))
    query = "/allocation_candidates?resources1=VGPU:1&resources2=VGPU:1"
    reply = client.get(query)
    assert reply.status_code == 400
    assert "more than 500 allocation candidates" in reply.json()["errors"][0]["detail"]
    assert len(client.get(f"{query}&limit=400").json()["allocation_requests"]) == 400


def test_an_answer_that_takes_too_long(serve: Make) -> None:
    """Eight groups on sixteen equal devices have half a billion answers."""
    client = serve(limits=RequestLimits(search_seconds=0.1))
    devices = [tree(f"gpu{n}", inventories={"VGPU": 8}) for n in range(16)]
    load(client, tree("host", *devices))
    query = "&".join(f"resources{n}=VGPU:1" for n in range(1, 9))
    reply = client.get(f"/allocation_candidates?{query}&group_policy=isolate")
    assert reply.status_code == 400
    assert "ask for fewer with `limit`" in reply.json()["errors"][0]["detail"]
    limited = client.get(f"/allocation_candidates?{query}&group_policy=isolate&limit=5")
    assert len(limited.json()["allocation_requests"]) == 5
