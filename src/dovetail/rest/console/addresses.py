"""Addresses of the console: where it begins, and which ones are its own."""

from __future__ import annotations

import re

PREFIX = "/console"
PASSAGE = "/api"
LOCAL = re.compile(rf"{PREFIX}([/?][!-\[\]-~]*)?")
"""Addresses of the console, without backslashes, which browsers take for slashes."""


def local_address(asked: str | None) -> str:
    """Where to go on: a page of the console, whatever was asked for."""
    return asked if asked is not None and LOCAL.fullmatch(asked) else PREFIX
