"""Names that want to be something else: shown as the text they are, and the page stays whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dovetail.ledger import opened
from dovetail.ledger.machines import queue
from dovetail.rest.console.markup import element, isolated, join, sentence
from tests.console.conftest import Api, Open, fleet_server
from tests.console.worlds import HOSTILE, hostile_documents
from tests.service.machine_world import line, queued
from tests.support.browser import text_of


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api]]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with fleet_server(folder, hostile_documents()) as started:
        with opened(f"sqlite:///{folder / 'ledger.db'}") as ledger:
            guests = [queued(each, each, each, each) for each in HOSTILE]
            ledger.write(lambda tx: queue.assign(tx, "", {HOSTILE[0]: line(*guests)})).result()
        yield started


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all(
        "(all) => all.map((each) => each.textContent)"
    )
    return found


def assert_whole(page: Page) -> None:
    """Nothing of a name was taken for something else, and nothing is wider than the window."""
    assert page.title() != "pwned"
    assert page.evaluate("document.querySelectorAll('main img, main script, main b').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("with_script", [True, False])
def test_on_the_map(world: tuple[str, Api], browse: Open, with_script: bool) -> None:
    url, _ = world
    page = browse(f"{url}/console?as=table", with_script=with_script).page
    cells = "main tbody th bdi"
    expect(page.locator(cells).first).to_be_visible()
    assert set(HOSTILE) <= set(texts(page, cells))
    assert_whole(page)


def test_drawn(world: tuple[str, Api], browse: Open) -> None:
    url, _ = world
    browsing = browse(f"{url}/console")
    browsing.await_that("performance.getEntriesByName('dovetail:painted').length > 0")
    page = browsing.page
    page.locator("[role=application]").focus()
    page.keyboard.press("Home")
    for _ in HOSTILE:
        assert_whole(page)
        page.keyboard.press("ArrowRight")
    spoken = page.locator(".map [aria-live]").first
    expect(spoken).not_to_be_empty()


@pytest.mark.parametrize("with_script", [True, False])
def test_of_hosts_and_holders(world: tuple[str, Api], browse: Open, with_script: bool) -> None:
    url, api = world
    for each in api.get("/dovetail/v1/consumers")["consumers"]:
        browsing = browse(f"{url}/console/holders/{each['uuid']}", with_script=with_script)
        page = browsing.page
        names = "[...document.querySelectorAll('main bdi')].map((each) => each.textContent)"
        browsing.await_that(f"{names}.includes({json.dumps(each['project'])})")
        assert_whole(page)
        page.goto(f"{url}/console/hosts/{each['holds'][0]['host_uuid']}")
        expect(page.get_by_role("main").get_by_role("heading", level=1)).to_contain_text(
            each["holds"][0]["host"]
        )
        assert_whole(page)


@pytest.mark.parametrize("path", ["/why?query=resources%3DVCPU%3A9", "/holders", "/decisions"])
@pytest.mark.parametrize("with_script", [True, False])
def test_in_lists(world: tuple[str, Api], browse: Open, path: str, with_script: bool) -> None:
    url, _ = world
    browsing = browse(f"{url}/console{path}", with_script=with_script)
    expect(browsing.page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    browsing.page.wait_for_timeout(500)
    assert_whole(browsing.page)
    assert browsing.barriers() == []


IN_ORDER = """() => {
  const text = document.querySelector("p").lastChild;
  const left = (at) => {
    const one = document.createRange();
    one.setStart(text, at);
    one.setEnd(text, at + 1);
    return one.getBoundingClientRect().left;
  };
  return left(text.data.indexOf("12")) < left(text.data.indexOf("48"));
}"""
"""Whether what comes after a name is written from left to right."""


@pytest.mark.parametrize("name", HOSTILE)
def test_what_comes_after_a_name_is_written_in_its_own_direction(browse: Open, name: str) -> None:
    page = browse("about:blank", with_script=False).page
    for shown in (sentence(f"{name} has 12 of 48", [name]), join((isolated(name), " 12 of 48"))):
        page.set_content(element("p", shown))
        assert page.evaluate(IN_ORDER)


@pytest.mark.parametrize("with_script", [True, False])
def test_in_queues_of_machines(world: tuple[str, Api], browse: Open, with_script: bool) -> None:
    url, _ = world
    browsing = browse(f"{url}/console/machines", with_script=with_script)
    page = browsing.page
    why = "main tbody tr td:last-child bdi"
    expect(page.locator(why)).to_have_count(len(HOSTILE))
    assert texts(page, why) == list(HOSTILE)
    assert texts(page, "main h2 bdi") == [HOSTILE[0]]
    assert_whole(page)
    assert browsing.barriers() == []


def test_in_a_text_browser(world: tuple[str, Api]) -> None:
    url, _ = world
    text = text_of(f"{url}/console?as=table", columns=300)
    assert "<script>document.title='pwned'</script>" in text
