"""The tours of machines, played on the demo cluster one after the other.

`python -m tests.kube.machines.tour` writes what the commands print now into the pages.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.kube.machines.demo import a_demo_cluster
from tests.support.kube.tour import played
from tests.support.paths import ROOT

PAGES = (ROOT / "docs/machines.md",)
"""Each leaves the cluster as it found it, but for what its namespaces hold."""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, a_demo_cluster(Path(place)) as demo_cluster:
        for page in PAGES:
            page.write_text(played(page, demo_cluster), encoding="utf-8")
