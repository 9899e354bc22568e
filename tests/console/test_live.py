"""The map while the fleet moves: the page is what the API says, whatever came in which order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import Api, Open, fleet_server
from tests.console.test_same_as_rest import Said, cells, number
from tests.console.worlds import Document
from tests.support.browser import PATIENCE_MS

MAP = "**/dovetail/v1/map"


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api]]:
    hosts = [host(f"rack{n // 4}-host{n}") for n in range(8)]
    with fleet_server(tmp_path_factory.mktemp("world"), iter(hosts)) as started:
        yield started


def host(name: str) -> Document:
    return {"name": name, "inventories": {"VCPU": 16}}


def claim(api: Api, amount: int, name: str) -> str:
    [one] = api.get("/resource_providers", name=name)["resource_providers"]
    query = f"resources=VCPU:{amount}&in_tree={one['uuid']}"
    consumer: str = api.post("/dovetail/v1/claims", {"query": query})["consumer"]
    return consumer


def remove(api: Api, name: str) -> None:
    [one] = api.get("/resource_providers", name=name)["resource_providers"]
    api.delete(f"/resource_providers/{one['uuid']}")


def expect_as_said(page: Page, api: Api) -> None:
    """In the end the table has every host, with what is free of each. Until then a page may have
    been told of a part of what happened."""
    said = Said(api)
    told = {said.names[uuid]: each.get("VCPU", (0, 0)) for uuid, each in said.amounts.items()}
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while (shown := shown_in_table(page)) != told and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert shown == told
    free, capacity = said.total("VCPU")
    expect(page.locator(".headline")).to_contain_text(
        f"{len(said.amounts)} hosts, {free:,} of {capacity:,} VCPU free"
    )
    expect(page.locator(".following")).to_have_text("live")


def shown_in_table(page: Page) -> dict[str, tuple[int, int]]:
    rows = cells(page.locator(".map-table tbody"))
    return {row[0]: (number(row[3]), number(row[4])) for row in rows}


class HeldAnswers:
    """Answers about the map that the server has given and the page does not have yet."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._held: list[Callable[[], None]] = []
        self._is_open = False
        page.route(MAP, self._hold)

    def _hold(self, route: Route) -> None:
        answer = route.fetch()
        self._held.append(lambda: route.fulfill(response=answer))
        if self._is_open:
            self.let_go()

    def wait(self) -> None:
        """Until there is one."""
        while not self._held:
            self._page.wait_for_timeout(20)

    def let_go(self) -> None:
        """Those that are held."""
        while self._held:
            self._held.pop(0)()

    def let_through(self) -> None:
        """All of them, from now on."""
        self._is_open = True
        self.let_go()


def heard(page: Page) -> None:
    """Have the page count what the stream tells it."""
    page.add_init_script("""
      window.told = [];
      const Own = window.EventSource;
      window.EventSource = class extends Own {
        constructor(...all) {
          super(...all);
          for (const name of ["hello", "change", "reload"])
            this.addEventListener(name, () => window.told.push(name));
        }
      };
    """)


def wait_for(page: Page, name: str) -> None:
    while name not in page.evaluate("window.told"):
        page.wait_for_timeout(20)


def test_a_change_while_the_map_is_on_its_way(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    page = browse(f"{url}/console/audit").page
    heard(page)
    page.goto(f"{url}/console?as=table")
    wait_for(page, "hello")
    held = HeldAnswers(page)
    # Another host has the page ask for the map; its answer does not have the claim.
    api.load(iter([host("rack9-host1")]))
    held.wait()
    claim(api, 5, "rack0-host1")
    wait_for(page, "change")
    held.let_through()
    expect_as_said(page, api)


def test_hosts_that_go_while_the_map_is_on_its_way(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    page = browse(f"{url}/console/audit").page
    heard(page)
    page.goto(f"{url}/console?as=table")
    wait_for(page, "hello")
    held = HeldAnswers(page)
    api.load(iter([host("rack9-host1")]))
    held.wait()
    page.evaluate("window.told = []")
    remove(api, "rack0-host0")
    wait_for(page, "reload")
    held.let_through()
    claim(api, 7, "rack0-host3")
    expect_as_said(page, api)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_history(world: tuple[str, Api], browse: Open, seed: int) -> None:
    """Claims come and go, hosts too, while answers about the map are late."""
    url, api = world
    choice = random.Random(seed)
    page = browse(f"{url}/console?as=table").page
    expect_as_said(page, api)
    hosts, consumers = [f"rack{n // 4}-host{n}" for n in range(8)], list[str]()
    busy: set[str] = set()
    held = HeldAnswers(page)
    for step in range(40):
        action = choice.random()
        if action < 0.5:
            name = choice.choice(hosts)
            if name not in busy:
                consumers.append(claim(api, choice.randint(1, 16), name))
                busy.add(name)
        elif action < 0.7 and consumers:
            consumer = consumers.pop(choice.randrange(len(consumers)))
            api.delete(f"/allocations/{consumer}")
        elif action < 0.85:
            hosts.append(f"rack{choice.randint(0, 5)}-new{step}")
            api.load(iter([host(hosts[-1])]))
        else:
            idle = [each for each in hosts if each not in busy]
            if len(idle) > 1:
                gone = choice.choice(idle)
                hosts.remove(gone)
                remove(api, gone)
        page.wait_for_timeout(choice.choice([0, 0, 100, 600]))
        if choice.random() < 0.3:
            held.let_go()
    held.let_through()
    expect_as_said(page, api)


def test_one_stream_for_all_pages_of_a_browser(world: tuple[str, Api], browse: Open) -> None:
    """Whichever has it passes on what it hears; when it goes, another takes over."""
    url, api = world
    first = browse(f"{url}/console?as=table")
    streams: list[str] = []
    first.context.on(
        "request",
        lambda asked: streams.append(asked.url) if asked.url.endswith("/map/events") else None,
    )
    expect(first.page.locator(".following")).to_have_text("live")
    others = [first.context.new_page() for _ in range(2)]
    for other in others:
        other.goto(f"{url}/console?as=table")
        expect(other.locator(".following")).to_have_text("live")
    claim(api, 5, "rack0-host1")
    for page in (first.page, *others):
        expect_as_said(page, api)
    assert len(streams) <= 1, "that of the first page, if it was not heard of before"
    before = len(streams)
    first.page.goto(f"{url}/console/audit")
    claim(api, 6, "rack0-host2")
    for page in others:
        expect_as_said(page, api)
    assert len(streams) == before + 1


def test_pages_without_locks_listen_by_themselves(world: tuple[str, Api], browse: Open) -> None:
    """As browsers have it for pages without TLS."""
    url, api = world
    browsing = browse(f"{url}/console/audit")
    without = "Object.defineProperty(Navigator.prototype, 'locks', {value: undefined})"
    browsing.context.add_init_script(without)
    pages = [browsing.page, browsing.context.new_page()]
    for page in pages:
        page.goto(f"{url}/console?as=table")
        expect(page.locator(".following")).to_have_text("live")
    claim(api, 5, "rack0-host1")
    for page in pages:
        expect_as_said(page, api)
