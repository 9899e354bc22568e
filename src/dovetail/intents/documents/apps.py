"""Projects, composite apps, apps with their manifests, and profiles that override them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from dovetail.intents.documents.common import app_member, named_document
from dovetail.intents.documents.errors import broken_rule
from dovetail.intents.documents.shapes import (
    NAME,
    DocumentFindings,
    Json,
    ListShape,
    ObjectShape,
    RecordMember,
    RecordShape,
    TextShape,
)

LONGEST_FILE_TEXT = 64 * 2**20
MOST_OBJECTS = 10_000

PROJECT = named_document()

COMPOSITE_APP = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="compositeAppVersion",
                shape=NAME,
                required=True,
                aliases=("version",),
                emco_blank=True,
            ),
        )
    )
)


class ManifestsShape(msgspec.Struct, frozen=True):
    """Objects of Kubernetes, as text (YAML or JSON) or as a list."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> Any:
        if isinstance(value, str):
            return TextShape(longest=LONGEST_FILE_TEXT).read(value, field, findings)
        return ListShape(items=ObjectShape(), most=MOST_OBJECTS).read(value, field, findings)

    def schema(self) -> Json:
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}


_FILES = (
    RecordMember(name="manifests", shape=ManifestsShape(), is_secret=True),
    RecordMember(name="file", shape=TextShape(longest=LONGEST_FILE_TEXT), is_secret=True),
)
"""In place of a file part: manifests, or any file in base 64."""

APP = named_document(RecordShape(members=_FILES), spec_required=False)
COMPOSITE_PROFILE = named_document()
PROFILE = named_document(
    RecordShape(
        members=(app_member(), RecordMember(name="file", shape=_FILES[1].shape, is_secret=True))
    )
)


def file_in(document: Mapping[str, Any]) -> bytes | None:
    """The file that a document of an app or a profile brings along."""
    spec = document.get("spec", {})
    if "manifests" in spec and "file" in spec:
        raise broken_rule("spec.file", "manifests are there already")
    if "manifests" in spec:
        manifests = spec["manifests"]
        if isinstance(manifests, str):
            return manifests.encode()
        return b"\n".join(b"---\n" + msgspec.json.encode(each) for each in manifests)
    if "file" not in spec:
        return None
    try:
        return base64.b64decode(spec["file"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise broken_rule("spec.file", f"is not in base 64: {error}") from error
