"""Every view, used as those use it whom it is for: once by mouse, once by keyboard alone.

What the page then shows is what the API says, and what was done there is done in the ledger. The
map itself, the request and the claim are driven in `test_views` and `test_newcomer`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from dovetail.ledger import opened
from dovetail.ledger.intents import nodes
from tests.console.conftest import Api, Open
from tests.console.hands import WAYS, Hands
from tests.console.lived_in import GROUP, HOLDER, HOST, lived_in
from tests.console.test_same_as_rest import (
    amounts_in,
    cells,
    inventories_said,
    inventories_shown,
    number,
    totals,
)
from tests.support.intents.seen import node, pod, seen

PAGE_OF_DECISIONS = 25
NODE = "p1+c1/n9"
World = tuple[str, Api]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The address of the demo fleet after some use, with decisions for two pages and a node on
    which pods were seen, and its API."""
    folder = tmp_path_factory.mktemp("demo")
    with lived_in(folder) as url:
        with opened(f"sqlite:///{folder / 'dovetail.db'}") as ledger:
            pods = [pod("web", "n9", requests={"cpu": "500m"}), pod("cache", "n9")]
            one = seen(node("n9"), pods)
            ledger.write(lambda tx: nodes.enter(tx, "p1+c1", [one])).result()
        api = Api(url)
        for _ in range(PAGE_OF_DECISIONS):
            api.post("/dovetail/v1/claims", {"query": "resources=VCPU:1"})
        yield url, api
        api.close()


@pytest.fixture(params=WAYS)
def hands(request: pytest.FixtureRequest) -> Hands:
    return WAYS[request.param]


def go_to(page: Page, hands: Hands, name: str) -> None:
    """By the navigation."""
    hands.use(page.get_by_role("navigation").get_by_role("link", name=name, exact=True))
    expect(title(page)).to_have_text(name)


def title(page: Page) -> Locator:
    return page.get_by_role("main").get_by_role("heading", level=1)


def leads_to(page: Page, path: str) -> Locator:
    """Links of the view to a page of the console."""
    return page.locator(f"main a[href='/console{path}']")


# -- who holds what -------------------------------------------------------------------------------


def test_from_the_map_to_a_host_to_its_holder(world: World, browse: Open, hands: Hands) -> None:
    url, api = world
    page = browse(f"{url}/console").page
    hands.write("rack1-host1", page.get_by_label("Search"))
    expect(page.locator(".headline")).to_contain_text("1 host of ")
    hands.open_first_host(page)
    expect(title(page)).to_contain_text("rack1-host1")
    expect(page.locator(".provider").first).to_be_visible()
    assert inventories_shown(page.locator(".provider")) == inventories_said(api, HOST)

    hands.use(leads_to(page, f"/holders/{HOLDER}").first)
    expect(title(page)).to_have_text(f"Holder {HOLDER}")
    assert held_on_page(page) == held(api, HOLDER)
    page.go_back()
    expect(title(page)).to_contain_text("rack1-host1")
    hands.use(page.get_by_role("link", name="Show on the map"))
    expect(page.locator(".host-card").get_by_role("heading")).to_contain_text("rack1-host1")


def test_a_holder_is_found_and_released(world: World, browse: Open, hands: Hands) -> None:
    url, api = world
    consumer = api.post("/dovetail/v1/claims", {"query": "resources=VCPU:2"})["consumer"]
    page = browse(f"{url}/console").page
    go_to(page, hands, "Holders")
    show = page.get_by_role("button", name="Show")
    rows = page.locator(".listing tbody tr")
    hands.write("green", page.get_by_label("Project"))
    hands.send(show)
    green = api.get("/dovetail/v1/consumers", project="green", limit=100)["consumers"]
    expect(rows).to_have_count(len(green))
    found = [row.get_by_role("rowheader").locator("bdi") for row in rows.all()]
    assert [each.get_attribute("title") for each in found] == [each["uuid"] for each in green]
    page.go_back()
    expect(rows).not_to_have_count(len(green))
    expect(page.get_by_label("Project")).to_have_value("")

    hands.write(consumer, page.get_by_label("Search"))
    hands.send(show)
    expect(rows).to_have_count(1)
    hands.use(leads_to(page, f"/holders/{consumer}"))
    expect(title(page)).to_have_text(f"Holder {consumer}")
    assert held_on_page(page) == held(api, consumer)

    hands.use(page.get_by_role("button", name="Release…"))
    expect(page.get_by_role("group", name="Release…")).to_contain_text("is free for others at once")
    hands.use(page.get_by_role("button", name="No", exact=True))
    expect(page.get_by_role("button", name="Release…")).to_be_focused()
    assert held(api, consumer)
    hands.use(page.get_by_role("button", name="Release…"))
    hands.use(page.get_by_role("button", name="Release", exact=True))
    expect(title(page)).to_have_text("Holders")
    assert not held(api, consumer)


