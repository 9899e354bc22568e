"""What the tour of the node agent's page shows is what its commands print."""

from __future__ import annotations

import re

from tests.node import tour

VARYING = re.compile(r"\d{4}-\d\d-\d\dT[0-9:]+Z")


async def test_everything_shown_is_what_is_printed() -> None:
    page, played = tour.PAGE.read_text(encoding="utf-8"), await tour.played()
    assert VARYING.sub("…", played) == VARYING.sub("…", page)
    assert page.count("    $ dovetail agent ") >= 6
