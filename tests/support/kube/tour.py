"""Tours: pages whose commands are played on a demo cluster, so that what they show is what is
printed. Between `<!-- tour: begin -->` and `<!-- tour: end -->` every command is run, in order; a
page with a second tour gives that another name."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.support.kube.cluster import Cluster
from tests.support.page import BLOCK, indented
from tests.support.paths import DOVETAIL
from tests.support.server import Server

TOUR = r"(?<=<!-- {0}: begin -->\n).*(?=<!-- {0}: end -->)"
VARYING = re.compile(
    r"\b\d+(?:s|m\d*s?)\b|(?<=hash\":\")[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
)
"""Ages, hashes, uids and times."""
GAP = re.compile(r"(?<=\S) {2,}")
"""Between two columns."""


class Scene:
    """A cluster, and a directory with files for the commands."""

    def __init__(self, directory: Path, cluster: Cluster, **environment: str) -> None:
        self.directory = directory
        self.cluster = cluster
        self.environment = environment


class Demo(Scene):
    """With a server on the cluster's ledger."""

    def __init__(self, directory: Path, cluster: Cluster, server: Server) -> None:
        super().__init__(directory, cluster, DOVETAIL_SERVER=server.url, DOVETAIL_TOKEN="admin")
        self.server = server


def played(page: Path, demo: Scene, name: str = "tour") -> str:
    """The page with what the commands of its tour print now."""
    text = page.read_text(encoding="utf-8")
    found = re.search(TOUR.format(name), text, re.DOTALL)
    assert found, "the page has a tour"
    parts, at = [], 0
    for block in BLOCK.finditer(found[0]):
        parts += [found[0][at : block.start()], f"    $ {block[1]}\n"]
        parts += [indented(run(demo, block[1]))]
        at = block.end()
    return text[: found.start()] + "".join(parts) + found[0][at:] + text[found.end() :]


def without_varying(text: str) -> str:
    """With an ellipsis for whatever is another each time, and columns of any width."""
    return GAP.sub("  ", VARYING.sub("…", text))


def run(demo: Scene, line: str) -> str:
    path = f"{DOVETAIL.parent}:{demo.cluster.programs}:{os.environ['PATH']}"
    found = {
        **os.environ,
        "PATH": path,
        "KUBECONFIG": str(demo.cluster.kubeconfig),
        **demo.environment,
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