def held(api: Api, consumer: str) -> Counter[tuple[str, int]]:
    found = api.get(f"/allocations/{consumer}")["allocations"].values()
    return Counter(each for part in found for each in part["resources"].items())


def held_on_page(page: Page) -> Counter[tuple[str, int]]:
    body = page.locator("section", has_text="What it holds").locator("tbody")
    expect(body.locator("tr").first).to_be_visible()
    return Counter(each for row in cells(body) for each in amounts_in(row[1]).items())


def test_decisions_are_paged_unfolded_and_asked_again(
    world: World, browse: Open, hands: Hands
) -> None:
    url, api = world
    page = browse(f"{url}/console").page
    go_to(page, hands, "Decisions")
    newest = api.get("/dovetail/v1/decisions", limit=PAGE_OF_DECISIONS)["decisions"]
    expect_decisions(page, newest)
    hands.use(page.get_by_role("link", name="Older", exact=True))
    last = newest[-1]["id"]
    older = api.get("/dovetail/v1/decisions", limit=PAGE_OF_DECISIONS, before=last)["decisions"]
    assert older
    expect_decisions(page, older)
    hands.use(page.get_by_role("link", name="Newest", exact=True))
    expect_decisions(page, newest)

    decision = newest[0]
    hands.write(decision["consumer"], page.get_by_label("Of the consumer"))
    hands.send(page.get_by_role("button", name="Show"))
    expect_decisions(page, [decision])
    over = page.locator(".decisions details")
    expect(over.locator("li").first).to_be_hidden()
    hands.use(over.locator("summary"))
    expect(over.locator("li").first).to_be_visible()
    expect(over.locator("li")).to_have_count(len(decision["passed_over"]))
    chosen = decision["chosen"]["allocations"]
    for uuid in chosen:
        expect(leads_to(page, f"/hosts/{uuid}").first).to_have_text(chosen[uuid]["name"])

    hands.use(page.get_by_role("link", name="ask again"))
    expect(title(page)).to_have_text("Why, or why not")
    told = api.get(f"/dovetail/v1/explain?{decision['query']}")
    expect(page.locator(".answer-card")).to_contain_text(told["summary"])


def expect_decisions(page: Page, told: list[dict[str, Any]]) -> None:
    shown = page.locator(".decisions > li > h3 small")
    expect(shown).to_have_text([re.compile(rf"^no\. {each['id']},") for each in told])


# -- what is sold ---------------------------------------------------------------------------------


def test_a_class_and_where_its_devices_are(world: World, browse: Open, hands: Hands) -> None:
    url, api = world
    page = browse(f"{url}/console").page
    go_to(page, hands, "Classes")
    row = page.get_by_role("row", name=re.compile("^large-gpu"))
    [told] = [
        each for each in api.get("/dovetail/v1/classes")["classes"] if each["name"] == "large-gpu"
    ]
    shown = row.get_by_role("cell")
    expect(shown.nth(0)).to_have_text(str(told["available"]))
    expect(shown.nth(1)).to_contain_text(f"{told['requested']} of {told['allocatable']}")
    expect(shown.nth(3)).to_contain_text("memory GtEq 30G")
    overlap = page.get_by_role("region", name="Overlap")
    [both] = api.get("/dovetail/v1/classes/availability")["overlaps"]
    expect(overlap.get_by_role("cell")).to_have_text([str(both["units"]), str(both["available"])])

    hands.use(row.get_by_role("link", name="where?"))
    expect(title(page)).to_have_text("Why, or why not")
    told = api.get("/dovetail/v1/explain?resources_D=CUSTOM_DEVICE:1&class_D=large-gpu")
    assert told["verdict"] == "fits"
    expect(page.locator(".answer-card")).to_contain_text(told["summary"])


