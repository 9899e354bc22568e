"""Pictures of the console for the pages: `python -m tests.console.screenshots` takes them anew."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.console.lived_in import GROUP, HOST, WHOLE_HOST, lived_in
from tests.support.browser import Browsing, chromium
from tests.support.paths import ROOT

FOLDER = ROOT / "docs/console"
WINDOW = (1180, 700)
WIDE = (1480, 878)
COLOURS = 128
"""Of a picture: pages have few, and a small file is a quick page."""
WHY_NOT = f"/why?moves=1&query={quote(WHOLE_HOST)}"


def look_at_a_host(page: Page) -> None:
    page.locator("[role=application]").focus()
    page.keyboard.press("Home")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".host-card")).to_be_visible()


def wait_for_the_answer(page: Page) -> None:
    expect(page.locator(".answer-card")).to_be_visible()
    expect(page.locator(".remedies li.plan").first).to_be_visible()


def seen(text: str) -> Callable[[Page], None]:
    return lambda page: expect(page.get_by_role("main")).to_contain_text(text)


class Picture(NamedTuple):
    path: str
    prepare: Callable[[Page], None]
    """What is done before it is taken."""
    scheme: str = "light"
    size: tuple[int, int] = WINDOW


PICTURES = {
    "map": Picture("", look_at_a_host),
    "map-dark": Picture("?class=FPGA&colour=fragmentation", look_at_a_host, scheme="dark"),
    "why-not": Picture(WHY_NOT, wait_for_the_answer, size=WIDE),
    "host": Picture(f"/hosts/{HOST}", seen("FPGA")),
    "holders": Picture("/holders", seen("green")),
    "machines": Picture("/machines", seen("HeldForWindow")),
    "intent": Picture(f"/intents/{GROUP}", seen("c1")),
}


def take(browser: Browser, url: str, name: str, folder: Path) -> Path:
    path, prepare, scheme, (width, height) = PICTURES[name]
    window = {"width": width, "height": height}
    browsing = Browsing(browser, viewport=window, color_scheme=scheme)
    try:
        browsing.page.goto(f"{url}/console{path}")
        prepare(browsing.page)
        browsing.page.mouse.move(0, 0)
        # What has come is drawn in the next frames.
        browsing.page.wait_for_timeout(400)
        taken = folder / f"{name}.png"
        browsing.page.screenshot(path=taken)
        assert browsing.complaints() == []
    finally:
        browsing.close()
    with Image.open(taken) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(taken, optimize=True)
    return taken


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        lived_in(Path(folder)) as url,
        chromium() as browser,
    ):
        for name in PICTURES:
            taken = take(browser, url, name, FOLDER)
            print(f"{taken.relative_to(ROOT)}: {taken.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
