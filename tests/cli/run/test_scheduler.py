"""`dovetail scheduler`: its settings, and what is told when it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.cli.run.scheduler import SCHEDULER
from dovetail.config.values import BadSettings
from dovetail.kube.daemon import address_of
from dovetail.kube.scheduler.settings import ExtenderSettings, LeaseSettings, SchedulerSettings


def test_flags_win_over_the_environment_and_that_over_the_defaults() -> None:
    environment = {"DOVETAIL_SCHEDULER_NAME": "theirs", "DOVETAIL_SCHEDULER_STRATEGY": "spread"}
    flags = {"name": "ours", "extender_listen": "127.0.0.1:1", "leader_elect": None}
    assert SCHEDULER.load(None, environment, flags).settings == SchedulerSettings(
        name="ours", strategy="spread", extender=ExtenderSettings(listen="127.0.0.1:1")
    )


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.toml"
    file.write_text('name = "filed"\nstrategy = "spread"\n[lease]\nnamespace = "kube-system"\n')
    environment = {"DOVETAIL_SCHEDULER_NAME": "theirs"}
    wanted = SchedulerSettings(
        name="theirs", strategy="spread", lease=LeaseSettings(namespace="kube-system")
    )
    assert SCHEDULER.load(str(file), environment, {}).settings == wanted
    named = {**environment, "DOVETAIL_SCHEDULER_CONFIG": str(file)}
    assert SCHEDULER.load(None, named, {}).settings == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stratgy = 'spread'", "unknown key stratgy; did you mean strategy?"),
        ("lease = 3", "lease is a section: write [lease]"),
        ("metrics_port = 'x'", "metrics_port: 'x' is not a whole number"),
        ("port = 1\n[", "scheduler.toml: "),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "scheduler.toml"
    file.write_text(text)
    done = CliRunner().invoke(main, ["scheduler", "--config", str(file)])
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_settings_of_the_server_are_not_those_of_the_scheduler() -> None:
    environment = {"DOVETAIL_DATABASE": "sqlite:///server.db"}
    assert SCHEDULER.load(None, environment, {}).settings == SchedulerSettings()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"strategy": "worst"}, "--strategy: 'worst' is not one of"),
        ({"metrics_port": "70000"}, "--metrics-port: '70000' is not a whole number"),
        ({"lease_seconds": "0"}, "--lease-seconds: '0' is not a number, more than 0"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(flags: dict[str, str], words: str) -> None:
    with pytest.raises(BadSettings) as told:
        SCHEDULER.load(None, {}, flags)
    assert words in str(told.value)


def test_a_kubeconfig_that_is_not_there_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    done = CliRunner().invoke(
        main, ["scheduler", "--kubeconfig", str(missing), "--database", database]
    )
    assert done.exit_code != 0
    assert str(missing) in done.output


@pytest.mark.parametrize("address", ["8888", "host:", ":1", "host:99999", "host:x"])
def test_an_address_that_is_none_is_told(tmp_path: Path, address: str) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster:"
        " c, user: u}}], clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users:"
        " [{name: u, user: {}}]}"
    )
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    command = ["scheduler", "--kubeconfig", str(config), "--database", database]
    done = CliRunner().invoke(
        main,
        [*command, "--extender-listen", address],
    )
    assert done.exit_code != 0
    assert "is not HOST:PORT" in done.output


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "dovetail.example:1"])
def test_whoever_comes_from_elsewhere_needs_a_certificate(address: str) -> None:
    with pytest.raises(BadSettings, match="is not loopback, and whoever can ask can bind pods"):
        address_of(ExtenderSettings(listen=address))
    assert address_of(ExtenderSettings(listen=address, client_ca="ca.crt"))
    assert address_of(ExtenderSettings(listen=address, open_beyond_loopback=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_loopback_it_may_be_open(host: str) -> None:
    given = f"[{host}]:8888" if ":" in host else f"{host}:8888"
    assert address_of(ExtenderSettings(listen=given)) == (host, 8888)
