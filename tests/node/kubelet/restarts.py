"""Parts of real nodes that are ended and started again, beside pods that have devices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.support.node.kubelet.bed import NodeBed
from tests.support.processes import Process

LOCK = """
for each in %s; do
  busybox ln -sn $HOSTNAME $each/lock ||
    [ "$(busybox readlink $each/lock)" = $HOSTNAME ] || echo $HOSTNAME > $each/twice
  busybox sleep 1
  busybox rm $each/lock
done
"""
"""A lock is a link to its owner: there at once or not at all, and known again after a crash."""


def start_again(part: Process, end: Callable[[Process], object]) -> None:
    end(part)
    part.start()


def locking(folders: str) -> dict[str, Any]:
    """About a pod that has the folders of its devices to itself for a second each; `twice` is
    there if not.

    It starts again where the runtime lost it: a container that ends while containerd is dead may
    be told as exit code 255, reason Unknown. Whoever has the device then must still be this pod.
    """
    command = ["/bin/busybox", "sh", "-c", LOCK % folders]
    return {"command": command, "spec": {"restartPolicy": "OnFailure"}}


def kill_between(bed: NodeBed, parts: Iterable[Process], pods: int) -> None:
    """Each part in turn, whenever some more of so many pods are done; until all are."""

    def is_beyond(before: int) -> bool:
        done = _succeeded(bed)
        return done > before or done == pods

    for part in parts:
        before = _succeeded(bed)
        bed.await_that(lambda before=before: is_beyond(before), "some are done")  # type: ignore[misc]
        start_again(part, Process.kill)
    bed.await_that(lambda: is_beyond(pods), "all are done")


def _succeeded(bed: NodeBed) -> int:
    """Of the pods; none may have failed."""
    found = json.loads(bed.kubectl("get", "pods", "-o", "json"))["items"]
    failed = [each["status"] for each in found if each["status"]["phase"] == "Failed"]
    assert not failed, json.dumps(failed, indent=1)
    return sum(each["status"]["phase"] == "Succeeded" for each in found)
