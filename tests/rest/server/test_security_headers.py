"""Headers against misreading and keeping of answers."""

from __future__ import annotations

import pytest

from dovetail.rest.server.headers import ALWAYS
from tests.rest.client import Client


@pytest.mark.parametrize("path", ["/", "/livez", "/resource_providers", "/nowhere", "/dovetail/x"])
def test_every_answer_has_them(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert {name: headers[name] for name in ALWAYS} == ALWAYS


def test_own_answers_are_not_kept(client: Client) -> None:
    assert client.get("/dovetail/v1/fleet", version="1.0").headers["cache-control"] == "no-store"
    assert client.get("/dovetail/nothing").headers["cache-control"] == "no-store"


def test_what_placement_says_about_caches_stays(client: Client) -> None:
    assert "cache-control" not in client.get("/resource_providers", version="1.14").headers
    newer = client.get("/resource_providers", version="1.15")
    assert newer.headers["cache-control"] == "no-cache"
