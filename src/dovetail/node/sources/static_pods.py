"""Static pods by their manifests: the kubelet's own directory, for times when it cannot be asked.

What sets them apart from other manifests is their names: the kubelet adds the node's, and makes
the uid of a hash that nobody else can work out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import POD_UNKNOWN
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.sources.known_pods import PodDocument, pod_at
from dovetail.node.sources.specification import ORIGIN

FILE = "file"


def is_static(sandbox: Sandbox) -> bool:
    """The kubelet itself says so, and corrects pods of the API server that pretend."""
    return sandbox.annotations.get(ORIGIN) == FILE


class StaticPods:
    def __init__(self, directory: Path, node: str) -> None:
        """`node`: its name, which the kubelet adds to those of the pods."""
        self._directory, self._node = directory, node
        # The kubelet reads every file there, whatever its name.
        self._manifests = ManifestDirectory(directory, endings=())

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        """Nothing if no manifest is for it; raises AdmissionRejected if several could be."""
        if not self._directory.is_dir():
            return None
        known = await self._manifests.known()
        candidates = [each for each in known.documents if _could_be(each, sandbox)]
        full = [each for each in candidates if f"{each.stub.name}-{self._node}" == sandbox.name]
        chosen = full or candidates
        pods = [_as_started(each, sandbox) for each in chosen]
        if any(each != pods[0] for each in pods):
            origins = " and ".join(each.origin for each in chosen)
            words = f"{sandbox.namespace}/{sandbox.name} could be the pod of {origins}"
            raise AdmissionRejected(POD_UNKNOWN, words, later=True)
        return pods[0] if pods else None


def _could_be(document: PodDocument, sandbox: Sandbox) -> bool:
    """Without the node's name for certain: by the beginning."""
    stub = document.stub
    return stub.namespace == sandbox.namespace and sandbox.name.startswith(f"{stub.name}-")


def _as_started(document: PodDocument, sandbox: Sandbox) -> Pod:
    """With what the kubelet made of it."""
    return msgspec.structs.replace(
        pod_at(document, sandbox),
        name=sandbox.name,
        labels=sandbox.labels,
        annotations=sandbox.annotations,
    )
