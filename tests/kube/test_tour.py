"""What the tour of the resource classes' page shows is what its commands print."""

from __future__ import annotations

import re

from tests.kube import tour
from tests.kube.conftest import needs_kubernetes

VARYING = re.compile(r"\b\d+(?:s|m\d*s?)\b|(?<=hash\":\")[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}")
"""Ages, hashes and uids."""


def test_everything_shown_is_what_is_printed() -> None:
    needs_kubernetes()
    page, played = tour.PAGE.read_text(encoding="utf-8"), tour.played()
    assert VARYING.sub("…", played) == VARYING.sub("…", page)
    assert page.count("    $ kubectl ") >= 8
