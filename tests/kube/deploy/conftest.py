"""Clusters whose pods get somewhere: with a scheduler, and nodes that kwok plays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kube.conftest import needs_kubernetes
from tests.support.kube.cluster import Cluster


@pytest.fixture(scope="package")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """Two, shared: a test takes away what it made."""
    needs_kubernetes()
    with ExitStack() as stack:
        yield (
            running(stack, tmp_path_factory.mktemp("east")),
            running(stack, tmp_path_factory.mktemp("west")),
        )


def running(stack: ExitStack, directory: Path) -> Cluster:
    cluster = stack.enter_context(Cluster.running(directory))
    cluster.start_controllers()
    cluster.start_scheduler()
    cluster.start_kwok(grace=False)
    return cluster
