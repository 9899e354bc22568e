"""The end of docs/resource-classes.md, played on a real node: a device in a container.

`python -m tests.node.kubelet.tour` writes what the commands print now into the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.node.kubelet.publishing import PublishingBed, publishing_bed
from tests.support.kube.tour import Scene, played
from tests.support.paths import ROOT

PAGE = ROOT / "docs/resource-classes.md"
NAME = "node tour"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train, annotations: {kubernetes.io/pod-role: web}}
spec:
  schedulerName: dovetail
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: localhost/dovetail-test:1
      resources:
        limits: {cpu: 100m, memory: 32Mi, resourceclass.dovetail.dev/large: "1"}
"""


def page_now(world: PublishingBed, directory: Path) -> str:
    """The page with what the commands of its second tour print on this node."""
    (directory / "pod.yaml").write_text(POD)
    return played(PAGE, Scene(directory, world.bed.cluster), NAME)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as place,
        publishing_bed(Path(place)) as bed,
    ):
        bed.await_available(1)
        PAGE.write_text(page_now(bed, Path(place)), encoding="utf-8")
