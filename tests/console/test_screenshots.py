"""Pictures of the pages can be taken anew, show something, and stay small."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.console.lived_in import lived_in
from tests.console.screenshots import FOLDER, PICTURES, take
from tests.support.paths import ROOT

MOST_BYTES = 100_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with lived_in(tmp_path_factory.mktemp("demo")) as started:
        yield started


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_something(url: str, chromium: Browser, name: str, tmp_path: Path) -> None:
    taken = take(chromium, url, name, tmp_path)
    with Image.open(taken) as picture:
        assert picture.size == PICTURES[name].size
        pixels = picture.width * picture.height
        counted = picture.convert("L").getcolors()
    assert counted is not None
    most = max(count for count, _ in counted)
    assert len(counted) > 16
    assert most < 0.97 * pixels, "it is not blank"


def test_every_picture_is_on_a_page_and_small() -> None:
    pages = [ROOT / "README.md", ROOT / "docs/console.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES)
    assert not [name for name in PICTURES if f"console/{name}.png" not in text]
    assert not [path for path in FOLDER.glob("*.png") if path.stat().st_size > MOST_BYTES]
