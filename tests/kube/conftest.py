"""Clusters for tests: one that a worker's tests share, or one of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kube import assets
from tests.support.kube.cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Shared: a test takes away what it made, and its nodes and classes have names of their own."""
    needs_kubernetes()
    with Cluster.running(tmp_path_factory.mktemp("cluster")) as running:
        running.start_controllers()
        yield running


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """For tests that look at all nodes there are, or stop and start parts of the cluster."""
    needs_kubernetes()
    with Cluster.running(tmp_path) as running:
        running.start_controllers()
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own in the shared cluster."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.make_namespace(name)
    yield name
    cluster.drop_namespace(name)


def needs_kubernetes() -> None:
    lacking = assets.missing()
    if lacking:
        pytest.skip(f"needs Kubernetes, which `make kube` builds; missing: {', '.join(lacking)}")
