"""What answers do not tell, and what no caller can make them cost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from dovetail.engine import Snapshot
from dovetail.ledger import LedgerBusy
from dovetail.rest.placement.errors import without_tags
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client
from tests.rest.conftest import Make

REASON = 'connection to host "db.internal" failed for user "dovetail"'


class AwayKeeper(SnapshotKeeper):
    async def fresh(self) -> Snapshot:
        raise LedgerBusy(REASON)


@pytest.fixture
def away(serve: Make) -> Client:
    return serve(keeper=AwayKeeper.__new__(AwayKeeper))


@pytest.mark.parametrize(
    "path",
    ["/readyz", "/allocation_candidates?resources=VCPU:1", "/dovetail/v1/explain?resources=VCPU:1"],
)
def test_where_the_database_is_only_the_log_tells(away: Client, path: str) -> None:
    with capture_logs() as told:
        reply = away.get(path)
    assert reply.status_code == 503
    assert "the ledger cannot be used now" in reply.text.lower()
    assert "db.internal" not in reply.text
    assert any(entry.get("error") == REASON for entry in told)


@pytest.mark.parametrize("path", ["/livez-not", "/readyz/more", "/metrics", "/dovetail/v1/"])
def test_only_what_is_public_answers_without_a_token(client: Client, path: str) -> None:
    assert client.get(path, x_auth_token="").status_code == 401


@pytest.mark.parametrize("path", ["/", "/livez", "/readyz", "/dovetail/v1/openapi.json"])
def test_what_is_public(client: Client, path: str) -> None:
    assert client.get(path, x_auth_token="").status_code == 200


def test_a_stranger_cannot_make_an_error_take_long_to_word(client: Client) -> None:
    """Looking for the end of a tag from each of these would take an hour."""
    reply = client.get("/", x_auth_token="", version="<" * 2_000_000)
    assert reply.status_code == 400


@given(st.text(st.sampled_from("<>a "), max_size=30))
def test_tags_are_taken_out(text: str) -> None:
    assert without_tags(text) == re.sub("<[^>]*>", "", text)


def test_ids_that_others_gave_a_request_are_logged_but_not_at_any_length(client: Client) -> None:
    with capture_logs() as told:
        client.get("/", x_openstack_request_id="r" * 5000)
    (entry,) = (entry for entry in told if entry["event"] == "request")
    assert entry["global_request_id"] == "r" * 100
