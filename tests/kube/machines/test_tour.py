"""The pages of machines, played on demo clusters: everything that they show is what is printed.

Where they are not up to date: `python -m tests.kube.machines.tour`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube.conftest import needs_kubernetes
from tests.kube.machines.tour import TOURS, page_of
from tests.support.kube.tour import played, without_varying


@pytest.mark.parametrize("name", TOURS)
def test_everything_a_page_shows_is_what_is_printed(name: str, tmp_path: Path) -> None:
    needs_kubernetes()
    page = page_of(name)
    text = page.read_text(encoding="utf-8")
    with TOURS[name](tmp_path) as demo:
        assert without_varying(played(page, demo)) == without_varying(text)
    assert text.count("    $ kubectl ") >= 8
