"""`dovetail explain pod`, as a user sees it; and `dovetail explain` as ever."""

from __future__ import annotations

import click
import msgspec
from click.testing import CliRunner, Result

from dovetail.cli.ask import explain_pod
from dovetail.cli.main import main
from dovetail.cli.support.exits import LocalFailure, ServerUnreachable
from dovetail.kube.classes.pod_chain import chain_of
from tests.kube.classes.test_pod_chain import device, event, pod


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments])


def test_the_chain_is_shown_link_by_link() -> None:
    states = [{"name": "main", "state": {"running": {}}}]
    given = event("Allocated", "main: CPUs 2-3", "dovetail-agent", "Normal")
    chain = chain_of(pod(containerStatuses=states), devices=device(), events=[given])
    assert list(explain_pod.lines(chain)) == [
        "ns/p: Running on node n1",
        "  main asks for 1 of class gpu",
        "    -> g0 by device plugin vendor.com/gpu [ID 0000:3b:00.0, memory=80G]",
        "  given on the node: main: CPUs 2-3",
        "  container main: running",
    ]


def test_so_is_where_it_ended() -> None:
    chain = chain_of(pod(phase="Pending"), devices=device(healthy=False), events=[event("F", "x")])
    *_, one, last = explain_pod.lines(chain)
    assert "not healthy" in one
    assert click.unstyle(last) == "  stopped at node: F: x"


def test_programs_get_all_of_it() -> None:
    plain = msgspec.to_builtins(chain_of(pod(), devices=device()))
    assert plain["devices"][0]["class"] == "gpu"
    assert plain["stopped"] is None


def test_without_a_way_to_the_cluster_it_says_so() -> None:
    found = ran("pod", "p", "--kubeconfig", "/nowhere")
    assert found.exit_code == LocalFailure.exit_code
    assert "/nowhere" in found.stderr


def test_requests_are_explained_as_ever() -> None:
    assert "say what to look for" in ran().stderr
    assert "is no query" in ran("--host", "h", "pods").stderr
    # Options after the query, too.
    after = ran("resources=VCPU:1", "--server", "http://127.0.0.1:9")
    assert after.exit_code == ServerUnreachable.exit_code
    assert "pod " in ran("--help").stdout
