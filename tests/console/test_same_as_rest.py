"""What the page shows is what the API says: random fleets, numbers read from the page.

The other side is Placement's own API, provider by provider: it knows nothing of the columns that
the map is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.console.conftest import Api, Open, fleet_server
from tests.console.worlds import World

Amounts = dict[str, tuple[int, int]]
"""Free and capacity by resource class."""


@pytest.fixture(scope="module", params=range(4))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Api]]:
    """The address of a server with a random fleet, and its API."""
    folder = tmp_path_factory.mktemp("world")
    with fleet_server(folder, World(request.param).documents()) as started:
        yield started


class Said:
    """What Placement's API says of every host, added up here."""

    def __init__(self, api: Api) -> None:
        providers = api.get("/resource_providers")["resource_providers"]
        self.names = {each["uuid"]: each["name"] for each in providers}
        self.amounts: dict[str, Amounts] = {}
        self.holders: dict[str, dict[str, Any]] = {}
        for each in providers:
            held = self.amounts.setdefault(each["root_provider_uuid"], {})
            path = f"/resource_providers/{each['uuid']}"
            used = api.get(f"{path}/usages")["usages"]
            for name, inventory in api.get(f"{path}/inventories")["inventories"].items():
                whole = (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]
                free, capacity = held.get(name, (0, 0))
                held[name] = (free + int(whole) - used[name], capacity + int(whole))
            self.holders |= api.get(f"{path}/allocations")["allocations"]

    @property
    def classes(self) -> list[str]:
        return sorted({name for each in self.amounts.values() for name in each})

    def total(self, resource_class: str) -> tuple[int, int]:
        every = [each.get(resource_class, (0, 0)) for each in self.amounts.values()]
        return sum(free for free, _ in every), sum(capacity for _, capacity in every)


def test_a_random_fleet(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    said = Said(api)
    page = browse(f"{url}/console?as=table").page
    table = page.locator(".map-table tbody")
    for name in said.classes:
        page.get_by_label("Class").select_option(name)
        expect(page.locator(".map-table thead")).to_contain_text(f"free {name}")
        shown = {row[0]: (number(row[3]), number(row[4])) for row in cells(table)}
        assert shown == {
            said.names[uuid]: each.get(name, (0, 0)) for uuid, each in said.amounts.items()
        }
        free, capacity = said.total(name)
        expect(page.locator(".headline")).to_contain_text(f"{free:,} of {capacity:,} {name}")
        everything, *racks = totals(page.locator(".totals tbody"))
        assert everything == ("all", len(said.amounts), free, capacity)
        assert sum_of(racks) == everything[1:]


def test_hosts_and_holders_of_a_random_fleet(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    said = Said(api)
    page = browse(f"{url}/console/holders").page
    held = {uuid: Counter[str]() for uuid in said.holders}
    for uuid, counted in held.items():
        for part in api.get(f"/allocations/{uuid}")["allocations"].values():
            counted.update(part["resources"])
    rows = page.locator(".listing tbody tr")
    expect(rows).to_have_count(len(held))
    shown = {
        row.get_by_role("rowheader").locator("bdi").get_attribute("title"): amounts_in(
            row.get_by_role("cell").nth(4).inner_text()
        )
        for row in rows.all()
    }
    assert shown == {uuid: dict(counted) for uuid, counted in held.items()}

    host = max(said.amounts, key=lambda uuid: len(said.amounts[uuid]))
    page.goto(f"{url}/console/hosts/{host}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(said.names[host])
    # Not the plain page, which has the same heading.
    expect(page.locator(".provider").first).to_be_visible()
    assert inventories_shown(page.locator(".provider")) == inventories_said(api, host)


def test_explanations_of_a_random_fleet(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    for query in ("resources=VCPU:4", "resources=VCPU:9999", "resources_A=FPGA:1,MEMORY_MB:1"):
        told = api.get(f"/dovetail/v1/explain?{query}")
        page = browse(f"{url}/console/why?query={query.replace('&', '%26')}").page
        expect(page.locator(".answer-card")).to_contain_text(told["summary"])
        rows = page.locator(".answer-card .funnel tbody tr").all()
        shown = [
            (number(row.locator("td").first.inner_text()), row.locator("th .wrap").inner_text())
            for row in rows
        ]
        funnel = [(stage["left"], stage["words"]) for stage in told["funnel"]]
        assert shown[1:] == funnel
        assert shown[0][0] == told["total"]


def inventories_said(api: Api, host: str) -> list[tuple[str, int, int]]:
    found = []
    for each in api.get("/resource_providers", in_tree=host)["resource_providers"]:
        path = f"/resource_providers/{each['uuid']}"
        used = api.get(f"{path}/usages")["usages"]
        for name, inventory in api.get(f"{path}/inventories")["inventories"].items():
            whole = (inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"]
            found.append((name, used[name], int(whole)))
    return sorted(found)


def inventories_shown(providers: Locator) -> list[tuple[str, int, int]]:
    found = []
    for each in providers.locator(".inventories li").all():
        used, _, capacity = each.locator(".figures").inner_text().partition(" of ")
        name = each.locator(".class-name").inner_text()
        found.append((name, number(used), number(capacity.removesuffix(", full"))))
    return sorted(found)


def cells(body: Locator) -> list[list[str]]:
    found: list[list[str]] = body.evaluate(
        "(body) => [...body.rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return found


def totals(body: Locator) -> list[tuple[str, int, int, int]]:
    """Rows of groups; lines with remarks below them have one cell."""
    rows = [row for row in cells(body) if len(row) > 1]
    return [(row[0], number(row[1]), number(row[2]), number(row[3])) for row in rows]


def sum_of(rows: list[tuple[str, int, int, int]]) -> tuple[int, int, int]:
    return (sum(row[1] for row in rows), sum(row[2] for row in rows), sum(row[3] for row in rows))


def amounts_in(text: str) -> dict[str, int]:
    parts = (each.rpartition(":") for each in text.split())
    return {name: number(amount) for name, _, amount in parts}


def number(text: str) -> int:
    return int(text.replace(",", ""))
