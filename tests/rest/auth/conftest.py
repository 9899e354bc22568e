"""An issuer and a Keystone of our own, and the clock they share with the server under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rest.auth.clock import Clock
from tests.rest.auth.issuer import Issuer
from tests.rest.auth.keystone_server import KeystoneServer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Iterator[Issuer]:
    started = Issuer(clock)
    yield started
    started.may_answer.set()
    started.server.stop()


@pytest.fixture
def keystone_server(clock: Clock) -> Iterator[KeystoneServer]:
    started = KeystoneServer(clock)
    yield started
    started.may_answer.set()
    started.server.stop()
