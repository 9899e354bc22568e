"""Every view, opened and driven: by mouse, by keyboard alone, in light and dark, for everybody."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Api, Open
from tests.console.hands import press, tab_to
from tests.console.lived_in import GROUP, HOLDER, HOST, lived_in

IMPOSSIBLE = "/why?query=resources_A%3DVCPU%3A60%26resources_B%3DVCPU%3A61"
VIEWS = {
    "fleet": ("", "Fleet", "rack1"),
    "table": ("?as=table", "Fleet", "rack1-host1"),
    "fragmentation": ("?colour=fragmentation&class=MEMORY_MB", "Fleet", "MEMORY_MB"),
    "holder": ("?colour=holder&group=aggregate", "Fleet", "By aggregate"),
    "why": ("/why", "Why, or why not", "Ask something"),
    "why not": (IMPOSSIBLE, "Why, or why not", "Never"),
    "why here": (f"{IMPOSSIBLE}&host={HOST}", "Why, or why not", "does not fit"),
    "host": (f"/hosts/{HOST}", "rack1-host1", "FPGA"),
    "holders": ("/holders", "Holders", "green"),
    "one holder": (f"/holders/{HOLDER}", "Holder", "rack1-host1"),
    "decisions": ("/decisions", "Decisions", "claimed"),
    "audit": ("/audit", "Audit", "Looked at"),
    "classes": ("/classes", "Classes", "large-gpu"),
    "machines": ("/machines", "Machines", "large"),
    "intents": ("/intents", "Intents", "my-dig1"),
    "intent": (f"/intents/{GROUP}", "my-dig1", "c1"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with lived_in(tmp_path_factory.mktemp("demo")) as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_each_view_is_there_for_everybody(url: str, browse: Open, name: str, scheme: str) -> None:
    path, title, seen = VIEWS[name]
    browsing = browse(f"{url}/console{path}", color_scheme=scheme)
    main = browsing.page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_contain_text(title)
    expect(main).to_contain_text(seen)
    assert browsing.barriers() == []


def test_the_navigation_leads_to_every_view(url: str, browse: Open) -> None:
    page = browse(f"{url}/console").page
    links = page.get_by_role("navigation").get_by_role("link")
    names = links.all_inner_texts()
    assert names[:5] == ["Fleet", "Why / why not", "Holders", "Decisions", "Audit"]
    assert names[5:] == ["Classes", "Machines", "Intents"], "what this fleet uses"
    for name in names:
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        current = page.get_by_role("navigation").locator("[aria-current=page]")
        expect(current).to_have_text(name)
        expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_attached()
    page.go_back()
    expect(page).to_have_url(re.compile("/console/machines$"))


def test_the_map_by_mouse(url: str, browse: Open) -> None:
    page = browse(f"{url}/console").page
    expect(page.locator(".headline")).to_contain_text("hosts")
    page.get_by_label("Group by").select_option("aggregate")
    page.get_by_label("Group by").select_option("rack")
    canvas = page.locator(".map canvas")
    canvas.click(position={"x": 60, "y": 40})
    card = page.locator(".host-card")
    chosen = card.get_by_role("heading").inner_text()
    assert "host=" in page.url, "the cursor is part of the address"
    canvas.hover(position={"x": 60, "y": 40})
    page.mouse.wheel(0, -600)
    page.mouse.down()
    page.mouse.move(300, 300, steps=4)
    page.mouse.up()
    expect(card.get_by_role("heading")).to_have_text(chosen)
    page.get_by_role("button", name="Whole").click()
    canvas.dblclick(position={"x": 60, "y": 40})
    expect(page.get_by_role("heading", level=1)).to_contain_text(chosen)


def test_the_map_by_keyboard_alone(url: str, browse: Open) -> None:
    browsing = browse(f"{url}/console")
    page = browsing.page
    expect(page.locator(".headline")).to_contain_text("hosts")
    press(page, "/")
    page.keyboard.type("rack2-host")
    expect(page.locator(".headline")).to_contain_text("6 hosts of ")
    tab_to(page.locator("[role=application]"))
    press(page, "Home")
    spoken = page.locator(".map [aria-live]")
    expect(spoken).to_contain_text("rack2-host1")
    press(page, "ArrowRight")
    expect(spoken).to_contain_text("rack2-host2")
    press(page, "+", "+", "-", "0", "End")
    expect(spoken).to_contain_text("rack2-host6")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("rack2-host6")


def test_a_request_by_keyboard_alone(url: str, browse: Open) -> None:
    page = browse(f"{url}/console").page
    tab_to(page.locator("nav a[href='/console/why']"))
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Why, or why not")
    tab_to(page.locator("fieldset.group input[type=number]"))
    press(page, "Control+a")
    page.keyboard.type("121")
    press(page, "Enter")
    expect(page.get_by_role("region", name=re.compile("^Never"))).to_be_visible()
    tab_to(page.locator(".remedies button"))
    press(page, "Enter")
    expect(page.get_by_role("region", name=re.compile("^It fits"))).to_be_visible()
    tab_to(page.locator(".claim button"))
    press(page, "Enter")
    expect(page.get_by_text("Claimed for consumer")).to_be_visible()
    tab_to(page.locator(".claim .noted button"))
    press(page, "Enter")
    expect(page.get_by_text("Claimed for consumer")).to_be_hidden()


def test_an_update_is_shown_when_it_happens(url: str, browse: Open) -> None:
    """Without a reload: by the stream of changes."""
    api = Api(url)
    [host] = api.get("/resource_providers", name="rack6-host2")["resource_providers"]
    api.close()
    page = browse(f"{url}/console?q=rack6-host2").page
    headline = page.locator(".headline")
    expect(headline).to_contain_text("120 of 120 VCPU free")
    other = browse(f"{url}/console/why?query=resources%3DVCPU%3A60%26in_tree%3D{host['uuid']}").page
    other.get_by_role("button", name="Claim the best place").click()
    expect(headline).to_contain_text("60 of 120 VCPU free")


def test_where_streams_are_cut_it_asks_now_and_then(url: str, browse: Open) -> None:
    browsing = browse(f"{url}/console/audit")
    page = browsing.page
    browsing.context.route("**/map/events", lambda route: route.abort())
    page.goto(f"{url}/console?q=rack4-host2")
    expect(page.locator(".headline")).to_contain_text("120 of 120 VCPU free")
    expect(page.locator(".following")).to_have_text("every 5 seconds", timeout=15_000)
    api = Api(url)
    [host] = api.get("/resource_providers", name="rack4-host2")["resource_providers"]
    api.post("/dovetail/v1/claims", {"query": f"resources=VCPU:60&in_tree={host['uuid']}"})
    api.close()
    expect(page.locator(".headline")).to_contain_text("60 of 120 VCPU free", timeout=15_000)
    browsing.forget()


def test_a_page_that_nobody_sees_listens_to_nothing(url: str, browse: Open) -> None:
    page = browse(f"{url}/console").page
    expect(page.locator(".following")).to_have_text("live")
    hide = """(state) => {
      Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
      Object.defineProperty(document, "hidden", {value: state === "hidden", configurable: true});
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, "hidden")
    expect(page.locator(".following")).to_have_text("paused")
    page.evaluate(hide, "visible")
    expect(page.locator(".following")).to_have_text("live")


