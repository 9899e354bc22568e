"""Why, or why not, by mouse and by keyboard: what is built, pasted, tried, and asked of a host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Api, Open
from tests.console.hands import WAYS, Hands
from tests.console.lived_in import HOST, lived_in
from tests.console.test_driven import title
from tests.support.page import INTENT_FILES

TOO_LARGE = "resources_VM=VCPU:70&resources_ACC=FPGA:1&same_subtree=_VM,_ACC"
"""No NUMA node has so many."""
World = tuple[str, Api]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with lived_in(tmp_path_factory.mktemp("demo")) as url:
        api = Api(url)
        yield url, api
        api.close()


@pytest.fixture(params=WAYS)
def hands(request: pytest.FixtureRequest) -> Hands:
    return WAYS[request.param]


def test_what_to_add_is_tried(world: World, browse: Open, hands: Hands) -> None:
    """On a copy, which the address has; and not supposed any more."""
    url, api = world
    told = api.get(f"/dovetail/v1/explain?{TOO_LARGE}")
    [added, *_] = told["additions"]
    page = browse(f"{url}/console/why?query={quote(TOO_LARGE)}").page
    remedies = page.get_by_role("region", name="What would help")
    hands.use(remedies.get_by_role("button", name=f"Try it: {added['words']}", exact=True))
    what_if = page.get_by_role("region", name="What if")
    expect(what_if).to_contain_text("0 hosts fit now, 1 host would.")
    for one in added["added"]:
        words = f"{one['amount']} {one['resource_class']} more on"
        expect(what_if.get_by_role("listitem").filter(has_text=words)).to_have_count(1)
    page.reload()
    expect(what_if).to_contain_text("0 hosts fit now, 1 host would.")
    for _ in added["added"]:
        hands.use(what_if.get_by_role("button", name=re.compile("^Do not suppose")).first)
    expect(what_if).to_contain_text("Nothing is written")
    assert api.get(f"/dovetail/v1/explain?{TOO_LARGE}")["verdict"] == told["verdict"]


def test_why_not_here_is_asked_about_that_host(world: World, browse: Open, hands: Hands) -> None:
    """From the host; while a request is built it is not forgotten, and it can be taken off."""
    url, api = world
    page = browse(f"{url}/console/hosts/{HOST}").page
    hands.use(page.get_by_role("link", name="Why not here"))
    expect(title(page)).to_have_text("Why, or why not")
    request = page.get_by_role("region", name="Request")
    expect(request).to_contain_text("about rack1-host1")
    hands.write("61", request.get_by_label("amount"))
    hands.send(page.get_by_role("button", name="Why, or why not?"))
    answer = page.locator(".answer > section").first
    expect(answer.get_by_role("heading")).to_have_text("rack1-host1 does not fit")
    [here] = api.get(f"/dovetail/v1/explain?resources=VCPU:61&host={HOST}")["nearest"]
    expect(answer.locator(".findings li")).to_have_count(len(here["findings"]))
    for line, finding in zip(answer.locator(".findings li").all(), here["findings"], strict=True):
        expect(line).to_contain_text(finding["words"])
    expect(request).to_contain_text("about rack1-host1")

    hands.use(request.get_by_role("button", name="Ask about every host"))
    expect(request).not_to_contain_text("about rack1-host1")
    expect(request.get_by_role("button", name="Build")).to_be_focused()
    expect(answer.get_by_role("heading")).to_contain_text("hosts fit of")
    assert "host=" not in page.url


def test_in_a_narrow_window_the_answer_is_brought_into_view(
    world: World, browse: Open, hands: Hands
) -> None:
    url, _ = world
    page = browse(f"{url}/console/why", viewport={"width": 800, "height": 600}).page
    hands.write("121", page.get_by_role("region", name="Request").get_by_label("amount"))
    hands.send(page.get_by_role("button", name="Why, or why not?"))
    expect(page.get_by_role("heading", name=re.compile("^Never"))).to_be_in_viewport()


POD = """
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
  - name: main
    resources:
      requests: {cpu: 500m, memory: 2Gi}
  - name: side
    resources: {limits: {cpu: 1}}
"""
MACHINE = """
kind: Machine
metadata: {name: lab}
spec:
  machineTypes:
  - name: compute-medium
    spec: {cpu: 6000m, memory: 4Gi}
    available: 4
"""
PASTED = {
    "query": ("dovetail explain 'resources=VCPU:61' --moves", "resources=VCPU:61", "query"),
    "pod": (
        POD,
        "resources=CUSTOM_MILLICPU:1500,CUSTOM_MEMORY_BYTES:2147483648",
        "One pod of Pod trainer",
    ),
    "intent": (
        (INTENT_FILES / "hardware.yaml").read_text(),
        "resources_core-fwall=CUSTOM_MILLICPU:4000,CUSTOM_MEMORY_BYTES:1000000000",
        "Hardware intents of core-fwall",
    ),
    "machine": (
        MACHINE,
        "resources=CUSTOM_MILLICPU:6000,CUSTOM_MEMORY_BYTES:4294967296",
        "One unit of compute-medium",
    ),
}
"""What is pasted, how the query begins that it becomes, and what it is said to be."""
NONE_OF_THEM = {
    "hello": "nothing that asks for hardware",
    "{": "cannot be read as JSON",
    "kind: Service\nmetadata: {name: web}": "Service web does not ask for hardware",
    "kind: Pod\nspec: {containers: [{name: main}]}": "no container that asks for anything",
}


def paste(page: Page, hands: Hands, text: str) -> None:
    field = page.get_by_role("textbox", name="a query, a pod, hardware intents or a Machine")
    hands.write("", field)
    page.keyboard.insert_text(text)
    hands.use(page.get_by_role("button", name="Read and ask"))


@pytest.mark.parametrize("kind", PASTED)
def test_what_is_at_hand_is_pasted(world: World, browse: Open, hands: Hands, kind: str) -> None:
    url, api = world
    text, query, said = PASTED[kind]
    page = browse(f"{url}/console/why").page
    hands.use(page.get_by_role("button", name="Paste"))
    paste(page, hands, text)
    expect(page.get_by_role("region", name="Request")).to_contain_text(said)
    expect(page.locator(".answer-card")).to_be_visible()
    [asked] = parse_qs(urlsplit(page.url).query)["query"]
    assert asked.startswith(query)
    told = api.get(f"/dovetail/v1/explain?{asked}")
    expect(page.locator(".answer-card p")).to_have_text(told["summary"])
    hands.use(page.get_by_role("button", name="Build"))
    expect(page.locator(".request .query")).to_have_text(asked)


def test_what_cannot_be_pasted_is_refused_with_what_can(
    world: World, browse: Open, hands: Hands
) -> None:
    url, _ = world
    page = browse(f"{url}/console/why").page
    hands.use(page.get_by_role("button", name="Paste"))
    for text, said in NONE_OF_THEM.items():
        paste(page, hands, text)
        refusal = page.get_by_role("region", name="Request").get_by_role("alert")
        expect(refusal).to_contain_text(said)
        expect(refusal).to_contain_text("Right would be a query (resources=VCPU:8")
    assert "query=" not in page.url
    paste(page, hands, "resources=VCPU:1")
    expect(page.locator(".answer-card")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
