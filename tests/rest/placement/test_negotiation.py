"""What a client speaks: versions and media types."""

from __future__ import annotations

import pytest

from dovetail.rest.query import versions
from dovetail.rest.server import headers as media
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.validation import LONG_BODY
from tests.rest.conftest import Make


@pytest.mark.parametrize(
    ("accept", "readable"),
    [
        ("", True),
        ("application/json", True),
        ("text/html, application/*;q=0.1", True),
        ("*/*", True),
        ("text/html", False),
        ("application/json;q=0", False),
        ("application/json;q=0, */*", False),
        ("application/json, */*;q=0", True),
        ("Application/JSON; q=0.5", True),
    ],
)
def test_who_can_read_json(accept: str, readable: bool) -> None:
    assert media.accepts_json(accept) is readable


@pytest.mark.parametrize(
    ("header", "version"),
    [(None, 0), ("placement latest", 39), ("compute 2.1, placement 1.20", 20), ("compute 2.1", 0)],
)
def test_versions_asked_for(header: str | None, version: int) -> None:
    assert versions.MICROVERSIONS.negotiate(header) == version


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("placement one", 400),
        ("placement 1", 400),
        ("placement 1.2.3", 400),
        ("placement 1.40", 406),
        ("placement 2.0", 406),
        ("placement 1.-1", 406),
    ],
)
def test_versions_there_are_not(header: str, status: int) -> None:
    with pytest.raises(HttpError) as refused:
        versions.MICROVERSIONS.negotiate(header)
    assert refused.value.status == status


def test_a_long_body_is_refused_in_few_words(serve: Make) -> None:
    wrong: dict[str, dict[str, str]] = {f"not-a-consumer-{n}": {} for n in range(LONG_BODY // 10)}
    reply = serve().call("POST", "/allocations", wrong)
    assert reply.status_code == 400
    assert "JSON does not validate" in reply.json()["errors"][0]["detail"]
    assert len(reply.content) < 2000
