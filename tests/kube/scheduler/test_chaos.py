"""Schedulers killed while their claims are not yet bindings; `chaos.py` does it for longer."""

from __future__ import annotations

import pytest

from tests.kube.scheduler.chaos import Chaos
from tests.support.kube.cluster import Cluster


@pytest.mark.parametrize("drivers", [False, True], ids=["annotated", "drivers"])
@pytest.mark.parametrize("racing", [False, True], ids=["leader", "racing"])
def test_no_device_is_held_twice_and_no_pod_lost(
    own_cluster: Cluster, database: str, racing: bool, drivers: bool
) -> None:
    Chaos(own_cluster, database, racing=racing, drivers=drivers).run(kills=3, restarts=1)
