"""Logical clouds: which clusters a project may use, under which namespace; and what is kept with
them because EMCO's users have it.
"""

from __future__ import annotations

from dovetail.intents.documents.common import named_document
from dovetail.intents.documents.shapes import (
    MapShape,
    ObjectShape,
    RecordMember,
    RecordShape,
    TextShape,
)

NAMESPACE = TextShape(longest=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")

LOGICAL_CLOUD = named_document(
    RecordShape(
        is_open=True,
        members=(
            RecordMember(name="namespace", shape=NAMESPACE, zero_is_absent=True),
            RecordMember(name="level", shape=TextShape(longest=2)),
            RecordMember(name="user", shape=ObjectShape()),
            RecordMember(name="labels", shape=MapShape(values=TextShape(longest=128))),
        ),
    ),
    spec_required=False,
)

CLUSTER_REFERENCE = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="clusterProvider",
                shape=TextShape(longest=128, shortest=1),
                required=True,
                aliases=("cluster-provider-name", "providerName"),
            ),
            RecordMember(
                name="cluster",
                shape=TextShape(longest=128, shortest=1),
                required=True,
                aliases=("clusterName",),
            ),
            RecordMember(
                name="loadBalancerIP", shape=TextShape(longest=45), aliases=("loadbalancer-ip",)
            ),
        )
    )
)

PLAIN = named_document(RecordShape(members=(), is_open=True), spec_required=False)
"""Kept as it is."""
