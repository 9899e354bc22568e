"""The recipe's image is built and run as the page says, and a scheduler leads out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.kube import manifests
from tests.dist import engine, steps
from tests.dist.engine import Engine
from tests.dist.test_daemons import answer, holder
from tests.kube.scheduler import real
from tests.support.kube.cluster import OK, Cluster
from tests.support.paths import ROOT
from tests.support.processes import Process, reserved_port

pytestmark = pytest.mark.timeout(900)
CONFINED = "--read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges"


@pytest.fixture(scope="module")
def built(installed: Path) -> Iterator[Engine]:
    """The image, and the file of a token that the page makes with it."""
    with engine.running(installed.with_name("python")) as made:
        script = steps.written("operation.md", "image")
        script = script.replace("tokens.toml", str(made.directory / "tokens.toml"))
        steps.play(script, more={"PATH": path(made)})
        yield made


def path(made: Engine) -> str:
    return f"{made.programs}:{steps.environment()['PATH']}"


def test_the_image_is_what_it_says(built: Engine) -> None:
    assert built("run", "--rm", "dovetail", "manifests") == manifests.text()
    user = built("run", "--rm", "--entrypoint=id", "dovetail", "-u")
    assert user.strip() == "10001"
    written = built("inspect", "dovetail", "--format={{.Config.Entrypoint}} {{.Config.Cmd}}")
    assert written.strip() == "[dovetail] [serve]"


def test_the_server_runs_as_the_page_runs_it(built: Engine, tmp_path: Path) -> None:
    with reserved_port() as port:
        script = steps.written("operation.md", "container")
        assert CONFINED in script
        script = script.replace("./tokens.toml", str(built.directory / "tokens.toml"))
        # Without a network of its own: a port that nobody else has.
        script = script.replace("podman run", f"exec podman run -e DOVETAIL_PORT={port}")
        about = {"PATH": path(built)}
        server = Process(["bash", "-c", script], tmp_path / "log", environment=about, cwd=ROOT)
        with server:
            server.await_ready(lambda: answer(port, "/readyz") == OK)
            assert answer(port, "/resource_providers") == 401, "it knows its tokens"
            server.send_signal(15)
            assert server.wait() == 0


def test_a_scheduler_leads_out_of_the_image(
    built: Engine, own_cluster: Cluster, tmp_path: Path
) -> None:
    """Confined as the Deployment confines it, with the account of a user who may read a file."""
    cluster = own_cluster
    real.install(cluster)
    cluster.kubeconfig.chmod(0o644)
    mounted = f"-v {cluster.kubeconfig}:/etc/kubeconfig:ro"
    flags = "--kubeconfig /etc/kubeconfig --lease-namespace default"
    ledger = "--database sqlite:////tmp/ledger.db"
    with reserved_port() as port:
        script = f"exec podman run {CONFINED} {mounted} dovetail scheduler {flags} {ledger}"
        command = ["bash", "-c", f"{script} --metrics-port {port}"]
        about = {"PATH": path(built)}
        with Process(command, tmp_path / "scheduler.log", environment=about) as process:
            process.await_ready(lambda: answer(port, "/readyz") == OK)
            cluster.await_that(
                lambda: holder(cluster, "default", "dovetail-scheduler") != "", "leader"
            )
            process.send_signal(15)
            assert process.wait() == 0
