"""Ways to a container that runs: through API server, kubelet, proxy and runtime, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.node.kubelet.seen import ON_FIRST
from tests.support.kube.cluster import OK
from tests.support.node.kubelet.bed import NodeBed, container_id, statuses
from tests.support.processes import Process

PORT = 18080
WELCOME = f"echo welcome > /tmp/index.html; exec httpd -f -p {PORT} -h /tmp"
FORWARDED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")


@contextmanager
def kubectl(bed: NodeBed, directory: Path, *arguments: str) -> Iterator[Process]:
    """One that goes on until it is ended."""
    command = [bed.cluster.programs / "kubectl", "--kubeconfig", bed.cluster.kubeconfig]
    process = Process([*command, *arguments], directory / "kubectl.log")
    process.start()
    try:
        yield process
    finally:
        process.kill()


def test_exec_with_input(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    assert bed.kubectl("exec", "-i", "web", "--", "cat", given="some words\n") == "some words\n"
    assert "exit code 7" in bed.kubectl("exec", "web", "--", "sh", "-c", "exit 7", check=False)


def test_attach(bed: NodeBed) -> None:
    script = "read words; echo heard $words"
    about = {"stdin": True, "stdinOnce": True, "command": ["sh", "-c", script]}
    bed.run_pod("web", role="web", spec={"restartPolicy": "Never"}, **about)
    bed.kubectl("attach", "-i", "web", given="it\n")
    bed.await_phase("web", "Succeeded")
    assert bed.logs("web") == "heard it\n"


def test_logs(bed: NodeBed, tmp_path: Path) -> None:
    script = "echo first; while ! [ -e /tmp/go ]; do sleep 0.1; done; echo second; sleep 3600"
    bed.run_pod("web", role="web", command=["sh", "-c", script])
    bed.await_that(lambda: bed.logs("web") == "first\n", "its first line", about="web")
    with kubectl(bed, tmp_path, "logs", "-f", "web") as following:
        following.await_ready(lambda: following.output == "first\n")
        bed.exec("web", "touch", "/tmp/go")
        following.await_ready(lambda: following.output == "first\nsecond\n")


def test_port_forward(bed: NodeBed, tmp_path: Path) -> None:
    bed.run_pod("web", role="web", command=["sh", "-c", WELCOME])
    with kubectl(bed, tmp_path, "port-forward", "web", f"0:{PORT}") as forwarding:
        forwarding.await_ready(lambda: FORWARDED.search(forwarding.output))
        found = FORWARDED.search(forwarding.output)
        assert found
        bed.await_that(lambda: answer_at(int(found[1])) == b"welcome\n", "an answer", about="web")


def answer_at(port: int) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/index.html")
        return connection.getresponse().read()
    except OSError:
        return b""
    finally:
        connection.close()


def test_probes(bed: NodeBed) -> None:
    """Of HTTP, and of commands, which pass the proxy."""
    present = ["test", "-e", "/tmp/index.html"]
    often = {"periodSeconds": 1, "timeoutSeconds": 30}
    bed.create_pod(
        "web",
        role="web",
        command=["sh", "-c", WELCOME],
        spec={"hostNetwork": True},
        startupProbe={"exec": {"command": present}, "failureThreshold": 60, **often},
        livenessProbe={"exec": {"command": present}, "failureThreshold": 1, **often},
        readinessProbe={"httpGet": {"path": "/index.html", "port": PORT}, **often},
    )
    first = bed.await_pod("web", is_ready, "it is ready")
    bed.exec("web", "rm", "/tmp/index.html")
    bed.await_pod(
        "web",
        lambda pod: container_id(pod) != container_id(first) and is_ready(pod),
        "another container is ready",
    )
    assert bed.pinned("web") == ON_FIRST


def is_ready(pod: dict[str, Any]) -> bool:
    found = statuses(pod)
    return bool(found) and all(each["ready"] for each in found)


def test_statistics(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    path = f"/api/v1/nodes/{bed.node.name}/proxy/stats/summary"

    def told() -> bool:
        status, said = bed.cluster.request("GET", path)
        pods = json.loads(said)["pods"] if status == OK else []
        mine = [pod for pod in pods if pod["podRef"]["name"] == "web"]
        containers = [each for pod in mine for each in pod.get("containers", [])]
        return any("workingSetBytes" in each.get("memory", {}) for each in containers)

    bed.await_that(told, "its memory in the summary", about="web")
