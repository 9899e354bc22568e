"""How often a caller may ask."""

from __future__ import annotations

import msgspec
import pytest

from dovetail.rest.auth.rate_limit import RateLimiter, limiter_of
from dovetail.rest.server.settings import RateSettings
from tests.rest.auth.clock import Clock
from tests.rest.conftest import Make

LISTING = "/resource_providers"


def test_a_caller_may_ask_so_often_and_later_again(serve: Make) -> None:
    clock = Clock()
    client = serve("open", rate_limiter=RateLimiter(0.5, 3, clock=clock))
    assert [client.get(LISTING).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = client.get(LISTING)
    assert refused.headers["retry-after"] == "2"
    assert refused.json()["errors"][0]["title"] == "Too Many Requests"
    clock.advance(2)
    assert [client.get(LISTING).status_code for _ in range(2)] == [200, 429]
    clock.advance(1000)
    assert [client.get(LISTING).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_own_endpoints_tell_it_as_problem_details(serve: Make) -> None:
    client = serve("open", rate_limiter=RateLimiter(1, 1, clock=Clock()))
    client.get(LISTING)
    refused = client.call("POST", "/dovetail/v1/fleet", b"")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"


def test_callers_do_not_use_up_what_others_may_ask(serve: Make) -> None:
    client = serve("open", rate_limiter=RateLimiter(1, 1, clock=Clock()))
    for user in ("jo", "al"):
        found = [client.get(LISTING, x_auth_token=user).status_code for _ in range(2)]
        assert found == [200, 429]


def test_who_fails_to_get_in_is_limited_by_address(serve: Make) -> None:
    client = serve("open", rate_limiter=RateLimiter(1, 2, clock=Clock()))
    found = [client.get(LISTING, x_auth_token="").status_code for _ in range(3)]
    assert found == [401, 401, 429]


def test_health_is_never_limited(serve: Make) -> None:
    client = serve("open", rate_limiter=RateLimiter(1, 1, clock=Clock()))
    assert {client.get("/livez").status_code for _ in range(5)} == {200}


def test_only_so_many_callers_are_remembered() -> None:
    limiter = RateLimiter(1, 1, clock=Clock(), most=2)
    assert [limiter.wait(caller) for caller in ("a", "b", "a", "c", "a")] == [0, 0, 1, 0, 1]
    assert limiter.wait("b") == 0


@pytest.mark.parametrize(
    ("settings", "admitted"),
    [
        (RateSettings(limit="5/s"), 10),
        (RateSettings(limit="0.1/s"), 1),
        (RateSettings(limit="5/s", burst=3), 3),
    ],
)
def test_limits_are_made_from_settings(settings: RateSettings, admitted: int) -> None:
    limiter = limiter_of(settings)
    assert limiter is not None
    waits = [limiter.wait("jo") for _ in range(admitted + 1)]
    assert [bool(wait) for wait in waits] == [False] * admitted + [True]


@pytest.mark.parametrize("limit", ["0/s", "0.0/s", "00.00/s", "5", "5/m", "-1/s", "1./s"])
def test_limits_that_are_none(limit: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="limit"):
        msgspec.convert({"limit": limit}, RateSettings)


@pytest.mark.parametrize("limit", ["10/s", "0.01/s", "5.0/s"])
def test_limits_that_are(limit: str) -> None:
    assert limiter_of(msgspec.convert({"limit": limit}, RateSettings)) is not None


def test_without_a_limit_there_is_no_limiter() -> None:
    assert limiter_of(RateSettings()) is None