TITLES = {
    "": "Fleet",
    "/why": "Why / why not",
    f"{IMPOSSIBLE}&host={HOST}": "Why VCPU:60 VCPU:61 on rack1-host1",
    f"/hosts/{HOST}": "rack1-host1",
    "/holders": "Holders",
    "/holders?project=green": "Holders of green",
    f"/holders/{HOLDER}": f"Holder {HOLDER}",
    f"/decisions?consumer={HOLDER}": f"Decisions about {HOLDER}",
    f"/intents/{GROUP}": "my-dig1",
}


@pytest.mark.parametrize("path", TITLES)
def test_a_tab_is_called_after_what_it_shows(url: str, browse: Open, path: str) -> None:
    page = browse(f"{url}/console{path}").page
    expect(page).to_have_title(f"{TITLES[path]} · Dovetail")
    page.get_by_role("navigation").get_by_role("link", name="Audit").click()
    expect(page).to_have_title("Audit · Dovetail")
    page.go_back()
    expect(page).to_have_title(f"{TITLES[path]} · Dovetail")


CHUNK = "**/HoldersView-*.js"


def test_after_an_upgrade_a_page_is_loaded_anew(url: str, browse: Open) -> None:
    """An open one asks for code by a name that is gone; the new page knows the new name."""
    browsing = browse(f"{url}/console")
    page = browsing.page
    page.route(CHUNK, lambda route: route.fulfill(status=404), times=1)
    page.get_by_role("navigation").get_by_role("link", name="Holders").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Holders")
    expect(page).to_have_url(f"{url}/console/holders")
    [refused] = browsing.complaints()
    assert "HoldersView" in refused
    browsing.forget()


def test_code_that_is_not_there_at_all_is_said_so_once(url: str, browse: Open) -> None:
    browsing = browse(f"{url}/console")
    page = browsing.page
    loaded: list[str] = []
    page.on("load", lambda it: loaded.append(it.url))
    page.route(CHUNK, lambda route: route.fulfill(status=404))
    page.get_by_role("navigation").get_by_role("link", name="Holders").click()
    expect(page.get_by_role("alert")).to_contain_text("HoldersView")
    assert loaded == [f"{url}/console/holders"]
    page.get_by_role("navigation").get_by_role("link", name="Audit").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit")
    browsing.forget()


def test_a_page_whose_server_is_away_stays(url: str, browse: Open) -> None:
    browsing = browse(f"{url}/console")
    page = browsing.page
    page.route("**/*", lambda route: route.abort())
    page.get_by_role("navigation").get_by_role("link", name="Holders").click()
    expect(page.get_by_role("alert")).to_contain_text("HoldersView")
    page.unroute("**/*")
    page.go_back()
    expect(page.locator(".headline")).to_be_visible()
    browsing.forget()


@pytest.mark.parametrize("size", [(1280, 800), (800, 600)])
def test_nothing_of_a_timeline_is_cut_or_covered(
    url: str, browse: Open, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    page = browse(f"{url}/console/machines", viewport=viewport).page
    expect(page.locator(".now-words")).to_be_visible()
    shown = page.locator(".timeline-axis > span, .timeline-words:visible")
    boxes = [each.bounding_box() for each in shown.all()]
    card = page.locator(".machine-group").bounding_box()
    assert card is not None
    for at, box in enumerate(boxes):
        assert box is not None
        assert box["x"] + box["width"] <= card["x"] + card["width"]
        for other in boxes[at + 1 :]:
            assert other is not None
            apart = other["x"] >= box["x"] + box["width"] or box["x"] >= other["x"] + other["width"]
            below = (
                other["y"] >= box["y"] + box["height"] or box["y"] >= other["y"] + other["height"]
            )
            assert apart or below
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
