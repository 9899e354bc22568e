"""The tour of docs/resource-classes.md, played on the demo cluster.

`python -m tests.kube.tour` writes what the commands print now into the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.kube.demo import a_demo_cluster
from tests.support.kube.tour import played
from tests.support.paths import ROOT

PAGE = ROOT / "docs/resource-classes.md"

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, a_demo_cluster(Path(place)) as demo_cluster:
        PAGE.write_text(played(PAGE, demo_cluster), encoding="utf-8")
