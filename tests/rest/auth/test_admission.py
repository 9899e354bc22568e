"""Who may knock how often: strangers by address, callers by name."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from dovetail.rest.auth.admission import site_of
from dovetail.rest.auth.identity import BadToken, Identity, token_of
from dovetail.rest.auth.rate_limit import RateLimiter
from tests.rest.auth.clock import Clock
from tests.rest.client import Client
from tests.rest.conftest import Make

LISTING = "/resource_providers"


class Guests:
    """Knows some tokens, and counts how often it was asked."""

    challenges = ("X",)

    def __init__(self, *tokens: str) -> None:
        self.tokens, self.asked = set(tokens), 0

    async def identify(self, headers: Headers) -> Identity | None:
        self.asked += 1
        token = token_of(headers)
        if token not in self.tokens:
            raise BadToken("never seen")
        return Identity(token or "", None, frozenset({"admin"}))

    async def close(self) -> None:
        pass


def status(client: Client, token: str) -> int:
    return client.get(LISTING, x_auth_token=token).status_code


def guarded(serve: Make, guests: Guests, clock: Clock, burst: int) -> Client:
    return serve(authenticator=guests, rate_limiter=RateLimiter(1, burst, clock=clock))


def test_strangers_that_failed_too_often_are_not_even_looked_at(serve: Make) -> None:
    guests, clock = Guests("jo"), Clock()
    client = guarded(serve, guests, clock, burst=2)
    assert [status(client, f"guess{n}") for n in range(5)] == [401, 401, 429, 429, 429]
    assert guests.asked == 2
    assert status(client, "jo") == 429
    clock.advance(1)
    assert status(client, "jo") == 200


def test_who_was_let_in_before_does_not_pay_for_strangers(serve: Make) -> None:
    guests = Guests("jo")
    client = guarded(serve, guests, Clock(), burst=3)
    assert status(client, "jo") == 200
    assert [status(client, "guess") for _ in range(4)] == [401, 401, 401, 429]
    assert status(client, "jo") == 200


def test_strangers_that_turn_out_good_do_not_pay(serve: Make) -> None:
    names = [f"user{n}" for n in range(5)]
    client = guarded(serve, Guests(*names), Clock(), burst=1)
    assert [status(client, name) for name in names] == [200] * 5


def test_a_caller_whose_token_was_revoked_is_a_stranger_again(serve: Make) -> None:
    guests = Guests("jo")
    client = guarded(serve, guests, Clock(), burst=2)
    assert status(client, "jo") == 200
    guests.tokens.clear()
    assert [status(client, "jo") for _ in range(4)] == [401, 401, 401, 429]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        (None, "", True),
        ("unix", "testserver", False),
    ],
)
def test_ipv6_addresses_of_one_site_count_as_one(
    one: str | None, other: str | None, same: bool
) -> None:
    assert (site_of(one) == site_of(other)) is same
