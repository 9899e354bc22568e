"""The session: a token becomes a cookie, which counts below /console and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.auth.sealing import Seal
from dovetail.rest.auth.tokens import StaticTokens
from dovetail.rest.console.session_cookies import (
    LONGEST_COOKIE,
    SESSION,
    SESSION_PARTS,
    SESSION_SECONDS,
)
from tests.rest.auth.test_tokens import OPS, WATCHER
from tests.rest.client import Client
from tests.rest.conftest import Make

FORM = "application/x-www-form-urlencoded"
OWN = {"sec_fetch_site": "same-origin"}
USAGE = "/console/api/dovetail/v1/usage"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(OPS + WATCHER)
    return path


@pytest.fixture
def guarded(serve: Make, token_file: Path) -> Client:
    return serve("secure", authenticator=StaticTokens(token_file))


def sign_in(
    client: Client, token: str = "secret-of-ops", there: str = "/console/why", **headers: str
) -> httpx2.Response:
    body = str(httpx2.QueryParams({"token": token, "next": there})).encode()
    more = {"x_auth_token": "", "content_type": FORM, **OWN, **headers}
    return client.call("POST", "/console/session", body, **more)


def cookie_in(answer: httpx2.Response) -> str:
    """What a browser sends back."""
    kept = [each.partition(";")[0] for each in answer.headers.get_list("set-cookie")]
    return "; ".join(each for each in kept if each.partition("=")[2])


def status(client: Client, path: str, cookie: str, **more: str) -> int:
    answer = client.get(path, x_auth_token="", cookie=cookie, **more)
    return int(answer.status_code)


def test_a_token_once_is_enough(guarded: Client) -> None:
    begun = sign_in(guarded)
    assert (begun.status_code, begun.headers["location"]) == (303, "/console/why")
    told = guarded.get("/console/me", x_auth_token="", cookie=cookie_in(begun)).json()
    assert (told["user"], told["roles"], told["login"]) == ("ops", ["admin"], True)
    assert status(guarded, "/console/holders", cookie_in(begun)) == 200
    assert status(guarded, USAGE, cookie_in(begun)) == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(guarded: Client) -> None:
    name, *attributes = sign_in(guarded).headers.get_list("set-cookie")[0].split("; ")
    assert attributes == [
        "Path=/console",
        f"Max-Age={SESSION_SECONDS}",
        "HttpOnly",
        "SameSite=Strict",
    ]
    assert name.startswith("dovetail_session=")
    assert "secret" not in name


def test_under_tls_it_is_secure(guarded: Client) -> None:
    body = b"token=secret-of-ops"
    headers = {"content-type": FORM, "sec-fetch-site": "same-origin"}
    url = "https://testserver/console/session"
    answer = guarded.run(guarded._http.post(url, content=body, headers=headers))
    assert all(each.endswith("; Secure") for each in answer.headers.get_list("set-cookie"))


def test_elsewhere_it_counts_for_nothing(guarded: Client) -> None:
    cookie = cookie_in(sign_in(guarded))
    assert status(guarded, "/dovetail/v1/usage", cookie) == 401
    assert status(guarded, "/resource_providers", cookie) == 401


def test_the_policy_asks_what_the_token_may(guarded: Client) -> None:
    cookie = cookie_in(sign_in(guarded, "secret-of-watcher"))
    assert status(guarded, USAGE, cookie) == 403
    told = guarded.get("/console/me", x_auth_token="", cookie=cookie).json()
    assert told["may"]["claim"] is False


def test_a_token_that_is_revoked_ends_its_sessions(guarded: Client, token_file: Path) -> None:
    cookie = cookie_in(sign_in(guarded))
    token_file.write_text(WATCHER)
    guarded.application._backend.authenticator = StaticTokens(token_file)
    guarded.application._admission._authenticator = StaticTokens(token_file)
    assert status(guarded, USAGE, cookie) == 401
    assert status(guarded, "/console", cookie) == 303


def test_a_token_in_a_header_goes_before_the_cookie(guarded: Client) -> None:
    cookie = cookie_in(sign_in(guarded))
    told = guarded.get("/console/me", x_auth_token="secret-of-watcher", cookie=cookie).json()
    assert told["user"] == "watcher"


def test_wrong_tokens_are_refused_on_the_form(guarded: Client) -> None:
    for wrong in ("nobody's", "", "\u00e9", "<script>"):
        answer = sign_in(guarded, wrong)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text
        assert "<script>" not in answer.text


def test_guessing_is_limited_as_everywhere(serve: Make, token_file: Path) -> None:
    limiter = RateLimiter(0.001, 3)
    client = serve("secure", authenticator=StaticTokens(token_file), rate_limiter=limiter)
    answers = [sign_in(client, f"guess{n}").status_code for n in range(5)]
    assert answers[:3] == [401, 401, 401]
    assert answers[4] == 429


def test_forms_of_other_sites_sign_nobody_in(guarded: Client) -> None:
    for headers in (
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "", "origin": "http://evil.example"},
        {"sec_fetch_site": ""},
    ):
        assert sign_in(guarded, **headers).status_code == 403


@pytest.mark.parametrize(
    "there",
    [
        "https://evil.example/",
        "//evil.example/",
        "/console@evil.example",
        "/consoleevil",
        "/console/\\evil",
        "/console/\r\nset-cookie: a=b",
        "/other",
        "",
    ],
)
def test_the_way_on_stays_in_the_console(guarded: Client, there: str) -> None:
    assert sign_in(guarded, there=there).headers["location"] == "/console"


def test_leaving(guarded: Client) -> None:
    answer = guarded.call("POST", "/console/session/end", x_auth_token="", **OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/login")
    cleared = answer.headers.get_list("set-cookie")
    assert [each.partition("=")[0] for each in cleared] == [*SESSION_PARTS]
    assert all("=; Path=/console; Max-Age=0; HttpOnly" in each for each in cleared)


def test_the_login_page_keeps_where_somebody_wanted_to_go(guarded: Client) -> None:
    page = guarded.get('/console/login?next=/console/why?q="><script>', x_auth_token="").text
    assert 'value="/console/why?q=&quot;&gt;&lt;script&gt;"' in page
    assert "<script>" not in page
    assert "oidc" not in page


def test_replicas_and_workers_open_each_other_s(serve: Make, token_file: Path) -> None:
    one, other = (serve("secure", authenticator=StaticTokens(token_file)) for _ in range(2))
    assert status(other, USAGE, cookie_in(sign_in(one))) == 200


def test_what_was_not_sealed_here_is_no_session(guarded: Client) -> None:
    cookie = cookie_in(sign_in(guarded))
    name, value = cookie.split("=", 1)
    changed = value[:-6] + ("A" if value[-6] != "A" else "B") + value[-5:]
    for wrong in (changed, value[:20], "x", "é", ""):
        assert status(guarded, USAGE, f"{name}={wrong}") == 401


def test_without_authentication_a_session_says_who_somebody_is(client: Client) -> None:
    cookie = cookie_in(sign_in(client, "mia:lab"))
    assert client.get("/console/me", x_auth_token="", cookie=cookie).json()["user"] == "mia"


# -- long tokens ---------------------------------------------------------------------------------


def long_token(characters: int, who: str = "mia") -> str:
    """With `noauth2` a token is whoever it names, and the project."""
    return f"{who}:" + "x" * (characters - len(who) - 1)


def user_of(client: Client, cookie: str) -> str:
    """Who has no session is admin there."""
    user: str = client.get("/console/me", x_auth_token="", cookie=cookie).json()["user"]
    return user


@pytest.mark.parametrize("characters", [2_900, 3_000, 6_000, 11_900, 11_964])
def test_a_long_token_is_cut_into_several_cookies(client: Client, characters: int) -> None:
    begun = sign_in(client, long_token(characters))
    assert begun.status_code == 303
    for each in begun.headers.get_list("set-cookie"):
        assert len(each) <= 4096
    cookie = cookie_in(begun)
    assert len(cookie.split("; ")) == -(-(characters + 36) * 4 // 3 // LONGEST_COOKIE)
    assert user_of(client, cookie) == "mia"


def test_one_that_is_too_long_is_told_so(client: Client) -> None:
    answer = sign_in(client, long_token(11_965))
    assert answer.status_code == 401
    assert "11965 characters, and a session holds one of up to 11964" in answer.text
    assert "set-cookie" not in answer.headers


def test_parts_that_do_not_belong_together_are_no_session(client: Client) -> None:
    one, other = (
        cookie_in(sign_in(client, long_token(8_900, who))).split("; ") for who in ("mia", "joe")
    )
    first, second, third = one
    assert user_of(client, "; ".join((third, first, second))) == "mia"
    swapped = [
        f"{name}={part.partition('=')[2]}"
        for name, part in zip(SESSION_PARTS[:3], (second, first, third), strict=True)
    ]
    changed = second[:-9] + ("A" if second[-9] != "A" else "B") + second[-8:]
    for wrong in (
        [first],
        [first, second],
        [second, third],
        swapped,
        [first, changed, third],
        [first, other[1], third],
        [*one, f"{SESSION}.3=AAAA"],
    ):
        assert user_of(client, "; ".join(wrong)) == "admin"


def test_a_short_session_leaves_nothing_of_a_longer_one(client: Client) -> None:
    again = sign_in(client, "joe:lab", cookie=cookie_in(sign_in(client, long_token(9_000))))
    _, *others = again.headers.get_list("set-cookie")
    assert [each.partition("=")[0] for each in others] == [*SESSION_PARTS[1:]]
    assert all("Max-Age=0" in each for each in others)


# -- sealing -------------------------------------------------------------------------------------


def sealed(client: Client, content: str = "content", wall: Any = None) -> tuple[Seal, str]:
    seal = Seal(client.application._backend.ledger, **({"wall": wall} if wall else {}))
    return seal, client.run(seal.close_up(SESSION, content))


def test_a_sealed_text_opens_for_its_purpose_alone(client: Client) -> None:
    seal, text = sealed(client)
    assert client.run(seal.open_up(SESSION, text, 60)) == "content"
    assert client.run(seal.open_up("another", text, 60)) is None
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", text)


def test_it_opens_while_it_is_young(client: Client) -> None:
    now = [1000.0]
    seal, text = sealed(client, wall=lambda: now[0])
    now[0] += 60
    assert client.run(seal.open_up(SESSION, text, 60)) == "content"
    now[0] += 1
    assert client.run(seal.open_up(SESSION, text, 60)) is None


def test_no_two_are_alike(client: Client) -> None:
    assert sealed(client)[1] != sealed(client)[1]
