"""Verdicts of all hosts on one request agree with what each host says when it is asked alone."""

from __future__ import annotations

import random

import pytest

from dovetail.rest.server.settings import RequestLimits
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.dovetail.views.test_fleet_map import random_fleet
from tests.rest.dovetail.views.test_holders import claim
from tests.rest.fleets import load, numa_hosts

EXPLAIN = "/dovetail/v1/explain"
VERDICTS = ("fits", "not_now", "never")


def test_each_host_has_one(client: Client) -> None:
    load(client, *numa_hosts(3))
    claim(client, "a", {"h1n0": {"VCPU": 8}, "h1n1": {"VCPU": 8}})
    found = client.get(f"{EXPLAIN}/hosts?resources=VCPU:4").json()
    assert (found["verdict"], found["complete"]) == ([0, 1, 0], True)
    whole = client.get(f"{EXPLAIN}/hosts?resources=VCPU:9").json()
    assert whole["verdict"] == [2, 2, 2]
    shown = client.get("/dovetail/v1/map").json()
    assert (found["version"], found["layout"]) == (shown["version"], shown["layout"])


@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_each_host_is_told_alone(client: Client, seed: int) -> None:
    choice = random.Random(seed)
    load(client, *random_fleet(choice))
    shown = client.get("/dovetail/v1/map").json()
    query = f"resources=VCPU:{choice.randint(1, 20)}&resources_N=SRIOV_NET_VF:1&group_policy=none"
    found = client.get(f"{EXPLAIN}/hosts?{query}").json()
    for uuid, verdict in zip(shown["hosts"]["uuid"], found["verdict"], strict=True):
        alone = client.get(f"{EXPLAIN}?{query}&in_tree={uuid}&in_tree_N={uuid}").json()
        assert alone["verdict"] == VERDICTS[verdict]


def test_what_there_was_no_time_for_is_unknown(serve: Make) -> None:
    client = serve(limits=RequestLimits(search_seconds=1e-9))
    load(client, *numa_hosts(3))
    found = client.get(f"{EXPLAIN}/hosts?resources=VCPU:4").json()
    assert found["complete"] is False
    assert 3 in found["verdict"]


def test_bad_requests_are_refused(client: Client) -> None:
    assert client.get(f"{EXPLAIN}/hosts?resources=CUSTOM_NOTHING:1").status_code == 400
    assert client.get(f"{EXPLAIN}/hosts?resources=VCPU:1", x_auth_token="mia").status_code == 403
