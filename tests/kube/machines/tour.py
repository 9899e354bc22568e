"""The tours of machines, each on a cluster where nothing of it has happened.

`python -m tests.kube.machines.tour` writes what the commands print now into the pages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.kube.machines.demo import a_demo_cluster
from tests.kube.machines.imperator import a_cluster_of_imperator
from tests.support.kube.tour import Demo, played
from tests.support.paths import ROOT

TOURS: dict[str, Callable[[Path], AbstractContextManager[Demo]]] = {
    "machines.md": a_demo_cluster,
    "machines-recipes.md": a_demo_cluster,
    "machines-from-imperator.md": a_cluster_of_imperator,
}
"""By page: the cluster it is played on."""


def page_of(name: str) -> Path:
    return ROOT / "docs" / name


if __name__ == "__main__":
    for name, cluster in TOURS.items():
        with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as demo:
            page_of(name).write_text(played(page_of(name), demo), encoding="utf-8")