def test_machines_their_holders_and_since_when(world: World, browse: Open, hands: Hands) -> None:
    url, api = world
    page = browse(f"{url}/console").page
    go_to(page, hands, "Machines")
    [group] = api.get("/dovetail/v1/machines")["groups"]
    [shape] = group["types"]
    stock = page.get_by_role("table", name="Stock").get_by_role("row").nth(1)
    expect(stock.get_by_role("rowheader")).to_have_text(shape["type"])
    figures = [number(each) for each in stock.get_by_role("cell").all_inner_texts()[:4]]
    assert figures == [shape["max"], shape["reserved"], shape["used"], shape["waiting"]]

    rows = page.get_by_role("table", name="Who waits, and why").get_by_role("row")
    expect(rows).to_have_count(1 + len(group["queue"]))
    for row, each in zip(rows.all()[1:], group["queue"], strict=True):
        expect(row.get_by_role("rowheader")).to_have_text(each["pod"])
        expect(row.get_by_role("cell").first).to_have_text(str(each["position"]))
        expect(row.locator("time")).to_have_attribute("datetime", each["since"])
        expect(row).to_contain_text(each["reason"] or "its turn is to come")
        expect(row.get_by_role("cell").last).to_have_text(each["message"])

    [guest] = [each for each in group["holders"] if not each["stock"]]
    timeline = page.get_by_role("group", name="Holds over time")
    expect(timeline).to_contain_text(f"{guest['type']} {guest['project']}/{guest['pod']}")
    start, end = (guest[each][:16].replace("T", " ") for each in ("from", "until"))
    expect(timeline).to_contain_text(f"{start} \u2013 {end} UTC")
    expect(timeline.locator(".lent")).to_have_count(1)
    expect(timeline.locator("line.now")).to_have_count(1)
    held_table = page.get_by_role("table", name="Holders of units")
    expect(held_table).to_contain_text(guest["pod"])
    expect(held_table).to_contain_text(f"{end} UTC")
    expect(timeline.locator(".now-words")).to_have_text(re.compile(r"^now, \d\d:\d\d UTC$"))
    for side in timeline.locator(".timeline-axis > span").all():
        expect(side).to_have_text(re.compile("UTC$"))
    for each in page.get_by_role("main").locator("time").all():
        shown = f"{each.inner_text()} {each.get_attribute('title')}"
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", shown), "an age has its moment"
    hands.use(leads_to(page, f"/holders/{guest['consumer']}"))
    expect(title(page)).to_have_text(f"Holder {guest['consumer']}")
    assert held_on_page(page) == held(api, guest["consumer"])
    page.go_back()
    expect(title(page)).to_have_text("Machines")


def test_a_pod_is_called_by_its_name_wherever_it_holds(
    world: World, browse: Open, hands: Hands
) -> None:
    url, api = world
    [group] = api.get("/dovetail/v1/machines")["groups"]
    [guest] = [each for each in group["holders"] if not each["stock"]]
    told = api.get(f"/dovetail/v1/consumers/{guest['consumer']}")
    assert told["pod"] == guest["pod"] == "trainer"
    [place] = {each["host_uuid"] for each in told["holds"] if each["host"] == guest["node"]}
    page = browse(f"{url}/console/hosts/{place}").page
    named = leads_to(page, f"/holders/{guest['consumer']}")
    expect(named.first).to_have_text(f"{guest['project']}/trainer")
    hands.use(named.first)
    expect(page.locator("dl.facts")).to_contain_text(f"{guest['project']}/trainer")
    expect(page).to_have_title(f"{guest['project']}/trainer · Dovetail")
    page.goto(f"{url}/console/holders?q={guest['consumer']}")
    expect(page.locator(".listing tbody").get_by_role("rowheader")).to_have_text(
        f"{guest['project']}/trainer"
    )


