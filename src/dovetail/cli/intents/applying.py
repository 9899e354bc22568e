"""`dovetail intents apply`, `delete` and `get`: documents of emcoctl files, sent one after another.

`apply` makes what is not there, replaces what differs and leaves alone what is as the file says;
so it can be run again. `delete` goes backwards, as emcoctl does, and terminates what the file
instantiates.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import click
import orjson

from dovetail.cli.intents.emco_files import ACTIONS, UNDONE_BY, EmcoDocument, read_emco_files
from dovetail.cli.support.client import ServerClient, ServerRefusal, json_of, talks_to_server
from dovetail.cli.support.exits import LocalFailure, RequestRefused
from dovetail.cli.support.output import paint, printable

JSON = "application/json"
EXISTS, MISSING = 409, 404
SETTLED = {"Terminated", "Created", "Approved"}
"""States of a group in which its documents can go."""
LOOK_SECONDS = 0.5

file_options = (
    click.option(
        "-f",
        "--filename",
        "files",
        type=click.Path(path_type=Path, allow_dash=True),
        multiple=True,
        metavar="FILE",
        help="Documents in emcoctl's format; repeatable, `-` is standard input.",
    ),
    click.option(
        "-v",
        "--values",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        multiple=True,
        metavar="FILE",
        help="Values for files that are templates; of several, later ones win.",
    ),
    click.option("-s", "--stop", is_flag=True, help="End at the first document that is refused."),
)


class DocumentOutcome(NamedTuple):
    """What became of a document."""

    word: str
    path: str
    why: str = ""

    @property
    def is_refusal(self) -> bool:
        return self.word == "refused"


@click.command()
@click.argument("anchor", required=False)
@talks_to_server()
def apply(
    *,
    server: ServerClient,
    anchor: str | None,
    files: tuple[Path, ...],
    values: tuple[Path, ...],
    stop: bool,
) -> None:
    """Make the documents of files true, or do what is done at ANCHOR (such as .../instantiate)."""
    if anchor is not None:
        documents = [EmcoDocument(anchor=anchor.strip("/"), body={}, where=anchor)]
    else:
        documents = read_emco_files(_some(files), values)
    tell(documents, lambda each: applied(server, each), stop=stop)


@click.command()
@click.argument("anchor", required=False)
@click.option(
    "-w",
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for what is terminated to be gone.",
)
@talks_to_server()
def delete(
    *,
    server: ServerClient,
    anchor: str | None,
    wait: float,
    files: tuple[Path, ...],
    values: tuple[Path, ...],
    stop: bool,
) -> None:
    """Terminate and delete what files say, the last document first, or what is at ANCHOR."""
    if anchor is not None:
        click.echo(f"{deleted_at(server, anchor.strip('/')).word}  {printable(anchor)}")
        return
    documents = reversed(read_emco_files(_some(files), values))
    tell(documents, lambda each: deleted(server, each, wait), stop=stop)


@click.command()
@click.argument("anchor", required=False)
@talks_to_server()
def get(
    *,
    server: ServerClient,
    anchor: str | None,
    files: tuple[Path, ...],
    values: tuple[Path, ...],
    stop: bool,
) -> None:
    """Show what the server has of files' documents, or what is at ANCHOR, as JSON."""
    if anchor is not None:
        paths = [anchor.strip("/")]
    else:
        documents = read_emco_files(_some(files), values)
        paths = [each.item for each in documents if not each.action]
    is_refused = False
    for path in paths:
        try:
            found = server.get(f"/v2/{path}")
        except RequestRefused as error:
            if stop or anchor is not None:
                raise
            is_refused = True
            click.echo(f"{printable(path)}: {error.message}", err=True)
        else:
            click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    if is_refused:
        sys.exit(RequestRefused.exit_code)


for each in reversed(file_options):
    for command in (apply, delete, get):
        each(command)


def _some(files: tuple[Path, ...]) -> tuple[Path, ...]:
    if not files:
        raise click.UsageError("say which documents: -f FILE, or an anchor")
    return files


def tell(
    documents: Iterator[EmcoDocument] | list[EmcoDocument],
    act: Callable[[EmcoDocument], DocumentOutcome],
    *,
    stop: bool,
) -> None:
    """A line for each document; exits with 3 if any was refused."""
    refused = 0
    for each in documents:
        outcome = act(each)
        word = paint(outcome.word.ljust(10), "red" if outcome.is_refusal else "green")
        click.echo(f"{word} {printable(title_of(outcome.path))}")
        if outcome.is_refusal:
            refused += 1
            click.echo(f"           {each.where}: {printable(outcome.why)}", err=True)
            if stop:
                break
    if refused:
        sys.exit(RequestRefused.exit_code)


def title_of(path: str) -> str:
    """What a path leads to, in a few words: the kind and the name, or the action and of what."""
    from dovetail.intents.documents.kinds import kind_below

    *above, last = path.split("/")
    if last in ACTIONS and above:
        return f"{last} {unquote(above[-1])}"
    for names in (1, 2):
        kind = kind_below("/".join(path.split("/")[:-names]))
        if kind is not None and len(kind.placeholders) == names:
            return f"{kind.name} {unquote('/'.join(path.split('/')[-names:]))}"
    return path


