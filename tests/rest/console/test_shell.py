"""Every page of the console: what it says before any script, and what browsers are told of it."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from dovetail.rest.console import static_files
from dovetail.rest.console.markup import element, link, name
from tests.rest.client import Client
from tests.rest.conftest import Make

VIEWS = ("", "/why", "/holders", "/decisions", "/audit", "/classes", "/machines", "/intents")
HOSTILE = "<script>alert(1)</script>\"'&\u202e\U0001f600"


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_a_page(client: Client, view: str) -> None:
    answer = client.get(f"/console{view}", x_auth_token="")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<main id="view" tabindex="-1">' in answer.text
    assert f'href="/console{view}" aria-current="page"' in answer.text or view in VIEWS[5:]


@pytest.mark.parametrize("view", [*VIEWS, "/login", "/me", "/static/plain.css", "/nothing"])
def test_head_answers_as_get_without_the_body(client: Client, view: str) -> None:
    whole, head = (client.call(method, f"/console{view}") for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_browsers_are_told_to_run_nothing_but_the_console_s_own(client: Client) -> None:
    headers = client.get("/console").headers
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_what_a_deployment_does_not_use_is_not_offered(client: Client) -> None:
    assert "/console/intents" not in client.get("/console").text
    assert client.get("/console/me").json()["uses"] == {
        "classes": False,
        "machines": False,
        "intents": False,
    }
    wanted = [{"key": "Kind", "operator": "In", "values": ["nvidia-gpu"]}]
    spec = {"resourceSelector": [{"matchExpressions": wanted}]}
    client.call("PUT", "/dovetail/v1/classes/any-gpu", {"spec": spec})
    assert "/console/classes" in client.get("/console").text


def test_a_page_says_what_its_reader_may(serve: Make) -> None:
    """So that the script asks for nothing that is refused."""
    client = serve("secure")
    for token in ("admin", "mia"):
        may = client.get("/console/me", x_auth_token=token).json()["may"]
        page = client.get("/console/why", x_auth_token=token).text
        [told] = re.findall(r'<body data-may="([^"]*)">', page)
        assert told.split() == [name for name, allowed in may.items() if allowed]
    assert "map" not in told


def test_a_slash_at_the_end_does_no_harm(client: Client) -> None:
    assert client.get("/console/").text == client.get("/console").text


def test_unknown_pages_are_pages_too(client: Client) -> None:
    answer = client.get("/console/nothing", accept="text/html")
    assert answer.status_code == 404
    assert "<h1>Not Found</h1>" in answer.text


def test_names_stay_text() -> None:
    shown = link(f"/console?q={HOSTILE}", name(HOSTILE))
    assert re.findall(r"<(\w+)", shown) == ["a", "bdi"]
    assert re.findall(r' (\w+)="', shown) == ["href", "class", "title"]
    assert "\u202e" in shown


def test_attributes_that_are_false_are_left_out() -> None:
    assert element("input", checked=True, hidden=False, id=None) == "<input checked>"


# -- static files --------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that a bundle was built into."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index-abcd1234.js").write_text("export {}", encoding="utf-8")
    (tmp_path / "assets/why-abcd1234.js").write_text("export {}", encoding="utf-8")
    (tmp_path / "index.css").write_text("body {}", encoding="utf-8")
    manifest = {
        "src/index.tsx": {"file": "index-abcd1234.js", "isEntry": True, "css": ["index.css"]},
        "src/why.tsx": {"file": "assets/why-abcd1234.js", "isDynamicEntry": True},
    }
    (tmp_path / "manifest.json").write_bytes(orjson.dumps(manifest))
    monkeypatch.setattr(static_files, "STATIC", tmp_path)
    return tmp_path


def test_pages_have_the_script_once_it_is_built(client: Client, built: Path) -> None:
    page = client.get("/console").text
    assert '<script type="module" src="/console/static/index-abcd1234.js"></script>' in page
    assert '<link rel="stylesheet" href="/console/static/index.css">' in page
    assert "why-abcd1234" not in page
    (built / "manifest.json").unlink()
    assert "<script" not in client.get("/console").text


@pytest.mark.usefixtures("built")
def test_files_whose_names_hold_a_digest_are_kept_for_ever(client: Client) -> None:
    hashed = client.get("/console/static/assets/why-abcd1234.js")
    assert hashed.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in hashed.headers["cache-control"]
    plain = client.get("/console/static/index.css")
    assert plain.headers["cache-control"] == "no-cache"
    again = client.get("/console/static/index.css", if_none_match=plain.headers["etag"])
    assert again.status_code == 304


@pytest.mark.usefixtures("built")
def test_files_are_compressed_for_those_who_can_read_it(client: Client) -> None:
    got = client.get("/console/static/index.css", accept_encoding="gzip")
    assert got.headers["content-encoding"] == "gzip"
    assert got.text == "body {}"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path", ["..%2fdoor.py", "%2e%2e", "other/index.css", "assets/..%2f..%2fdoor.py", "door.py"]
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(f"/console/static/{path}").status_code == 404
