"""Times as answers have them."""

from __future__ import annotations

from datetime import UTC, datetime


def shown_time(seconds: int | None) -> str | None:
    """Unix seconds in RFC 3339."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