def applied(server: ServerClient, document: EmcoDocument) -> DocumentOutcome:
    if document.action:
        outcome = _done(server, document.anchor, document.body)
        owner = document.anchor.rpartition("/")[0]
        if outcome.is_refusal and document.action == "instantiate" and is_cloud(owner):
            # Clusters get nothing of a cloud: there is nothing that it could lack by now.
            is_so = state_of(server, owner) == "Instantiated"
            return DocumentOutcome("unchanged", document.anchor) if is_so else outcome
        return outcome
    content, kind = document.content()
    try:
        send(server, "POST", document.anchor, content, kind)
    except ServerRefusal as error:
        if error.status != EXISTS:
            return DocumentOutcome("refused", document.item, error.message)
        return _replaced(server, document, error)
    return DocumentOutcome("created", document.item)


def _replaced(
    server: ServerClient, document: EmcoDocument, refusal: ServerRefusal
) -> DocumentOutcome:
    """It is there already, or something it needs is not."""
    try:
        kept = server.get(f"/v2/{document.item}")
    except ServerRefusal:
        return DocumentOutcome("refused", document.item, refusal.message)
    if not document.files and is_said_by(document, kept):
        return DocumentOutcome("unchanged", document.item)
    content, kind = document.content()
    try:
        send(server, "PUT", document.item, content, kind)
    except ServerRefusal as error:
        return DocumentOutcome("refused", document.item, error.message)
    return DocumentOutcome("replaced", document.item)


def is_said_by(document: EmcoDocument, kept: Mapping[str, Any]) -> bool:
    """Whether what is kept is what the document says, whatever the spelling."""
    from dovetail.intents.documents.errors import BadDocument
    from dovetail.intents.documents.kinds import kind_below
    from dovetail.intents.documents.shapes import DocumentFindings

    kind = kind_below(document.anchor)
    if kind is None:
        return False
    try:
        forms = [
            kind.shape.read(dict(each), "", DocumentFindings()) for each in (document.body, kept)
        ]
    except BadDocument:
        return False
    return bool(forms[0] == forms[1])


def _done(server: ServerClient, anchor: str, body: Mapping[str, Any]) -> DocumentOutcome:
    try:
        send(server, "POST", anchor, orjson.dumps(body) if body else b"", JSON)
    except ServerRefusal as error:
        return DocumentOutcome("refused", anchor, error.message)
    return DocumentOutcome("done", anchor)


def deleted(server: ServerClient, document: EmcoDocument, wait_seconds: float) -> DocumentOutcome:
    if not document.action:
        return deleted_at(server, document.item)
    undone_by = UNDONE_BY.get(document.action)
    if undone_by is None:
        return DocumentOutcome("passed", document.anchor)
    owner = document.anchor.rpartition("/")[0]
    if not is_there(server, owner):
        return DocumentOutcome("passed", document.anchor)
    outcome = _done(server, f"{owner}/{undone_by}", {})
    if not outcome.is_refusal:
        await_end(server, owner, wait_seconds)
        return outcome
    # It was never instantiated, or is terminated already: that is what was wanted.
    return (
        DocumentOutcome("passed", outcome.path) if state_of(server, owner) in SETTLED else outcome
    )


def await_end(server: ServerClient, group: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (state := state_of(server, group)) not in SETTLED:
        if time.monotonic() > deadline:
            raise LocalFailure(
                f"{group} is {state} after {seconds:g} s; --wait says how long to wait"
            )
        time.sleep(LOOK_SECONDS)


def state_of(server: ServerClient, group: str) -> str:
    """Of a group or a logical cloud; one that is not there is as good as terminated."""
    try:
        status = server.get(f"/v2/{group}/status{'' if is_cloud(group) else '?output=summary'}")
    except ServerRefusal:
        # By EMCO's switch the status code says nothing about it.
        if is_there(server, group):
            raise
        return "Terminated"
    actions = (status.get("states") or {}).get("actions") or [{"state": "Created"}]
    return str(status.get("state") or actions[-1].get("state"))


def is_cloud(path: str) -> bool:
    return path.split("/")[-2:-1] == ["logical-clouds"]


def is_there(server: ServerClient, path: str) -> bool:
    try:
        server.get(f"/v2/{path}")
    except ServerRefusal as error:
        if error.status != MISSING:
            raise
        return False
    return True


def deleted_at(server: ServerClient, path: str) -> DocumentOutcome:
    try:
        server.call("DELETE", f"/v2/{path}")
    except ServerRefusal as error:
        if error.status == MISSING:
            return DocumentOutcome("absent", path)
        return DocumentOutcome("refused", path, error.message)
    return DocumentOutcome("deleted", path)


def send(server: ServerClient, method: str, path: str, content: bytes, kind: str) -> Any:
    body = content or None
    text = b"".join(server.stream(method, f"/v2/{path}", body, kind, len(content) if body else 0))
    return json_of(text) if text else None
