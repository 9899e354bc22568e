"""Host ports: the same number on one address of one node goes to one pod."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.podfit.objects import Pod
from tests.podfit.building import Fleet, node, pod


def with_port(name: str, number: int, ip: str = "", protocol: str = "TCP", **more: Any) -> Pod:
    port = {"containerPort": 80, "hostPort": number, "hostIP": ip, "protocol": protocol}
    return pod(name, containers=[{"name": "c", "ports": [port]}], **more)


@pytest.mark.parametrize(
    ("there", "asked", "fits"),
    [
        (("", "TCP"), ("", "TCP"), False),
        (("", "TCP"), ("", "UDP"), True),
        (("127.0.0.1", "TCP"), ("127.0.0.2", "TCP"), True),
        (("127.0.0.1", "TCP"), ("127.0.0.1", "TCP"), False),
        (("127.0.0.1", "TCP"), ("0.0.0.0", "TCP"), False),
        (("", "TCP"), ("127.0.0.1", "TCP"), False),
    ],
)
def test_addresses_and_protocols(
    there: tuple[str, str], asked: tuple[str, str], fits: bool
) -> None:
    fleet = Fleet([node("n")], [with_port("there", 8080, *there, on="n")])
    assert fleet.fitting(with_port("p", 8080, *asked)) == ("n" if fits else "")
    assert fleet.fitting(with_port("p", 8081, *asked)) == "n"


def test_a_port_is_free_again_when_its_pod_is_gone() -> None:
    fleet = Fleet([node("n")], [with_port("there", 80, on="n")])
    ask = with_port("p", 80)
    assert fleet.why(ask, "n") == "host port 80/TCP is in use on the node"
    fleet.table.remove_pod("there")
    assert fleet.fitting(ask) == "n"


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    init = {"name": "i", "ports": ports}
    fleet = Fleet([node("n")], [with_port("there", 80, on="n")])
    assert fleet.fitting(pod("p", initContainers=[init])) == "n"
    assert fleet.fitting(pod("p", initContainers=[{**init, "restartPolicy": "Always"}])) == ""
