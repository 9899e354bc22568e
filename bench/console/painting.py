"""What Chromium takes to show a fleet: the first paint, and an update from arrival to paint.

The page marks both (`dovetail:painted`, `dovetail:updated`); when an update arrives is seen by an
EventSource that notes it before the page hears of it.
"""

import statistics
from dataclasses import dataclass

from playwright.sync_api import Browser
from tests.support.browser import Browsing

from ..growth import Claims
from ..servers import Server

NOTE_ARRIVALS = """
window.arrivals = [];
window.EventSource = class extends EventSource {
  constructor(...given) {
    super(...given);
    this.addEventListener("change", () => window.arrivals.push(performance.now()));
  }
};
"""
LOADS = 5
UPDATES = 10
PAINTED = "performance.getEntriesByName('dovetail:painted').length"
UPDATED = "performance.getEntriesByName('dovetail:updated')"


@dataclass(frozen=True, slots=True)
class Painting:
    """Milliseconds: of a first paint since the navigation began, of an update's since it came."""

    first: list[float]
    updates: list[float]

    @property
    def first_ms(self) -> float:
        return statistics.median(self.first)

    @property
    def update_ms(self) -> float:
        return statistics.median(self.updates)


def measure(browser: Browser, server: Server, claims: Claims) -> Painting:
    address = f"{server.url}/console"
    first = [first_paint(browser, address) for _ in range(LOADS)]
    return Painting(first, update_paints(browser, address, claims))


def first_paint(browser: Browser, address: str) -> float:
    """In a profile of its own: nothing of the page is cached."""
    browsing = Browsing(browser)
    try:
        browsing.page.goto(address)
        browsing.await_that(f"{PAINTED} > 0")
        found: float = browsing.page.evaluate(
            "performance.getEntriesByName('dovetail:painted')[0].startTime"
        )
        return found
    finally:
        browsing.close()


def update_paints(browser: Browser, address: str, claims: Claims) -> list[float]:
    browsing = Browsing(browser)
    page = browsing.page
    page.add_init_script(NOTE_ARRIVALS)
    try:
        page.goto(address)
        browsing.await_that(f"{PAINTED} > 0")
        page.wait_for_timeout(1_000)
        taken: list[float] = []
        for _ in range(UPDATES):
            page.evaluate("performance.clearMarks('dovetail:updated'); window.arrivals = []")
            claims.claim()
            browsing.await_that(f"{UPDATED}.length > 0 && window.arrivals.length > 0")
            taken.append(page.evaluate(f"{UPDATED}.at(-1).startTime - window.arrivals.at(-1)"))
        return taken
    finally:
        browsing.close()
