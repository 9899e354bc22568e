"""Microversions: which of Placement's 40 dialects a client speaks."""

from __future__ import annotations

from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Version

SERVICE = "placement"
HEADER = "openstack-api-version"
OLDEST: Version = 0
NEWEST: Version = 39


def shown(version: Version) -> str:
    return f"1.{version}"


def asked(header: str | None) -> Version:
    """The version a client asks for; without a word about Placement it is the first."""
    wanted = None
    for part in (header or "").split(","):
        words = part.split()
        if len(words) == 2 and words[0].lower() == SERVICE:
            wanted = words[1].lower()
    if wanted is None:
        return OLDEST
    if wanted == "latest":
        return NEWEST
    try:
        major, minor = (int(number) for number in wanted.split("."))
    except ValueError as error:
        raise bad_request(f"Invalid microversion: invalid version string: {wanted}") from error
    if major != 1 or not OLDEST <= minor <= NEWEST:
        raise HttpError(
            406,
            f"Invalid microversion: Unacceptable version header: {wanted}",
            extra={"max_version": shown(NEWEST), "min_version": shown(OLDEST)},
        )
    return minor
