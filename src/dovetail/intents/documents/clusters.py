"""Cluster providers, clusters, their labels and values; controllers."""

from __future__ import annotations

from dovetail.intents.controllers import ControllerContract, ControllerType, FailurePolicy
from dovetail.intents.documents.common import named_document
from dovetail.intents.documents.shapes import (
    NAME,
    DocumentFindings,
    IntegerShape,
    Json,
    ListShape,
    NumberShape,
    ObjectShape,
    RecordMember,
    RecordShape,
    TextShape,
)

UNREACHABLE = ("exclude", "lastKnown")

PROVIDER = named_document()


def check_source(spec: Json, field: str, findings: DocumentFindings) -> None:
    given = [key for key in ("kubeconfig", "kubeconfigRef", "snapshot") if key in spec]
    if len(given) > 1:
        findings.broken(f"{field}.{given[1]}", f"{given[0]} is there already")


CLUSTER = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="kubeconfig", shape=TextShape(longest=2**20, shortest=1), is_secret=True
            ),
            RecordMember(name="kubeconfigRef", shape=NAME),
            RecordMember(name="snapshot", shape=ObjectShape(), is_secret=True),
            RecordMember(name="unreachable", shape=TextShape(choices=UNREACHABLE)),
            RecordMember(name="gitOps", shape=ObjectShape()),
        ),
        rules=(check_source,),
    ),
    spec_required=False,
)

CLUSTER_LABEL = RecordShape(
    members=(
        RecordMember(
            name="clusterLabel", shape=NAME, required=True, aliases=("labelName",), emco_blank=True
        ),
    )
)

KEY_VALUES = named_document(
    RecordShape(members=(RecordMember(name="kv", shape=ListShape(items=ObjectShape())),)),
    spec_required=False,
)

CONTROLLER = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="host",
                shape=TextShape(longest=255, shortest=1),
                required=True,
                zero_is_absent=True,
            ),
            RecordMember(
                name="port",
                shape=IntegerShape(least=1, most=65535, emco_most=50000),
                required=True,
                zero_is_absent=True,
            ),
            RecordMember(
                name="type",
                shape=TextShape(choices=tuple(map(str, ControllerType))),
                zero_is_absent=True,
            ),
            RecordMember(
                name="priority", shape=IntegerShape(least=0, most=1_000_000, emco_most=100)
            ),
            RecordMember(
                name="contract", shape=TextShape(choices=tuple(map(str, ControllerContract)))
            ),
            RecordMember(name="deadline", shape=NumberShape(above=0, most=3600)),
            RecordMember(name="onFailure", shape=TextShape(choices=tuple(map(str, FailurePolicy)))),
            RecordMember(
                name="tls",
                shape=RecordShape(
                    members=(
                        RecordMember(name="ca", shape=TextShape(longest=2**18)),
                        RecordMember(name="serverName", shape=TextShape(longest=253)),
                    )
                ),
            ),
        )
    )
)
