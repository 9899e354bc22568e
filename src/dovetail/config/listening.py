"""Addresses to listen on: binding a TCP socket, and whether other machines can reach it.

`dovetail serve` and the HTTP servers of `dovetail scheduler` bind before they start, so that an
address that cannot be used is told before anything runs.
"""

from __future__ import annotations

import ipaddress
import socket


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket bound to the address, IPv6 if it has colons. Raises OSError."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
