"""What is wrong in a fleet, by mouse and by keyboard alone: faults of the ledger, hosts in no use.

Faults are found, shown before anything is healed, and healed by who may. Drained and dead hosts
are told apart in words wherever there are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Api, Open, fleet_server
from tests.console.hands import WAYS, Hands
from tests.console.lived_in import HOLDER
from tests.console.test_same_as_rest import cells
from tests.console.worlds import Document
from tests.rest.auth.test_tokens import OPS, entry
from tests.support import databases, server
from tests.support.paths import DOVETAIL

ROBOT = entry("robot", '["service"]')
"""May look at an audit, and heals nothing."""
ORPHANED = f"DELETE FROM consumers WHERE uuid = '{HOLDER}'"
"""Its allocations are left behind. Whose they are, no heal can know."""
MISCOUNTED = """UPDATE inventories SET used = used + 1
    WHERE provider_id = (SELECT MIN(provider_id) FROM inventories)"""
DISABLED = "COMPUTE_STATUS_DISABLED"


@pytest.fixture(params=WAYS)
def hands(request: pytest.FixtureRequest) -> Hands:
    return WAYS[request.param]


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[str]:
    """The address of a demo fleet with an orphaned allocation, a wrong count, and a consumer of
    nothing; who looks has to say who they are."""
    (tmp_path / "tokens.toml").write_text(OPS + ROBOT)
    command = [DOVETAIL, "serve", "--demo", "--auth", "tokens", "--tokens", "tokens.toml"]
    with server.running(command, tmp_path / "log", cwd=tmp_path, own_group=True) as started:
        with databases.connected(f"{databases.SQLITE}{tmp_path / 'dovetail.db'}") as connection:
            connection.execute(ORPHANED)
            connection.execute(MISCOUNTED)
            connection.execute(
                "INSERT INTO consumers (uuid, generation, project_id, user_id)"
                f" VALUES ('{uuid4()}', 1, 'p', 'u')"
            )
        yield started.url


def sign_in(page: Page, hands: Hands, token: str) -> None:
    hands.write(token, page.get_by_label("Token"))
    hands.send(page.get_by_role("button", name="Sign in"))
    page.locator("main[data-taken]").wait_for()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit")


def faults_in(section: Locator) -> list[tuple[str, str]]:
    expect(section).to_be_visible()
    return [(row[0], row[1]) for row in cells(section.locator("tbody"))]


def in_short(faults: list[dict[str, Any]], *, healable: bool) -> list[tuple[str, str]]:
    return [(each["kind"], each["words"]) for each in faults if each["healable"] == healable]


def test_faults_are_looked_at_and_healed(faulty: str, browse: Open, hands: Hands) -> None:
    api = Api(faulty, "secret-of-ops")
    browsing = browse(f"{faulty}/console/audit")
    page = browsing.page
    sign_in(page, hands, "secret-of-ops")
    before = api.get("/dovetail/v1/audit")["faults"]
    dry_run = page.get_by_role("region", name="Dry run")
    others = page.get_by_role("region", name="What somebody has to look at")
    wrong = in_short(before, healable=True)
    left = in_short(before, healable=False)
    assert {kind for kind, _ in wrong} == {"miscount", "empty_consumer"}
    assert {kind for kind, _ in left} == {"lost_consumer"}
    assert faults_in(dry_run) == wrong
    assert faults_in(others) == left
    expect(page.get_by_role("main")).to_contain_text(f"{len(before)} faults.")
    assert browsing.barriers() == []

    heal = page.get_by_role("button", name=f"Heal {len(wrong)} faults…")
    hands.use(heal)
    hands.use(page.get_by_role("button", name="No", exact=True))
    expect(heal).to_be_focused()
    assert api.get("/dovetail/v1/audit")["faults"] == before, "a dry run writes nothing"
    hands.use(heal)
    hands.use(page.get_by_role("button", name="Heal", exact=True))
    expect(dry_run).to_be_hidden()
    healed = page.get_by_role("heading", name="Healed").locator("..")
    assert faults_in(healed) == wrong
    assert faults_in(others) == left
    after = api.get("/dovetail/v1/audit")["faults"]
    assert in_short(after, healable=True) == []
    assert in_short(after, healable=False) == left
    assert browsing.barriers() == []

    # From a fault to where it is.
    hands.use(others.get_by_role("link", name="rack1-host1").first)
    expect(page.get_by_role("heading", level=1)).to_contain_text("rack1-host1")
    hands.use(page.get_by_role("navigation").get_by_role("link", name="Audit"))
    assert faults_in(others) == left
    expect(page.get_by_role("heading", name="Healed")).to_be_hidden()
    api.close()


def test_who_may_not_heal_is_told_so(faulty: str, browse: Open, hands: Hands) -> None:
    page = browse(f"{faulty}/console/audit").page
    sign_in(page, hands, "secret-of-robot")
    expect(page.get_by_role("region", name="Dry run")).to_contain_text("not heal")
    expect(page.get_by_role("button", name="Heal")).to_have_count(0)


def states() -> Iterator[Document]:
    """Hosts in every state; what is reserved as a whole is drained, too."""
    hosts: dict[str, Document] = {
        "r1-dead": {"inventories": {}},
        "r1-drained": {"inventories": {"VCPU": 8}, "traits": [DISABLED]},
        "r1-full": {"inventories": {"VCPU": 8}},
        "r1-reserved": {"inventories": {"VCPU": {"total": 8, "reserved": 8}}},
        "r1-well": {"inventories": {"VCPU": 8}},
    }
    for name, host in hosts.items():
        yield {"name": name, "uuid": str(uuid4()), **host}
    yield {
        "consumer": str(uuid4()),
        "project_id": "p",
        "user_id": "u",
        "allocations": {"r1-full": {"VCPU": 8}},
    }


STATES = {
    "r1-dead": "dead",
    "r1-drained": "drained",
    "r1-full": "full",
    "r1-reserved": "drained",
    "r1-well": "ok",
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with fleet_server(tmp_path_factory.mktemp("states"), states()) as (url, _):
        yield url


def test_drained_dead_and_full_hosts_are_told_apart(fleet: str, browse: Open, hands: Hands) -> None:
    page = browse(f"{fleet}/console").page
    headline = page.locator(".headline")
    expect(headline).to_contain_text("1 full, 2 drained, 1 dead")
    expect(page.locator(".totals .notes").first).to_have_text("1 full, 2 drained, 1 dead")
    expect(page.locator("ul.legend")).to_contain_text("dead")
    for state in ("dead", "full", "drained"):
        hands.choose(state, page.get_by_role("combobox", name="Show"))
        count = list(STATES.values()).count(state)
        expect(headline).to_have_text(re.compile(rf"^{count} host"))
        hands.point_at_first_host(page)
        expect(page.locator(".map [aria-live]")).to_contain_text(f", {state}, ")
        expect(page.locator(".host-card .tag")).to_have_text(state)
    hands.choose("all", page.get_by_role("combobox", name="Show"))
    expect(headline).to_have_text(re.compile(rf"^{len(STATES)} hosts"))
    hands.use(page.get_by_role("button", name="Table"))
    expect(page.locator(".map-table tbody tr")).to_have_count(len(STATES))
    shown = {row[0]: row[2] for row in cells(page.locator(".map-table tbody"))}
    assert shown == STATES
