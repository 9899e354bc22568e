"""Addresses to listen on: which can be bound, which only this machine reaches."""

from __future__ import annotations

import socket

import pytest

from dovetail.config.listening import bound_socket, is_loopback


def test_a_port_of_zero_is_any_free_one() -> None:
    with bound_socket("127.0.0.1", 0) as bound:
        assert bound.family is socket.AF_INET
        assert bound.getsockname()[1] > 0


def test_an_address_that_is_taken_is_refused_and_nothing_stays_open() -> None:
    with bound_socket("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            bound_socket("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("dovetail.example", False),
        ("", False),
    ],
)
def test_who_can_reach_an_address(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
