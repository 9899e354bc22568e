"""A ledger without hosts: every view says that there is nothing yet, and nothing looks broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Api, Open, fleet_server
from tests.console.worlds import World

SAID = {
    "": "There are no hosts in this ledger yet",
    "?as=table": "There are no hosts in this ledger yet",
    "/why": "There are no hosts in this ledger yet",
    "/why?query=resources%3DVCPU%3A1": "There are no hosts in this ledger yet",
    "/holders": "Nobody holds anything. Claims make holders.",
    "/holders?project=green": "Nobody holds anything like that.",
    "/decisions": "No decision is kept",
    "/audit": "nothing is wrong",
}


@pytest.fixture
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api]]:
    with fleet_server(tmp_path_factory.mktemp("empty"), iter(())) as started:
        yield started


def test_each_view_says_that_there_is_nothing(empty: tuple[str, Api], browse: Open) -> None:
    url, _ = empty
    for path, said in SAID.items():
        browsing = browse(f"{url}/console{path}")
        main = browsing.page.get_by_role("main")
        expect(main).to_contain_text(said)
        expect(main.locator("select:not(:has(option))")).to_have_count(0)
        expect(main).not_to_contain_text("0 of 0")
        expect(main).not_to_contain_text(": all free")
        assert browsing.barriers() == []


def test_hosts_are_shown_when_they_come(empty: tuple[str, Api], browse: Open) -> None:
    url, api = empty
    page = browse(f"{url}/console").page
    expect(page.get_by_role("main")).to_contain_text("dovetail load fleet.jsonl")
    api.load(World(1).documents())
    expect(page.locator(".headline")).to_contain_text("hosts")
