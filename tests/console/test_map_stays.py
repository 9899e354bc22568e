"""What somebody looks at on the map stays what it is while the fleet moves around it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Api, Open, fleet_server
from tests.console.hands import press, tab_to
from tests.console.test_live import claim, host, remove

HOSTS = [f"rack{n // 30}-host{n:03}" for n in range(120)]


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Api]]:
    fleet = (host(name) for name in HOSTS)
    with fleet_server(tmp_path_factory.mktemp("world"), fleet) as started:
        yield started


def uuid_of(api: Api, name: str) -> str:
    [one] = api.get("/resource_providers", name=name)["resource_providers"]
    found: str = one["uuid"]
    return found


def pixels(page: Page) -> str:
    found: str = page.locator(".map canvas").evaluate("(canvas) => canvas.toDataURL()")
    return found


def test_the_cursor_is_on_the_same_host_when_others_go(
    world: tuple[str, Api], browse: Open
) -> None:
    url, api = world
    page = browse(f"{url}/console?host={uuid_of(api, HOSTS[40])}").page
    title = page.locator(".host-card").get_by_role("heading")
    expect(title).to_have_text(HOSTS[40])
    remove(api, HOSTS[0])
    expect(page.locator(".headline")).to_contain_text("119 hosts")
    expect(title).to_have_text(HOSTS[40])
    expect(page.locator(".map [aria-live]")).to_contain_text(HOSTS[40])
    remove(api, HOSTS[40])
    expect(page.locator(".headline")).to_contain_text("118 hosts")
    expect(title).to_have_count(0)


def test_verdicts_are_of_the_hosts_that_are_there(world: tuple[str, Api], browse: Open) -> None:
    """One host went and another came: as many as before, in another order."""
    url, api = world
    claim(api, 16, HOSTS[1])
    page = browse(f"{url}/console/why?query=resources%3DVCPU%3A1").page
    spoken = page.locator(".map [aria-live]")
    tab_to(page.locator("[role=application]"), most=200)
    press(page, "Home", "ArrowRight")
    expect(spoken).to_have_text(f"{HOSTS[1]}: does not fit now")
    remove(api, HOSTS[0])
    api.load(iter([host("rack9-late")]))
    expect(page.locator("#known-hosts option[value=rack9-late]")).to_be_attached()
    expect(spoken).to_have_text(f"{HOSTS[1]}: does not fit now")
    press(page, "Home")
    expect(spoken).to_have_text(f"{HOSTS[1]}: does not fit now")
    press(page, "ArrowRight")
    expect(spoken).to_have_text(f"{HOSTS[2]}: fits")


@pytest.mark.parametrize("state", ["all", "free"])
def test_zoom_and_pan_stay_where_they_are(world: tuple[str, Api], browse: Open, state: str) -> None:
    url, api = world
    page = browse(f"{url}/console?state={state}").page
    headline = page.locator(".headline")
    expect(headline).to_contain_text("1,920 of 1,920 VCPU free")
    whole = pointed(page)
    tab_to(page.locator("[role=application]"))
    press(page, "+", "+", "+", "+")
    near = pointed(page)
    assert near != whole
    claim(api, 4, HOSTS[-1])
    expect(headline).to_contain_text("1,916 of 1,920 VCPU free")
    assert pointed(page) == near
    # Another layout: of fewer hosts, or of others.
    if state == "free":
        claim(api, 16, HOSTS[-2])
    else:
        remove(api, HOSTS[-2])
    expect(headline).to_contain_text("119 hosts")
    assert pointed(page) == near
    page.get_by_label("Search").fill("rack")
    assert pointed(page) == whole


def pointed(page: Page) -> str:
    """The host at some place of the screen."""
    page.mouse.move(1, 1)
    expect(page.locator(".map-hover")).to_have_count(0)
    page.locator(".map canvas").hover(position={"x": 80, "y": 60})
    return page.locator(".map-hover").inner_text().partition(",")[0]


def test_the_wheel_is_the_pages_until_somebody_goes_into_the_map(
    world: tuple[str, Api], browse: Open
) -> None:
    url, _ = world
    small = {"width": 900, "height": 500}
    page = browse(f"{url}/console/why?query=resources%3DVCPU%3A1", viewport=small).page
    canvas = page.locator(".map canvas")
    canvas.scroll_into_view_if_needed()
    canvas.hover()
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, -120)
    while page.evaluate("scrollY") >= before:
        page.wait_for_timeout(20)
    canvas.click()
    page.wait_for_timeout(300)
    near, before = pixels(page), page.evaluate("scrollY")
    canvas.hover()
    page.mouse.wheel(0, -120)
    while pixels(page) == near:
        page.wait_for_timeout(20)
    assert page.evaluate("scrollY") == before


def test_a_page_of_the_table_has_an_address(world: tuple[str, Api], browse: Open) -> None:
    url, _ = world
    page = browse(f"{url}/console?as=table").page
    first = page.locator(".map-table tbody th").first
    expect(first).to_have_text(HOSTS[0])
    page.get_by_role("button", name="Next").click()
    expect(first).to_have_text(HOSTS[100])
    page.reload()
    expect(first).to_have_text(HOSTS[100])
    page.go_back()
    expect(first).to_have_text(HOSTS[0])
    page.go_forward()
    page.get_by_label("Search").fill("rack1")
    expect(first).to_have_text(HOSTS[30])


def test_colours_of_holders_follow_who_holds(world: tuple[str, Api], browse: Open) -> None:
    url, api = world
    page = browse(f"{url}/console?colour=holder").page
    legend = page.locator(".map-part")
    expect(legend).to_contain_text("nobody")
    for project, name in (("red", HOSTS[1]), ("green", HOSTS[2])):
        allocations = {uuid_of(api, name): {"resources": {"VCPU": 1}}}
        owner = {"project_id": project, "user_id": "mia", "consumer_type": "INSTANCE"}
        body = {"allocations": allocations, "consumer_generation": None, **owner}
        api.put(f"/allocations/{uuid_of(api, name)}", body)
        expect(legend).to_contain_text(project)
    remove(api, HOSTS[0])
    expect(page.locator(".headline")).to_contain_text("119 hosts")
    expect(legend).to_contain_text("green")


def test_verdicts_are_counted(world: tuple[str, Api], browse: Open) -> None:
    """Where cells are too small for marks, numbers say what there is."""
    url, api = world
    claim(api, 16, HOSTS[1])
    page = browse(f"{url}/console/why?query=resources%3DVCPU%3A1").page
    legend = page.locator(".verdict-map .legend li")
    told = ["fits: 119", "not now: 1", "never: 0", "not looked at: 0", "dead"]
    expect(legend).to_have_text(told)
