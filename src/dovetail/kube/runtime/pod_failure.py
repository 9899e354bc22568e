"""Fails a pod that its node refused, as the kubelet's own admission would; the node agent calls it.

The kubelet writes the status of its pods. One that somebody else wrote it puts back, unless it sees
the pod itself changed: then it reads the phase, too, finds the pod over, and ends it. So phase and
an annotation are one write, and whoever calls asks again until the phase stays. The kubelet may
take the phase alone, and write it without the reason: that is written again a few times. The
annotation has it in any case.
"""

from __future__ import annotations

from dovetail.kube.api.port import ApiConflict, ApiNotFound, KubeApi
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_sum import ENDED_PHASES

REFUSED = "dovetail.dev/refused"
"""Why, and the how-manieth write it was: an annotation that is as it was is no change."""

MOST_WRITES = 5
"""After which a pod that is over may be so without a reason in its status."""

STATIC = ("kubernetes.io/config.mirror",)
ORIGIN = "kubernetes.io/config.source"


async def fail_pod(
    api: KubeApi, *, namespace: str, name: str, uid: str, reason: str, message: str
) -> bool | None:
    """Whether it is over; False: it was written now, and may be put back. None: it is not to be.

    A pod that runs is not to be, nor one whose manifest is on the node: nobody would make another.
    Raises ApiError, ApiUnreachable.
    """
    try:
        pod = await api.get(Pod, name, namespace)
        if pod.metadata.uid != uid or is_static(pod) or pod.metadata.deletion_timestamp:
            return None
        mark = pod.metadata.annotations.get(REFUSED, "")
        if pod.status.phase in ENDED_PHASES:
            is_bare = bool(mark) and not pod.status.reason and writes_of(mark) < MOST_WRITES
            if not is_bare:
                return True
        elif pod.status.phase != "Pending":
            return None
        # With its uid, so that another of this name is not meant.
        marks = {REFUSED: next_mark(mark, reason)}
        status = {"phase": "Failed", "reason": reason, "message": message}
        body = {"metadata": {"uid": uid, "annotations": marks}, "status": status}
        await api.merge(Pod, name, body, namespace=namespace, sub="status")
    except (ApiNotFound, ApiConflict):
        return None
    return False


def is_static(pod: Pod) -> bool:
    annotations = pod.metadata.annotations
    return any(each in annotations for each in STATIC) or annotations.get(ORIGIN) in (
        "file",
        "http",
    )


def next_mark(before: str, reason: str) -> str:
    """The reason; with a number from the second time on."""
    if before.partition(" ")[0] != reason:
        return reason
    return f"{reason} {writes_of(before) + 1}"


def writes_of(mark: str) -> int:
    number = mark.partition(" ")[2]
    return int(number) if number.isdecimal() else 1
