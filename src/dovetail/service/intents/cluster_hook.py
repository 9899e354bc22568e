"""Hook of the document store: a cluster that is posted is registered, with its snapshot entered.

All of it happens in the transaction that keeps the document: a snapshot that is refused leaves no
cluster behind, and one that is deleted takes its nodes with it, but for what somebody holds there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dovetail.intents.documents.errors import broken_rule
from dovetail.ledger import Transaction
from dovetail.ledger.intents import clusters
from dovetail.ledger.intents.clusters import (
    KUBECONFIG,
    REFERENCE,
    ClusterSource,
    UnreachablePolicy,
    name_of_path,
)
from dovetail.service.intents.fleet import SnapshotReader
from dovetail.service.intents.ports import KeptObject

SNAPSHOT = "snapshot"
"""The member of a cluster's document, and what it is called when it is passed on."""


class ClusterHook:
    """For documents of the kind `cluster`."""

    def __init__(self, read_snapshot: SnapshotReader) -> None:
        self._read_snapshot = read_snapshot

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        cluster = name_of_path(written.path)
        spec: Mapping[str, Any] = written.document.get("spec") or {}
        policy = UnreachablePolicy(spec.get("unreachable", UnreachablePolicy.EXCLUDE))
        text = written.files.get(SNAPSHOT)
        if text is not None:
            clusters.register(tx, cluster, ClusterSource.SNAPSHOT, policy)
            snapshot = self._read_snapshot(document_of(text), cluster)
            clusters.enter_snapshot(tx, cluster, snapshot)
            return
        known = clusters.find(tx, cluster)
        is_new_way = REFERENCE in spec or KUBECONFIG in written.files
        if is_new_way:
            source = ClusterSource.MIRROR
        else:
            # A document that says nothing of it leaves what came with the one before.
            source = known.source if known is not None else ClusterSource.NONE
        clusters.register(tx, cluster, source, policy, is_new_way=is_new_way)

    def dropping(self, tx: Transaction, path: str) -> None:
        clusters.forget(tx, name_of_path(path))


def document_of(text: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise broken_rule(f"spec.{SNAPSHOT}", f"is no JSON object: {error}") from error
