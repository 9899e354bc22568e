"""The pods that the kubelet listed last, in memory and in a file: `PodsWhileAway` asks for them.

Only what the agent goes by is written down: environments, and what secrets they hold, are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import structlog

from dovetail.node.common.pods import Pod
from dovetail.node.sdk.files import write_atomically

LOG = structlog.get_logger("dovetail.node.sources")

NAME = "known_pods.json"

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that has the whole specification in it."""


class PodMemory:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._pods = {each.uid: each for each in _read(path)}
        self._saved: Sequence[Pod] = [*self._pods.values()]
        self._saving = asyncio.Lock()

    def of(self, uid: str) -> Pod | None:
        return self._pods.get(uid)

    def add(self, pod: Pod) -> None:
        """Until the next list."""
        self._pods[pod.uid] = pod

    async def keep(self, pods: Sequence[Pod]) -> None:
        """All that there are now; those that make no sense have no containers."""
        self._pods = {each.uid: each for each in pods if each.uid and each.containers}
        async with self._saving:
            known = [_without_environments(self._pods[uid]) for uid in sorted(self._pods)]
            if known == self._saved:
                return
            try:
                await asyncio.to_thread(write_atomically, self._path, _encoded(known))
            except OSError as error:
                LOG.warning("pods not saved", file=str(self._path), why=str(error))
            else:
                self._saved = known


def _without_environments(pod: Pod) -> Pod:
    if APPLIED not in pod.annotations:
        return pod
    left = {name: value for name, value in pod.annotations.items() if name != APPLIED}
    return msgspec.structs.replace(pod, annotations=left)


def _encoded(pods: Sequence[Pod]) -> bytes:
    return msgspec.json.encode(pods, enc_hook=str, order="sorted")


def _read(path: Path) -> list[Pod]:
    """What cannot be read is only forgotten: the kubelet tells it again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Pod], dec_hook=_decoded)
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        LOG.warning("pods of before not known", file=str(path), why=str(error))
        return []


def _decoded(kind: type[Any], value: Any) -> Any:
    if kind is not Fraction:
        raise TypeError(f"{kind} is not kept")
    return Fraction(value)
