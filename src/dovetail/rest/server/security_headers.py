"""Headers that keep answers from being misread by browsers or kept by caches."""

from __future__ import annotations

from collections.abc import MutableMapping

ALWAYS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


def protect(headers: MutableMapping[str, str], *, own: bool) -> None:
    """Add what is missing. Placement's answers say by themselves how long they may be kept."""
    for name, value in ALWAYS.items():
        headers.setdefault(name, value)
    if own:
        headers.setdefault("cache-control", "no-store")
