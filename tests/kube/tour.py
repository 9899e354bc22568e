"""The tour of docs/resource-classes.md, played on the demo cluster.

`python -m tests.kube.tour` writes what the commands print now into the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from tests.kube.demo import Demo, a_demo_cluster
from tests.support.page import BLOCK, indented
from tests.support.paths import DOVETAIL, ROOT

PAGE = ROOT / "docs/resource-classes.md"
TOUR = re.compile(r"(?<=<!-- tour: begin -->\n).*(?=<!-- tour: end -->)", re.DOTALL)


def played(demo: Demo) -> str:
    """The page with what the commands of the tour print now, on a cluster that is new."""
    page = PAGE.read_text(encoding="utf-8")
    found = TOUR.search(page)
    assert found, "the page has a tour"
    parts, at = [], 0
    for block in BLOCK.finditer(found[0]):
        parts += [found[0][at : block.start()], f"    $ {block[1]}\n"]
        parts += [indented(run(demo, block[1]))]
        at = block.end()
    return page[: found.start()] + "".join(parts) + found[0][at:] + page[found.end() :]


def run(demo: Demo, line: str) -> str:
    path = f"{DOVETAIL.parent}:{demo.cluster.programs}:{os.environ['PATH']}"
    found = {
        **os.environ,
        "PATH": path,
        "KUBECONFIG": str(demo.cluster.kubeconfig),
        "DOVETAIL_SERVER": demo.server.url,
        "DOVETAIL_TOKEN": "admin",
        "KUBECACHEDIR": str(demo.directory / "kubectl"),
    }
    done = subprocess.run(
        line,
        shell=True,
        cwd=demo.directory,
        env=found,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=90,
    )
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, a_demo_cluster(Path(place)) as demo_cluster:
        PAGE.write_text(played(demo_cluster), encoding="utf-8")
