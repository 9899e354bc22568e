"""Addresses to listen on: read, bound to a TCP socket, and whether other machines can reach them.

`dovetail serve` and the HTTP servers of `dovetail scheduler` and `dovetail operator` bind before
they start, so that an address that cannot be used is told before anything runs.
"""

from __future__ import annotations

import ipaddress
import socket


def host_and_port(written: str) -> tuple[str, int] | None:
    """Of `HOST:PORT`, or `[ADDRESS]:PORT`; None if it is neither."""
    host, colon, port = written.rpartition(":")
    if not (host and colon and port.isascii() and port.isdecimal() and int(port) <= 65535):
        return None
    return host.strip("[]"), int(port)


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
