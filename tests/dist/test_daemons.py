"""Every daemon starts from the wheel and answers; the checkout is not there for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from zipfile import ZipFile

import pytest

from dovetail.kube import manifests
from dovetail.node.topology import synthetic, write
from tests.dist import steps
from tests.kube.scheduler import real
from tests.support.kube.cluster import OK, Cluster
from tests.support.paths import ROOT
from tests.support.processes import Process, reserved_port

# The first test waits for the installation.
pytestmark = pytest.mark.timeout(900)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"


def said(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=steps.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(port: int, path: str) -> int:
    """The status; 0 if nobody answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_it_is_whole(installed: Path, tmp_path: Path) -> None:
    python = installed.with_name("python")
    where = said(python, "-c", "import dovetail; print(dovetail.__file__)", cwd=tmp_path)
    assert installed.parents[1] in Path(where.strip()).parents
    assert "No broken requirements" in said(python, "-m", "pip", "check", cwd=tmp_path)
    assert said(installed, "manifests", cwd=tmp_path) == manifests.text()


def test_each_command_has_its_help(installed: Path, tmp_path: Path) -> None:
    """Verbs are imported when they are used: one that lacks a module is found here."""
    for verb in ("serve", "scheduler", "operator", "agent", "manifests", "db", "simulate"):
        assert said(installed, verb, "--help", cwd=tmp_path).startswith("Usage:")


def test_the_server_is_ready(installed: Path, tmp_path: Path) -> None:
    with reserved_port() as port:
        command = [installed, "serve", "--port", port, "--auth", "noauth2", "--policy", "open"]
        command += ["--database", f"sqlite:///{tmp_path / 'ledger.db'}"]
        with Process(command, tmp_path / "serve.log", cwd=tmp_path) as server:
            server.await_ready(lambda: answer(port, "/readyz") == OK)
            assert answer(port, "/livez") == OK
            assert server.stop()


def test_the_console_is_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Page, script and styles: whoever installs it needs no Node."""
    with reserved_port() as port:
        command = [installed, "serve", "--demo", "--port", port, "--auth", "noauth2"]
        command += ["--policy", "open", "--database", f"sqlite:///{tmp_path / 'ledger.db'}"]
        with Process(command, tmp_path / "serve.log", cwd=tmp_path) as server:
            server.await_ready(lambda: answer(port, "/readyz") == OK)
            page = body(port, "/console")
            assert "rack1-host1" in page
            parts = re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page)
            assert {Path(part).suffix for part in parts} >= {".js", ".css"}
            assert [answer(port, part) for part in parts] == [OK] * len(parts)


@pytest.mark.usefixtures("installed")
def test_the_source_archive_builds_the_same_without_node(tmp_path: Path) -> None:
    """It carries the bundle beside the sources that it was built from."""
    archive = next((ROOT / "dist").glob("dovetail-*.tar.gz"))
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = next(tmp_path.glob("dovetail-*"))
    assert (unpacked / "console/package-lock.json").is_file()
    building = f"{sys.executable} -m hatchling build -t wheel -d again"
    steps.play(f"PATH=/nowhere {building}", cwd=unpacked)
    wheels = [next(folder.glob("*.whl")) for folder in (ROOT / "dist", unpacked / "again")]
    ours, theirs = ({each.filename for each in ZipFile(path).filelist} for path in wheels)
    assert ours == theirs
    assert any(name.startswith("dovetail/rest/console/static/assets/") for name in ours)


def body(port: int, path: str) -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def holder(cluster: Cluster, namespace: str, name: str) -> str:
    status, told = cluster.request("GET", LEASES.format(namespace, name))
    return str(json.loads(told)["spec"].get("holderIdentity", "")) if status == OK else ""


def leads(cluster: Cluster, process: Process, name: str) -> Callable[[], bool]:
    return lambda: f"_{process.pid}_" in holder(cluster, "default", name)


def test_scheduler_and_operator_lead(
    installed: Path, own_cluster: Cluster, database: str, tmp_path: Path
) -> None:
    cluster = own_cluster
    both = manifests.text(["crds", "machines-crds"])
    cluster.kubectl("apply", "--server-side", "-f", "-", given=both)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    shared = ("--kubeconfig", cluster.kubeconfig, "--database", database)
    with reserved_port() as extender, reserved_port() as first, reserved_port() as second:
        scheduler = Process(
            [
                *(installed, "scheduler", *shared, "--lease-namespace", "default"),
                *("--metrics-port", first, "--extender-listen", f"127.0.0.1:{extender}"),
            ],
            tmp_path / "scheduler.log",
            cwd=tmp_path,
        )
        operator = Process(
            [*(installed, "operator", *shared), "--namespace", "default", "--metrics-port", second],
            tmp_path / "operator.log",
            cwd=tmp_path,
        )
        with scheduler, operator:
            scheduler.await_ready(lambda: answer(first, "/readyz") == OK)
            operator.await_ready(lambda: answer(second, "/readyz") == OK)
            cluster.await_that(leads(cluster, scheduler, "dovetail-scheduler"), "leader")
            cluster.await_that(leads(cluster, operator, "dovetail-operator"), "leader")
            assert asked(extender) == {"NodeNames": ["a"]}
            assert operator.stop()
            assert scheduler.stop()


def asked(port: int) -> dict[str, list[str]]:
    """What the extender answers about a pod that wants no devices."""
    pod = real.pod_object("any", "default", {})
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    body = json.dumps({"Pod": pod, "NodeNames": ["a"]})
    connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
    found = json.loads(connection.getresponse().read())
    connection.close()
    return {key: value for key, value in found.items() if value}


def test_agent_and_plugins_start_on_a_node(installed: Path, tmp_path: Path) -> None:
    node = tmp_path / "n"
    write(synthetic(), node)
    for name in ("plugins", "pods"):
        (node / name).mkdir()
    places = [f"--sysfs={node / 'sys'}", f"--plugins-directories={node / 'plugins'}"]
    agent = Process(
        [
            *(installed, "agent", "--feature-gates=QoSResourceManager=true", *places),
            *(f"--state-dir={node / 'state'}", f"--control-socket={node / 'c.sock'}"),
            *(f"--kubelet-root={node}", f"--pod-resources-socket={node / 'p.sock'}"),
            *("--pods-source=directory", f"--pods-directory={node / 'pods'}"),
            *("--metrics-address=", f"--runtime-socket={node / 'runtime.sock'}"),
            f"--runtime-listen={node / 'cri.sock'}",
        ],
        tmp_path / "agent.log",
        cwd=tmp_path,
    )
    plugin = Process(
        [
            *(installed, "agent", "plugin", "cpu", "--roles", ROOT / "packaging/roles.toml"),
            *(f"--sysfs={node / 'sys'}", f"--socket-dir={node / 'plugins'}"),
            f"--state-dir={node / 'cpu'}",
        ],
        tmp_path / "plugin.log",
        cwd=tmp_path,
    )
    with agent, plugin:
        asking = (installed, "agent", "plugins", f"--control-socket={node / 'c.sock'}")

        def is_known() -> bool:
            done = subprocess.run(asking, capture_output=True, text=True, check=False)
            return done.returncode == 0 and "cpu" in done.stdout

        agent.await_ready(is_known)
        plugin.check()
