"""A real node for the tests of a module: containerd, agent, plugins and an unmodified kubelet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kube import assets
from tests.support.node.kubelet.bed import NodeBed, node_bed
from tests.support.node.kubelet.node import ROLES


@pytest.fixture(scope="package", autouse=True)
def _possible() -> None:
    lacking = assets.missing()
    if lacking:
        pytest.skip(f"needs Kubernetes, which `make kube` builds; missing: {', '.join(lacking)}")
    if os.getuid() != 0:
        pytest.skip("only root can make namespaces and cgroups")


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    """Of the module's bed; modules that want another say so."""
    return {}


@pytest.fixture(scope="module")
def shared_bed(
    tmp_path_factory: pytest.TempPathFactory, options: dict[str, Any]
) -> Iterator[NodeBed]:
    """Tests leave its parts running."""
    with node_bed(tmp_path_factory.mktemp("bed"), **options) as bed:
        yield bed


@pytest.fixture
def bed(shared_bed: NodeBed) -> Iterator[NodeBed]:
    """Without pods and with the usual roles, before and afterwards."""
    shared_bed.node.revive()
    yield shared_bed
    shared_bed.node.revive()
    shared_bed.delete_pods()
    shared_bed.node.write_roles(ROLES)
