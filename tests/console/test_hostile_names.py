"""Names that want to be something else: shown as the text they are, and the page stays whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from dovetail.ledger import opened
from dovetail.ledger.machines import queue
from dovetail.rest.console.markup import element, isolated, join, sentence
from tests.console.conftest import Api, Open, fleet_server
from tests.console.hands import FIRST_CELL
from tests.console.worlds import HOSTILE, hostile_documents
from tests.service.machine_world import line, queued
from tests.support import databases
from tests.support.browser import text_of

TOO_MUCH = "/why?query=resources%3DVCPU%3A9"
WAITING = " waits for 12 of 48 units"
READ_FROM_LEFT = """(sentence, part) => {
  const walker = document.createTreeWalker(sentence, NodeFilter.SHOW_TEXT);
  const letters = [];
  while (walker.nextNode())
    for (let at = 0; at < walker.currentNode.length; at++) letters.push([walker.currentNode, at]);
  const start = letters.map(([node, at]) => node.data[at]).join("").lastIndexOf(part);
  if (start < 0) return false;
  const places = letters.slice(start, start + part.length).map(([node, at]) => {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getClientRects()[0];
  });
  const shown = places.filter((each) => each && each.width > 0);
  return shown.length > 3 && shown.every((each, at) =>
    at === 0 || each.top > shown[at - 1].top + 4 || each.left > shown[at - 1].left);
}"""
"""Whether letters of a part of a sentence stand in the order in which they are written."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api]]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    with fleet_server(folder, hostile_documents()) as started:
        with opened(f"sqlite:///{folder / 'ledger.db'}") as ledger:
            guests = [queued(each, each, each, f"{each}{WAITING}") for each in HOSTILE]
            ledger.write(lambda tx: queue.assign(tx, "", {HOSTILE[0]: line(*guests)})).result()
        yield started


def texts(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all(
        "(all) => all.map((each) => each.textContent)"
    )
    return found


def assert_in_order(sentence: Locator, part: str) -> None:
    expect(sentence).to_contain_text(part.strip())
    assert sentence.evaluate(READ_FROM_LEFT, part), sentence.inner_html()


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


def test_pointed_at(world: tuple[str, Api], browse: Open) -> None:
    """What stands below the map about a host: numbers after its name are not turned around."""
    url, api = world
    page = browse(f"{url}/console").page
    for uuid in api.get("/dovetail/v1/map")["hosts"]["uuid"]:
        page.mouse.move(0, 0)
        page.get_by_label("Search").fill(uuid)
        expect(page.locator(".headline")).to_contain_text("1 host of ")
        page.locator(".map canvas").hover(position=FIRST_CELL)
        assert_in_order(page.locator(".map-hover"), ", 5 of 8 VCPU free")


def test_in_answers(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    told = api.get("/dovetail/v1/map")["hosts"]
    page = browse(f"{url}/console{TOO_MUCH}").page
    for uuid, name in zip(told["uuid"], told["name"], strict=True):
        page.goto(f"{url}/console{TOO_MUCH}&host={uuid}")
        finding = page.locator(".here .findings li")
        assert_in_order(finding, ": wants 9, free 5 of 8, 4 short")
        assert name in texts(page, ".here .findings li")[0]
        assert_whole(page)
    for place in page.locator(".nearest .findings li").all():
        assert_in_order(place, ": wants 9, free 5 of 8, 4 short")
    remedies = page.get_by_role("region", name="What would help")
    expect(remedies.get_by_text(" fits if you add ").first).to_be_visible()
    for told in remedies.get_by_text(" fits if you add ").all():
        assert_in_order(told, " fits if you add 4 VCPU to ")
    assert_in_order(page.locator(".answer-card p"), "room for VCPU:9")


def test_in_audits(tmp_path: Path, browse: Open) -> None:
    with fleet_server(tmp_path, hostile_documents()) as (url, _):
        with databases.connected(f"{databases.SQLITE}{tmp_path / 'ledger.db'}") as connection:
            connection.execute("UPDATE inventories SET used = used + 10")
        page = browse(f"{url}/console/audit").page
        faults = page.locator("main tbody tr", has_text="VCPU of")
        expect(faults.first).to_be_visible()
        assert faults.count() >= len(HOSTILE)
        for fault in faults.all():
            kind = fault.locator("code").inner_text()
            said = (
                ": 13 is recorded as used" if kind == "miscount" else ": 13 is used of a capacity"
            )
            assert_in_order(fault, said)
        assert_whole(page)


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


@pytest.mark.parametrize("path", [TOO_MUCH, "/holders", "/decisions"])
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
    why = "main tbody tr td:last-child > *"
    expect(page.locator(why)).to_have_count(len(HOSTILE))
    assert texts(page, why) == [f"{each}{WAITING}" for each in HOSTILE]
    assert texts(page, "main h2 bdi") == [HOSTILE[0]]
    if with_script:
        for sentence in page.locator(why).all():
            assert_in_order(sentence, WAITING)
    assert_whole(page)
    assert browsing.barriers() == []


def test_in_a_text_browser(world: tuple[str, Api]) -> None:
    url, _ = world
    text = text_of(f"{url}/console?as=table", columns=300)
    assert "<script>document.title='pwned'</script>" in text
