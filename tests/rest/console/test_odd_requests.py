"""Whatever an address of the console holds, it is answered: no page falls over."""

from __future__ import annotations

import random
from urllib.parse import quote

import pytest

from dovetail.rest.console.routes import ROUTES
from tests.rest.client import Client
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, numa_hosts, uid

ODD = (
    "",
    "0",
    "-1",
    "99999999999999999999",
    "a b",
    "..",
    "<script>",
    "\u202e\U0001f600",
    "a/b",
    "%",
    "&=&",
    "resources=VCPU:1",
    "resources=VCPU:0",
    "resources=VCPU:x&limit=",
    "?resources=VCPU:1#x",
    "resources=VCPU:1\nresources=FPGA:1",
    "x" * 3000,
    "rack",
    "VCPU",
    uid("h0"),
    uid("a"),
)
RAW = ("%00", "%zz", "%ff", "%E2%28", "a%2Fb", "%2e%2e", "%", "%0d%0aset-cookie:%20a=b")
KEYS = ("query", "host", "moves", "q", "group", "class", "consumer", "before", "after", "next")
PAGES = [path for path, methods in ROUTES.items() if "GET" in methods]


@pytest.mark.parametrize("path", PAGES)
def test_odd_addresses_are_answered(client: Client, path: str) -> None:
    load(client, *numa_hosts(2))
    claim(client, "a", {"h0n0": {"VCPU": 4}})
    choice = random.Random(path)
    for _ in range(60):
        segments = [some(choice) if part.startswith("{") else part for part in path.split("/")]
        query = "&".join(
            f"{choice.choice(KEYS)}={some(choice)}" for _ in range(choice.randint(0, 3))
        )
        target = f"/console{'/'.join(segments)}{'?' if query else ''}{query}"
        answer = client.get(target, accept=choice.choice(("text/html", "*/*")))
        assert answer.status_code < 500, target
        assert "<script>" not in answer.text, target
        assert "set-cookie" not in answer.headers, target


def some(choice: random.Random) -> str:
    return choice.choice((*RAW, *(quote(each, safe="") for each in ODD)))


def test_odd_forms_are_refused(client: Client) -> None:
    own = {"sec_fetch_site": "same-origin", "content_type": "application/x-www-form-urlencoded"}
    for body in (b"", b"\xff", b"token", b"token=%ff", b"token=%00", b"token=a%0d%0ab", b"=" * 999):
        answer = client.call("POST", "/console/session", body, x_auth_token="", **own)
        assert answer.status_code in (303, 400, 401), body
        assert "\n" not in answer.headers.get("set-cookie", "")
