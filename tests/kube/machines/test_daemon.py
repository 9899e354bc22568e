"""Operators as processes: they elect a leader, and another when it is gone."""

from __future__ import annotations

from pathlib import Path

from tests.support import databases
from tests.support.kube import operator
from tests.support.kube.cluster import Cluster


def test_another_replica_leads_when_the_leader_was_killed(
    own_cluster: Cluster, tmp_path: Path, sqlite_with_tables: str
) -> None:
    database = databases.copied(sqlite_with_tables, tmp_path / "ledger.db")
    operator.install(own_cluster)
    with (
        operator.running(own_cluster, database, name="first") as first,
        operator.running(own_cluster, database, name="second") as second,
    ):
        own_cluster.await_that(lambda: first.leads or second.leads, "leader")
        leader, other = (first, second) if first.leads else (second, first)
        leader.kill()
        own_cluster.await_that(lambda: other.leads, "other leader")
        leader.start()
        assert "dovetail_kube_leading" in leader.told("/metrics")
        assert other.leads
