"""Pages without a script: each says what the API says, and names in it stay text."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from dovetail.rest.console.pages import host
from tests.rest.client import Client
from tests.rest.dovetail.views.test_fleet_map import random_fleet
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, numa_hosts, tree, uid

HOSTILE = "<script>alert(1)</script><b x=\"'&\u202e\U0001f600-" + "x" * 130
REQUEST = "resources_A=VCPU:6&resources_B=FPGA:1&same_subtree=_A,_B"


class PageReader(HTMLParser):
    """What a text browser shows of a page: the cells of its tables, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []
        self._cell: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # The console's own, where it is built.
        if not (tag == "script" and str(dict(attrs).get("src")).startswith("/console/static/")):
            self.tags.add(tag)
        assert not any(key == "style" or key.startswith("on") for key, _ in attrs)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif tag == "a":
            self.links.append(dict(attrs)["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.rows[-1].append("".join(self._cell).strip())
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._cell is not None:
            self._cell.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def row(self, head: str) -> list[str]:
        return next(row for row in self.rows if row[0] == head)


def read(client: Client, path: str, status: int = 200) -> PageReader:
    answer = client.get(path, x_auth_token="", accept="text/html")
    assert answer.status_code == status, answer.text
    return PageReader(answer.text)


@pytest.fixture
def fleet(client: Client) -> Client:
    load(client, *numa_hosts(2))
    claim(client, "a", {"h0n0": {"VCPU": 4}, "h0": {"DISK_GB": 7}})
    return client


@pytest.mark.parametrize("seed", range(3))
def test_the_fleet_s_numbers_are_those_of_the_api(client: Client, seed: int) -> None:
    choice = random.Random(seed)
    load(client, *random_fleet(choice))
    usage = client.get("/dovetail/v1/usage").json()["classes"]
    shown = client.get("/dovetail/v1/map").json()
    for class_ in shown["classes"]:
        page = read(client, f"/console?class={class_}&group=rack")
        used, capacity = usage[class_]["used"], shown["totals"]["classes"][class_]["capacity"]
        assert page.row(class_) == [class_, str(used), str(capacity), str(capacity - used)]
        for at, name in enumerate(shown["hosts"]["name"]):
            row = page.row(name)
            assert row[3] == str(shown["used"][class_][at])
            assert row[4] == str(shown["capacity"][class_][at])


def test_hosts_are_searched_and_grouped(fleet: Client) -> None:
    page = read(fleet, "/console?q=H1&class=VCPU&group=aggregate")
    hosts = [row for row in page.rows if row and row[0] in ("h0", "h1")]
    assert [row[0] for row in hosts] == ["h1"]
    assert page.row(uid("rack1"))[1:3] == ["1", "0"]
    assert f"/console/hosts/{uid('h1')}" in page.links


def test_why_not(fleet: Client) -> None:
    claim(fleet, "b", {"h0n1": {"VCPU": 4}, "h1n0": {"VCPU": 4}, "h1n1": {"VCPU": 4}})
    page = read(fleet, f"/console/why?query={quote(REQUEST, safe='')}&moves=1")
    assert "It does not fit now" in page.text
    assert page.row("in the fleet") == ["in the fleet", "2"]
    assert "Whom to move" in page.text
    assert f"/console/holders/{uid('a')}" in page.links
    helps = [each for each in page.links if each.startswith("/console/why?query=")]
    assert "It fits" in read(fleet, helps[0]).text


def test_a_question_that_cannot_be_read_is_told_on_the_page(fleet: Client) -> None:
    page = read(fleet, "/console/why?query=resources=NOTHING:1")
    assert "No such resource class NOTHING" in page.text
    for odd in ("%3Cscript%3E", "a%23b%20c", "%25", "%E2%80%AE"):
        assert "script" not in read(fleet, f"/console/why?query={odd}").tags


def test_a_host(fleet: Client) -> None:
    page = read(fleet, f"/console/hosts/{uid('h0n0')}")
    assert page.row("h0")[1:4] == ["DISK_GB", "7", "100"]
    assert page.row("\u2007\u2007h0n0".strip())[1:4] == ["VCPU", "4", "8"]
    assert page.row(uid("a"))[3:6] == ["INSTANCE", "lab", "mia"]
    assert "No provider has the name" in read(fleet, "/console/hosts/nowhere", 404).text


def test_holders(fleet: Client) -> None:
    claim(fleet, "b", {"h1n0": {"VCPU": 1}}, project="web")
    assert read(fleet, "/console/holders?project=web").row(uid("b"))[2] == "web"
    everybody = read(fleet, "/console/holders")
    assert everybody.row(uid("a"))[5] == "h0 DISK_GB:7h0n0 VCPU:4"
    one = read(fleet, f"/console/holders/{uid('a')}")
    assert one.row("h0n0") == ["h0n0", "h0", "VCPU:4"]


def test_decisions(fleet: Client) -> None:
    body = {"query": "resources=FPGA:1&rank=pack", "consumer": uid("x")}
    assert fleet.call("POST", "/dovetail/v1/claims", body).status_code == 201
    page = read(fleet, "/console/decisions")
    (row,) = [row for row in page.rows if uid("x") in row]
    assert row[3] == "resources=FPGA:1&rank=pack"
    assert "FPGA:1" in row[5]
    assert uid("x") not in read(fleet, f"/console/decisions?consumer={uid('y')}").text


def test_how_many_more_were_passed_over_is_said(fleet: Client) -> None:
    body = {"query": "resources=SRIOV_NET_VF:1&rank=pack", "consumer": uid("x")}
    assert fleet.call("POST", "/dovetail/v1/claims", body).status_code == 201
    (decision,) = fleet.get("/dovetail/v1/decisions").json()["decisions"]
    more = len(decision["passed_over"]) - 3
    assert more > 0
    assert f"and {more} more" in read(fleet, "/console/decisions").text


def test_the_audit(fleet: Client) -> None:
    assert "Nothing is wrong." in read(fleet, "/console/audit").text


def test_classes(fleet: Client) -> None:
    wanted = [{"key": "Kind", "operator": "In", "values": ["nvidia-gpu"]}]
    spec = {"resourceSelector": [{"matchExpressions": wanted}]}
    fleet.call("PUT", "/dovetail/v1/classes/any-gpu", {"spec": spec})
    assert read(fleet, "/console/classes").row("any-gpu")[1:4] == ["0", "0", "0"]


def test_names_stay_text_wherever_they_are_shown(client: Client) -> None:
    load(
        client,
        tree(
            HOSTILE,
            tree(HOSTILE + "2", inventories={"VCPU": 4}),
            aggregates=[uid("agg")],
        ),
    )
    claim(client, "a", {HOSTILE + "2": {"VCPU": 4}}, project=HOSTILE, user=HOSTILE)
    pages = (
        "/console",
        f"/console?q={quote(HOSTILE)}",
        f"/console/hosts/{quote(HOSTILE, safe='')}",
        f"/console/hosts/{uid(HOSTILE)}",
        "/console/holders",
        f"/console/holders/{uid('a')}",
        f"/console/holders?project={quote(HOSTILE)}",
        "/console/why?moves=1&query=resources=VCPU:1",
    )
    for path in pages:
        page = read(client, path)
        assert page.tags.isdisjoint({"script", "b"}), path
        assert HOSTILE in page.text, path


def test_what_a_reader_may_not_see_is_refused(fleet: Client) -> None:
    for path in ("/console", "/console/holders", f"/console/hosts/{uid('h0')}", "/console/audit"):
        answer = fleet.get(path, x_auth_token="mia", accept="text/html")
        assert answer.status_code == 403
        assert "Forbidden" in answer.text


def test_of_a_host_of_very_many_units_the_first_are_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "MOST_PROVIDERS", 3)
    load(client, tree("h", *(tree(f"h-{at}", inventories={"VCPU": 1}) for at in range(4))))
    page = read(client, "/console/hosts/h")
    assert "The first 3 of 5 providers" in page.text
    assert "h-1" in page.text
    assert "h-2" not in page.text
