"""Whether a runtime brings in CDI devices that an NRI plugin asks for, by its version. Pure.

Older ones take the request and leave the devices out without a word.
"""

from __future__ import annotations

import re

NUMBERS = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")

FIRST, FIRST_OF_1_7 = (2, 1, 0), (1, 7, 30)
"""Versions of containerd. None of 2.0 does it."""


def why_no_cdi(runtime: str, version: str) -> str | None:
    """Why not, in words; None if it does."""
    told = f"{runtime or 'the runtime'} {version}".strip()
    found = NUMBERS.match(version)
    if runtime != "containerd" or not found:
        return f"{told} is not known to bring in CDI devices by NRI"
    major, minor, patch = (int(each or 0) for each in found.groups())
    numbers = major, minor, patch
    if numbers >= FIRST or (numbers[:2] == FIRST_OF_1_7[:2] and numbers >= FIRST_OF_1_7):
        return None
    return (
        f"{told} leaves out CDI devices that are asked for by NRI: 1.7.30, 2.1 and later do not; "
        "with the back end proxy older ones bring them in, too"
    )
