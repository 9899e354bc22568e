"""Files of emcoctl: documents with an anchor each, read for `apply`, `delete` and `get`.

    version: emco/v2
    resourceContext: {anchor: projects/p1/composite-apps}
    metadata: {name: c1}
    spec: {compositeAppVersion: v1}
    file: chart.tgz

A file may be a template that a values file fills in. Files that a document names are looked for
where the command runs, as emcoctl does, and beside the file that names them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dovetail.cli.intents.templates import BadTemplate, filled
from dovetail.cli.support.client import segment
from dovetail.cli.support.documents import documents_of, text_of
from dovetail.cli.support.exits import LocalFailure

ACTIONS = {
    "approve",
    "apply",
    "instantiate",
    "migrate",
    "rollback",
    "stop",
    "terminate",
    "update",
}
"""Last parts of anchors that something is done at: there is nothing to get or delete."""
UNDONE_BY = {"instantiate": "terminate", "apply": "terminate"}
SPELLING = {"metadata": "metadata", "spec": "spec", "clusterlabel": "clusterLabel"}
"""emcoctl's own page writes Metadata and Spec, its examples metadata and spec."""
NOT_SENT = {"version", "resourcecontext", "file", "files"}


class EmcoDocument(msgspec.Struct, frozen=True, kw_only=True):
    anchor: str
    body: Mapping[str, Any]
    files: tuple[Path, ...] = ()
    is_list: bool = False
    """It has `files`: several, under that name."""
    where: str
    """For messages: the file and the document's number."""

    @property
    def action(self) -> str:
        """What is done at the anchor; empty of one that names a collection."""
        last = self.anchor.rsplit("/", 1)[-1].partition("?")[0]
        return last if last in ACTIONS else ""

    @property
    def item(self) -> str:
        """The path of the object itself."""
        meta = self.body.get("metadata") or {}
        name = meta.get("name") or self.body.get("clusterLabel") or ""
        path = f"{self.anchor}/{segment(str(name))}"
        if self.anchor.rsplit("/", 1)[-1] == "composite-apps":
            spec = self.body.get("spec") or {}
            version = spec.get("compositeAppVersion") or spec.get("version") or ""
            return f"{path}/{segment(str(version))}"
        return path

    def content(self) -> tuple[bytes, str]:
        """The body of the request that makes it, and its content type."""
        if self.files:
            part = "files" if self.is_list else "file"
            return multipart(self.body, [(part, file.name, _read(file)) for file in self.files])
        return msgspec.json.encode(self.body) if self.body else b"", "application/json"


def read_emco_files(files: Iterable[Path], values: Sequence[Path]) -> list[EmcoDocument]:
    """All documents, in order."""
    given: dict[str, Any] = {}
    for each in values:
        for document in documents_of(text_of(each), each):
            if not isinstance(document, dict):
                raise LocalFailure(f"{each}: values are expected, by name")
            given |= document
    return [found for file in files for found in _documents_in(file, given if values else None)]


def _documents_in(file: Path, values: Mapping[str, Any] | None) -> Iterator[EmcoDocument]:
    text = text_of(file)
    if values is not None:
        try:
            text = filled(text, values)
        except BadTemplate as error:
            raise LocalFailure(f"{file}: {error}") from error
    number = 0
    for document in documents_of(text, file):
        if document is None:
            continue
        number += 1
        yield _document(document, f"{file}, document {number}", file.parent)


def _document(written: Any, where: str, beside: Path) -> EmcoDocument:
    if not isinstance(written, dict):
        raise LocalFailure(f"{where}: an object is expected, with a resourceContext")
    named = {str(key).strip().lower(): value for key, value in written.items()}
    context = named.get("resourcecontext")
    anchor = context.get("anchor") if isinstance(context, dict) else None
    if not isinstance(anchor, str) or not anchor.strip("/ "):
        raise LocalFailure(f"{where}: resourceContext.anchor is missing: where does it belong?")
    body = {
        SPELLING.get(name.lower(), name): value
        for name, value in ((str(key).strip(), value) for key, value in written.items())
        if name.lower() not in NOT_SENT
    }
    single, several = named.get("file"), named.get("files")
    paths = several if isinstance(several, list) else [single] if single else []
    return EmcoDocument(
        anchor=anchor.strip("/ ").removeprefix("v2/"),
        body=body,
        files=tuple(_found(Path(str(path)), beside, where) for path in paths),
        is_list=bool(several),
        where=where,
    )


def _found(path: Path, beside: Path, where: str) -> Path:
    for each in (path, beside / path):
        if each.is_file():
            return each
    raise LocalFailure(f"{where}: file {path} is not there")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise LocalFailure(f"{file}: {error.strerror}") from error


def multipart(
    metadata: Mapping[str, Any], files: Sequence[tuple[str, str, bytes]]
) -> tuple[bytes, str]:
    """A form of `metadata` and files: name of the part, file name, content; and its type."""
    boundary = uuid.uuid4().hex
    parts = [("metadata", "", msgspec.json.encode(metadata)), *files]
    pieces: list[bytes] = []
    for name, file_name, content in parts:
        quoted = file_name.replace("\\", "\\\\").replace('"', '\\"')
        said = f'; filename="{quoted}"' if file_name else ""
        kind = "application/octet-stream" if file_name else "application/json"
        head = f'Content-Disposition: form-data; name="{name}"{said}\r\nContent-Type: {kind}'
        pieces.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"
