"""Every view is a page without JavaScript: read by a text browser, and by those who need aids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Open
from tests.console.lived_in import GROUP, HOLDER, HOST, lived_in
from tests.support.browser import text_of

IMPOSSIBLE = "/why?query=resources_A%3DVCPU%3A60%26resources_B%3DVCPU%3A61"
READ = {
    "": ("VCPU", "rack1-host1", "rack6-host6", "120"),
    "?group=aggregate&class=FPGA&q=rack2": ("rack2-host1", "FPGA"),
    "/why": ("Explain",),
    IMPOSSIBLE: ("never", "room for VCPU:61 (group _B)", "becomes 60"),
    f"{IMPOSSIBLE}&host={HOST}": ("rack1-host1_numa1", "What it lacks"),
    "/why?query=resources%3DVCPU%3A1%3A1": ("resources",),
    f"/hosts/{HOST}": ("rack1-host1_numa0_fpga0", HOLDER, "CUSTOM_FPGA_REGION_GZIP"),
    "/holders": ("INSTANCE", "green", "rack6-host5_numa0"),
    "/holders?project=blue": ("blue",),
    f"/holders/{HOLDER}": ("rack1-host1_numa0", "VCPU:4"),
    "/decisions": ("claimed", "rack1-host1_numa0"),
    "/audit": ("Nothing is wrong",),
    "/classes": ("large-gpu",),
    "/machines": ("large", "team", "trainer", "HeldForWindow", "the window nightly"),
    "/intents": ("my-dig1", "my-capp1"),
    f"/intents/{GROUP}": ("p1+c1", "largest free 3"),
}
"""What a reader finds on the page at each address."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with lived_in(tmp_path_factory.mktemp("demo")) as started:
        yield started


@pytest.mark.parametrize("path", READ)
def test_a_text_browser_reads_it(url: str, path: str) -> None:
    text = text_of(f"{url}/console{path}")
    assert not [each for each in READ[path] if each not in text], text
    assert "Why / why not" in text, "the navigation is on every page"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", READ)
def test_nobody_is_kept_out(url: str, browse: Open, path: str, scheme: str) -> None:
    browsing = browse(f"{url}/console{path}", with_script=False, color_scheme=scheme)
    if "1%3A1" in path:
        browsing.forget()
    assert browsing.barriers() == []


def test_a_request_is_asked_about_without_a_script(url: str, browse: Open) -> None:
    page = browse(f"{url}/console", with_script=False).page
    page.get_by_role("link", name="Why / why not").click()
    page.get_by_label("Request").fill("resources=VCPU:61")
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("main")).to_contain_text("room for VCPU:61")
    page.get_by_role("link", name="Holders").click()
    page.get_by_label("Project").fill("green")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("main")).not_to_contain_text("blue")
