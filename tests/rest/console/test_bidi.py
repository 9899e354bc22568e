"""Names that turn the direction of writing around: what is beside them keeps its own."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from dovetail.ledger.database.protocol import Transaction
from dovetail.rest.console.markup import isolated_text, sentence
from tests.rest.client import Client
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, tree, uid

TURNING = (
    "\u202ebad",
    "\u2067bad",
    "\u202bbad",
    "\u2067\u2066\u202ebad",
    "bad\u2069\u202ebad",
    "\u2069\u2069\u2067bad\u202e",
    "\u05e9\u05dc\u05d5\u05dd",
)
"""Overrides and isolates that are never closed, and ends of ones that were never begun."""
EMBEDDINGS, ISOLATES = "\u202a\u202b\u202d\u202e", "\u2066\u2067\u2068"
POP_EMBEDDING, POP_ISOLATE = "\u202c", "\u2069"
BLOCKS = frozenset(
    {"p", "li", "td", "th", "dd", "dt", "caption", "title", "div"} | {"h1", "h2", "h3"}
)


class DirectionReader(HTMLParser):
    """The text of each block, and whether anything is open at letters outside of bdi elements, by
    the rules X1 to X8 of UAX 9. Browsers hand such an element to them as an isolate and its end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.blocks: list[list[tuple[str, bool]]] = [[]]
        self._open: list[str] = []
        self._names = 0
        self.feed(page)

    def handle_starttag(self, tag: str, _attrs: list[tuple[str, str | None]]) -> None:
        if tag in BLOCKS:
            self._begin()
        elif tag == "bdi":
            self._open.append(ISOLATES[-1])
            self._names += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self._begin()
        elif tag == "bdi":
            self._end_isolate()
            self._names -= 1

    def handle_data(self, data: str) -> None:
        for letter in data:
            if letter in EMBEDDINGS or letter in ISOLATES:
                self._open.append(letter)
            elif letter == POP_EMBEDDING and self._open and self._open[-1] in EMBEDDINGS:
                self._open.pop()
            elif letter == POP_ISOLATE:
                self._end_isolate()
            self.blocks[-1].append((letter, bool(self._open) and not self._names))

    def _begin(self) -> None:
        self._open.clear()
        self.blocks.append([])

    def _end_isolate(self) -> None:
        if any(each in ISOLATES for each in self._open):
            while self._open.pop() not in ISOLATES:
                pass


def turned(page: str, name: str) -> Iterator[str]:
    """Blocks in which something else than the name is inside of what the name began."""
    for block in DirectionReader(page).blocks:
        text = "".join(letter for letter, _ in block)
        inside = set[int]()
        at = text.find(name)
        while at >= 0:
            inside.update(range(at, at + len(name)))
            at = text.find(name, at + 1)
        if any(
            is_open and at not in inside and letter.isalnum()
            for at, (letter, is_open) in enumerate(block)
        ):
            yield text


def test_the_reader_finds_what_is_turned() -> None:
    assert [*turned("<p>\u202ebad has 12 of 48</p>", "\u202ebad")]
    assert [*turned("<p><bdi>\u2067bad</bdi> has 12 of 48</p>", "\u2067bad")]
    assert not [*turned("<p><bdi>\u202ebad</bdi> has 12 of 48</p><p>whole</p>", "\u202ebad")]


@pytest.mark.parametrize("name", TURNING)
def test_a_name_in_a_sentence_turns_nothing_else(name: str) -> None:
    words = f"{name} fits if you add 12 VCPU to {name}/cpu and 3 to {name}"
    names = [name, f"{name}/cpu", None]
    assert not [*turned(f"<p>{sentence(words, names)}</p>", name)]
    assert not [*turned(f"<title>{isolated_text(name)} 12 of 48</title>", name)]


def test_names_of_letters_alone_are_left_in_their_sentence() -> None:
    assert sentence("a has <b>", ["a", "has"]) == "a has &lt;b&gt;"


@pytest.mark.parametrize("name", TURNING)
def test_on_no_page_does_a_name_turn_what_is_beside_it(client: Client, name: str) -> None:
    below = f"{name}/cpu"
    load(
        client,
        tree(name, tree(below, inventories={"VCPU": 4}), attributes={"rack": name, name: name}),
        tree("other", inventories={"VCPU": 8}),
    )
    claim(client, "a", {below: {"VCPU": 3}}, project=name, user=name)
    moved = {"query": "resources=VCPU:1", "consumer": uid("x")}
    assert client.call("POST", "/dovetail/v1/claims", moved).status_code == 201
    break_the_books(client)
    odd = quote(f"attributes={name}", safe="")
    pages = (
        "/console",
        f"/console?in={quote(name)}",
        f"/console/hosts/{uid(name)}",
        f"/console/hosts/{quote(name, safe='')}x",
        "/console/holders",
        f"/console/holders/{uid('a')}",
        f"/console/holders?project={quote(name)}",
        "/console/decisions",
        "/console/audit",
        "/console/why?moves=1&query=resources=VCPU:4",
        "/console/why?moves=1&query=resources=VCPU:9",
        f"/console/why?query={odd}",
        f"/console/why?query=resources=VCPU:1&host={quote(name, safe='')}x",
    )
    for path in pages:
        page = client.get(path, x_auth_token="", accept="text/html").text
        assert not [*turned(page, name)], path


def break_the_books(client: Client) -> None:
    """So that an audit has something to say of every provider."""

    def spoil(tx: Transaction) -> None:
        tx.run("UPDATE inventories SET used = used + 1", ())

    client.application._backend.ledger.write(spoil).result()
