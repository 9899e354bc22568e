"""Shapes that documents of all kinds share: metadata, and a spec beside it."""

from __future__ import annotations

from dovetail.intents.documents.shapes import NAME, RecordMember, RecordShape, TextShape

METADATA = RecordShape(
    members=(
        RecordMember(name="name", shape=NAME, required=True, emco_blank=True),
        RecordMember(name="description", shape=TextShape(longest=1024)),
        RecordMember(name="userData1", shape=TextShape(longest=512)),
        RecordMember(name="userData2", shape=TextShape(longest=512)),
    )
)


def named_document(
    spec: RecordShape | None = None, *, spec_required: bool = True, emco_required: bool = False
) -> RecordShape:
    """A document with metadata, and with a spec if its kind has one."""
    members = [RecordMember(name="metadata", shape=METADATA, required=True)]
    if spec is not None:
        members.append(
            RecordMember(
                name="spec", shape=spec, required=spec_required, emco_required=emco_required
            )
        )
    return RecordShape(members=tuple(members))


def app_member(*, required: bool = True) -> RecordMember:
    return RecordMember(name="app", shape=NAME, required=required, aliases=("appName",))
