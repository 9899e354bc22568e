"""Kubeconfigs that come with clusters: refused if they would have the server run or read anything,
and shown without what is secret.

A kubeconfig can name programs to run (`exec`, `auth-provider`) and files of the machine that reads
it: a user who registers a cluster must not run or read anything on the server that way.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from dovetail.intents.documents.errors import broken_rule
from dovetail.intents.documents.shapes import Json
from dovetail.intents.manifests.errors import BadManifest
from dovetail.intents.manifests.reading import documents_of

LARGEST_BYTES = 2**20
PROGRAMS = ("exec", "auth-provider")
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
SECRETS = ("token", "password", "client-key-data", "client-certificate-data")
HIDDEN = "REDACTED"
SCHEMES = ("https://", "http://")


def check_kubeconfig(content: bytes, field: str) -> None:
    """Raises BadDocument if it is none, or reaches beyond itself."""
    document = _document(content, field)
    servers = 0
    for kind, name, entry in _entries(document, field):
        at = f"{field}.{kind}s[{name}]"
        for key in (*PROGRAMS, *FILES):
            if key in entry:
                what = "would have the server run a program"
                raise broken_rule(
                    f"{at}.{key}",
                    what if key in PROGRAMS else "is a file of another machine: put it in as data",
                )
        if kind == "cluster":
            server = entry.get("server")
            if not isinstance(server, str) or not server.startswith(SCHEMES):
                raise broken_rule(f"{at}.server", "an address of an API server is expected")
            servers += 1
    if not servers:
        raise broken_rule(f"{field}.clusters", "a kubeconfig names a cluster")


def without_secrets(content: bytes) -> bytes:
    """The kubeconfig, as it may be shown."""
    document = _document(content, "kubeconfig")
    for _, _, entry in _entries(document, "kubeconfig"):
        for key in SECRETS:
            if key in entry:
                entry[key] = HIDDEN
    return yaml.safe_dump(document, sort_keys=False).encode()


def _document(content: bytes, field: str) -> Json:
    if len(content) > LARGEST_BYTES:
        raise broken_rule(field, f"a kubeconfig has at most {LARGEST_BYTES} bytes")
    try:
        found = documents_of(content, "kubeconfig")
    except BadManifest as error:
        raise broken_rule(field, f"is no kubeconfig: {error}") from error
    if len(found) != 1 or not isinstance(found[0], dict):
        raise broken_rule(field, "is no kubeconfig: an object is expected")
    return found[0]


def _entries(document: Json, field: str) -> Iterator[tuple[str, str, Json]]:
    """Kind, name and content of every cluster and user."""
    for kind in ("cluster", "user"):
        listed = document.get(f"{kind}s") or []
        if not isinstance(listed, list):
            raise broken_rule(f"{field}.{kind}s", "a list is expected")
        for number, each in enumerate(listed):
            entry = each.get(kind) if isinstance(each, dict) else None
            if not isinstance(entry, dict):
                raise broken_rule(f"{field}.{kind}s[{number}]", "an object is expected")
            yield kind, str(each.get("name", number))[:80], entry
