"""Microversions of OpenStack: a header names which of Placement's 40 dialects a client speaks.

Both doors negotiate by it: the language of candidate queries is what they have in common.
"""

from __future__ import annotations

from functools import lru_cache

from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Version

SERVICE = "placement"
HEADER = "openstack-api-version"
OLDEST: Version = 0
NEWEST: Version = 39
DATED_SINCE: Version = 15
"""The first that has Cache-Control and Last-Modified in answers."""


class Microversions:
    """The minor number of 1.0 to 1.39."""

    header: str | None = HEADER
    latest: str = f"{SERVICE} latest"
    dated_since: Version = DATED_SINCE

    def negotiate(self, header: str | None) -> Version:
        """Without a word about Placement it is the first."""
        return version_asked(header)

    def answer(self, version: Version) -> str:
        return f"{SERVICE} {self.text(version)}"

    def text(self, version: Version) -> str:
        return shown(version)


MICROVERSIONS = Microversions()


def shown(version: Version) -> str:
    return f"1.{version}"


# Few: clients of a server speak few versions, and a stranger's header may have kilobytes.
@lru_cache(32)
def version_asked(header: str | None) -> Version:
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
