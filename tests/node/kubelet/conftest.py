"""A real node for the tests of a module: containerd, agent, plugins and an unmodified kubelet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.node.kubelet.bed import NodeBed, node_bed


@pytest.fixture(scope="module")
def shared_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeBed]:
    """With the proxy; tests leave its parts running."""
    with node_bed(tmp_path_factory.mktemp("bed")) as bed:
        yield bed


@pytest.fixture
def bed(shared_bed: NodeBed) -> Iterator[NodeBed]:
    """Without pods, before and afterwards."""
    yield shared_bed
    shared_bed.delete_pods()
