"""The pods of a source at a moment, by uid or name; documents are parsed when somebody asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import structlog

from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import BAD_REQUEST
from dovetail.node.sources import specification
from dovetail.node.sources.specification import BadPodDocument

LOG = structlog.get_logger("dovetail.node.sources")


class PodDocument(NamedTuple):
    stub: Pod
    content: Any
    origin: str
    """Where it is from, for messages."""


class KnownPods:
    """One bad document does no harm to the others."""

    def __init__(self, documents: Iterable[tuple[str, Any]]) -> None:
        """Of an origin and a content each."""
        self.documents = [each for each in map(_document, documents) if each]
        self._by_uid = {each.stub.uid: each for each in self.documents if each.stub.uid}

    def pod(self, sandbox: Sandbox) -> Pod | None:
        """Raises AdmissionRejected if it is there and makes no sense."""
        found = self._by_uid.get(sandbox.uid) or self._nameless(sandbox)
        return None if found is None else pod_at(found, sandbox)

    def active(self) -> list[Pod]:
        """Those that make no sense are there nevertheless: nothing of theirs is to be freed."""
        return [_best(each) for each in self.documents if not _over(each)]

    def _nameless(self, sandbox: Sandbox) -> PodDocument | None:
        """A manifest without a uid is for whichever pod has its name."""
        for each in self.documents:
            name = (each.stub.namespace, each.stub.name)
            if not each.stub.uid and name == (sandbox.namespace, sandbox.name):
                return each
        return None


def pod_at(document: PodDocument, sandbox: Sandbox) -> Pod:
    """The pod that is told there, as the sandbox's; raises AdmissionRejected if it is none."""
    try:
        pod = specification.pod_of(document.content)
    except BadPodDocument as error:
        words = f"{document.origin}: {error}"
        raise AdmissionRejected(BAD_REQUEST, words) from None
    # The runtime class is on the sandbox even if the document leaves it to a default.
    return msgspec.structs.replace(
        pod, uid=sandbox.uid, runtime_class=pod.runtime_class or sandbox.runtime_class
    )


def _document(given: tuple[str, Any]) -> PodDocument | None:
    origin, content = given
    try:
        return PodDocument(specification.stub_of(content), content, origin)
    except BadPodDocument as error:
        LOG.warning("no pod", origin=origin, why=str(error))
        return None


def _best(document: PodDocument) -> Pod:
    try:
        return specification.pod_of(document.content)
    except BadPodDocument:
        return document.stub


def _over(document: PodDocument) -> bool:
    try:
        return specification.is_over(document.content)
    except BadPodDocument:
        return False
