"""Debian's browsers for tests and benchmarks: Chromium, driven by Playwright, and a text browser.

A page of `Browsing` keeps whatever went wrong in it: errors of scripts, answers that say no, and
violations of the content security policy. `complaints` has all of it, for tests to find empty.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.support import debian
from tests.support.paths import ROOT

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb")
"""Root has no sandbox, and containers have neither a graphics card nor much shared memory."""
AXE = ROOT / "console/node_modules/axe-core/axe.min.js"
WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
SCRIPT = "text/javascript"
PATIENCE_MS = 15_000
"""How long a page is waited for; what is waited for longer is not coming."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. Tests without it are left out, or fail in CI."""
    debian.needs("chromium", "fonts-dejavu-core")
    # Expectations have a bound of their own, which is a third of it, and does for an idle machine.
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Browsing:
    """One page in a profile of its own, and what it complained about so far."""

    def __init__(self, browser: Browser, *, with_script: bool = True, **settings: Any) -> None:
        viewport = {"width": 1280, "height": 800}
        self.context = browser.new_context(**({"viewport": viewport} | settings))
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(WATCH_POLICY)
        if not with_script:
            # Its scripts are empty. A browser without any could not run those of axe, either.
            self.context.route("**/*.js", lambda route: route.fulfill(body="", content_type=SCRIPT))
        self.page: Page = self.context.new_page()
        self._complaints: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self._complaints.append(f"script: {error}"))
        self.page.on("response", self._on_response)
        self.page.on("requestfailed", self._on_failure)

    def complaints(self) -> list[str]:
        """All of them; empty on a page that is as it should be."""
        violations: list[str] = self.page.evaluate("window.violations ?? []")
        return [*self._complaints, *violations]

    def forget(self) -> None:
        """What a test provoked is no complaint."""
        self._complaints.clear()

    def await_that(self, expression: str) -> None:
        """Until it is true in the page. Playwright's own way would be evaluating text in it."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"never came true: {expression}"
            self.page.wait_for_timeout(20)

    def barriers(self) -> list[str]:
        """What axe-core finds that keeps somebody from using the page, by rule and element."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = self.page.evaluate("axe.run().then((it) => it.violations)")
        return [
            f"{rule['id']}: {rule['help']}: {node['html'][:200]}: {node['failureSummary']}"
            for rule in found
            for node in rule["nodes"]
        ]

    def close(self) -> None:
        self.context.close()

    def _on_console(self, message: ConsoleMessage) -> None:
        # What Chromium says of a refused answer is said by that, too.
        if message.type in {"error", "warning"} and "Failed to load resource" not in message.text:
            self._complaints.append(f"console: {message.text}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self._complaints.append(f"{response.status}: {response.request.method} {response.url}")

    def _on_failure(self, request: Request) -> None:
        # Streams end with the page that listens to them.
        if request.failure != "net::ERR_ABORTED":
            self._complaints.append(f"{request.failure}: {request.url}")


def text_of(url: str, columns: int = 160) -> str:
    """The page as a text browser shows it: no script, no colours, no pictures."""
    debian.needs("w3m")
    command = ["w3m", "-dump", "-cols", str(columns), "-o", "use_cookie=0", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout
