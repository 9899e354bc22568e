"""Files that come with documents: an app's manifests or chart, a profile, a cluster's kubeconfig.

They come as a part of a form or inside the document, are checked as far as that takes no program,
and never stay in the document.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from dovetail.intents.documents.apps import file_in
from dovetail.intents.documents.errors import Violation, broken_rule
from dovetail.intents.documents.kinds import DocumentKind
from dovetail.intents.documents.kubeconfigs import check_kubeconfig, without_secrets
from dovetail.intents.manifests.errors import BadManifest
from dovetail.intents.manifests.reading import objects_of
from dovetail.rest.intents import emco
from dovetail.rest.intents.dialects import NoFile

Json = dict[str, Any]

GZIP = b"\x1f\x8b"
MOST_MEMBERS = 10_000
MOST_UNPACKED_BYTES = 100 * 2**20
CLUSTER = "cluster"
SNAPSHOT = "snapshot"
SECRETS = ("kubeconfig", "snapshot", "manifests", "file")


class BroughtFiles(msgspec.Struct, frozen=True, kw_only=True):
    document: Json
    """Without them."""
    kept: Mapping[str, bytes] | None = None
    """None: it brought none, and those that are there stay."""
    passing: Mapping[str, bytes] = {}


def brought(
    kind: DocumentKind, document: Json, part: bytes | None, *, is_emco: bool
) -> BroughtFiles:
    """Takes a while for large files. Raises BadDocument, BadManifest."""
    if not kind.file:
        return BroughtFiles(document=document)
    found = _of_cluster(document, part) if kind.name == CLUSTER else _of_app(kind, document, part)
    if is_emco and emco.answers_of(kind).file_needed:
        _check_as_emco(kind, found)
    return found


def _of_cluster(document: Json, part: bytes | None) -> BroughtFiles:
    spec = document.get("spec", {})
    field, content = "file", part
    if "kubeconfig" in spec:
        if part is not None:
            raise broken_rule("spec.kubeconfig", "there is a file already")
        field, content = "spec.kubeconfig", spec["kubeconfig"].encode()
    if content is not None:
        if "kubeconfigRef" in spec or SNAPSHOT in spec:
            raise broken_rule("spec", "one of file, kubeconfigRef and snapshot")
        check_kubeconfig(content, field)
        return BroughtFiles(document=without(document), kept={"kubeconfig": content})
    if SNAPSHOT in spec:
        passing = {SNAPSHOT: orjson.dumps(spec[SNAPSHOT])}
        return BroughtFiles(document=without(document), kept={}, passing=passing)
    return BroughtFiles(document=document, kept={} if "kubeconfigRef" in spec else None)


def _of_app(kind: DocumentKind, document: Json, part: bytes | None) -> BroughtFiles:
    inside = file_in(document)
    if inside is not None and part is not None:
        raise broken_rule("spec.file", "there is a file already")
    content = part if inside is None else inside
    if content is None:
        return BroughtFiles(document=without(document))
    if content.startswith(GZIP):
        check_archive(content)
    elif kind.name == "app":
        objects_of(content, kind.file)
    return BroughtFiles(document=without(document), kept={kind.file: content})


def without(document: Json) -> Json:
    """The document less what is not answered; a spec of nothing else goes with it."""
    spec = document.get("spec")
    if spec is None:
        return document
    left = {key: value for key, value in spec.items() if key not in SECRETS}
    rest = {key: value for key, value in document.items() if key != "spec"}
    return {**rest, "spec": left} if left else rest


def check_archive(content: bytes) -> None:
    """A packed archive of plain files, of a size that can be unpacked. Raises BadManifest."""
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked(content)), mode="r:") as archive:
            members = 0
            for member in archive:
                members += 1
                if members > MOST_MEMBERS:
                    raise BadManifest("file", "", f"more than {MOST_MEMBERS} members")
                if not member.isfile() and not member.isdir():
                    raise BadManifest("file", member.name, "is neither a file nor a directory")
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise BadManifest("file", "", f"is no packed archive: {error}") from error
    if not members:
        raise BadManifest("file", "", "the archive is empty")


def unpacked(content: bytes) -> bytes:
    """Never more than may be, whatever the file says of itself."""
    machine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        found = machine.decompress(content, MOST_UNPACKED_BYTES)
    except zlib.error as error:
        raise BadManifest("file", "", f"is no packed archive: {error}") from error
    if machine.unconsumed_tail:
        raise BadManifest("file", "", f"is more than {MOST_UNPACKED_BYTES} bytes unpacked")
    if not machine.eof:
        raise BadManifest("file", "", "is no packed archive: it is cut short")
    return found


def _check_as_emco(kind: DocumentKind, found: BroughtFiles) -> None:
    content = (found.kept or {}).get(kind.file)
    if content is None and not found.passing and found.kept is None:
        raise _no_file(emco.NO_FILE)
    if kind.name != CLUSTER and content is not None and not content.startswith(GZIP):
        raise _no_file(emco.BAD_FILE)


def _no_file(text: str) -> NoFile:
    return NoFile([Violation(field="file", message=text, emco=text)])


def shown_file(kind: DocumentKind, content: bytes) -> bytes:
    """Credentials are never answered."""
    return without_secrets(content) if kind.name == CLUSTER else content