def test_pods_on_a_node_of_a_cluster(world: World, browse: Open, hands: Hands) -> None:
    url, api = world
    told = api.get(f"/dovetail/v1/hosts/{quote(NODE, safe='')}")
    assert [each["name"] for each in told["pods"]] == ["cache", "web"]
    page = browse(f"{url}/console").page
    hands.write(told["name"], page.get_by_label("Search"))
    hands.open_first_host(page)
    shown = page.get_by_role("region", name=re.compile("pods? on it$")).locator("tbody")
    expect(shown).to_be_visible()
    assert [(row[0], amounts_in(row[2])) for row in cells(shown)] == [
        (f"{each['namespace']}/{each['name']}", each["resources"]) for each in told["pods"]
    ]


def test_a_group_of_intents_its_clusters_and_edits(
    world: World, browse: Open, hands: Hands
) -> None:
    url, api = world
    page = browse(f"{url}/console").page
    go_to(page, hands, "Intents")
    hands.use(leads_to(page, f"/intents/{GROUP}"))
    expect(title(page)).to_contain_text("my-dig1")
    project, app, version, name = GROUP.split("/")
    plan = api.get(
        f"/v2/projects/{project}/composite-apps/{app}/{version}"
        f"/deployment-intent-groups/{name}/plan"
    )
    main = page.get_by_role("main")
    expect(main).to_contain_text(f"Picked, with a score of {plan['pick']['score']}")
    matrix = page.get_by_role("region", name="Candidate clusters")
    columns = matrix.get_by_role("columnheader").all_inner_texts()
    assert plan["refused"]
    for why in plan["refused"]:
        row = matrix.get_by_role("row", name=re.compile("^" + re.escape(why["cluster"])))
        for each in why.get("apps") or [why["app"]]:
            cell = row.locator("th, td").nth(columns.index(each))
            expect(cell).to_contain_text(why["words"])
    for each, places in plan["pick"]["apps"].items():
        row = matrix.get_by_role("row", name=re.compile("^" + re.escape(places[0]["cluster"])))
        expect(row.locator("th, td").nth(columns.index(each))).to_contain_text("picked")

    for placed in plan["placements"]:
        heading = page.get_by_role("heading", name=f"{placed['app']} on {placed['cluster']}")
        card = main.locator("section", has=heading)
        expect(card.locator(".diff")).to_be_hidden()
        hands.use(card.locator("summary"))
        expect(card.locator(".diff")).to_be_visible()
        lines = card.locator(".diff > div").all_inner_texts()
        assert [each.rstrip() for each in lines] == [
            each.rstrip() for each in placed["diff"].split("\n")
        ]


# -- groups of the map ----------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["cluster", "pool"])
def test_hosts_by_cluster_and_by_pool(
    world: World, browse: Open, hands: Hands, grouping: str
) -> None:
    url, api = world
    told = api.get("/dovetail/v1/map")
    names, of_host = told["groups"][grouping], told["hosts"]["group"][grouping]
    counts = {names[at]: count for at, count in Counter(of_host).items() if at >= 0}
    assert counts
    page = browse(f"{url}/console").page
    hands.choose(grouping, page.get_by_label("Group by"))
    expect(page.get_by_role("heading", name=f"By {grouping}")).to_be_visible()
    shown = {row[0]: row[1] for row in totals(page.locator(".totals tbody"))}
    assert shown == counts | {"all": len(of_host), f"no {grouping}": of_host.count(-1)}

    first, hosts = next(iter(counts.items()))
    hands.use(page.locator(".totals").get_by_role("link", name=first, exact=True))
    expect(page.locator(".headline")).to_have_text(re.compile(rf"^{hosts} host"))
    hands.use(page.get_by_role("button", name="Table"))
    expect(page.locator(".map-table tbody tr")).to_have_count(hosts)
    rows = cells(page.locator(".map-table tbody"))
    assert [row[1] for row in rows] == [first] * hosts
    hands.use(page.get_by_role("link", name="show all"))
    expect(page.locator(".headline")).to_have_text(re.compile(rf"^{len(of_host)} hosts"))
