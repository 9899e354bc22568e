"""Configuration: which layer wins, what is refused and in which words, what is shown."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.cli.run.config import other_daemons, page
from dovetail.cli.run.settings import SERVER, ServerSettings
from dovetail.config.declaration import without_passwords
from dovetail.config.values import BadSettings
from dovetail.rest.server.policy import RULE_SETS
from tests.support.paths import ROOT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dovetail.toml"


def test_without_anything_the_defaults_hold() -> None:
    config, origins = SERVER.load(None, {}, {})
    assert config == ServerSettings()
    assert set(origins.values()) == {"default"}


def test_flags_win_over_environment_over_file_over_defaults(file: Path) -> None:
    file.write_text("port = 1\nworkers = 2\nhost = 'file'\n[max]\nbody_bytes = 5\n")
    environment = {"DOVETAIL_PORT": "3", "DOVETAIL_WORKERS": "4", "DOVETAIL_MAX_QUERY_BYTES": "6"}
    config, origins = SERVER.load(str(file), environment, {"port": "7"})
    assert (config.port, config.workers, config.host) == (7, 4, "file")
    assert (config.max.body_bytes, config.max.query_bytes) == (5, 6)
    assert origins["port"] == "flag --port"
    assert origins["workers"] == "environment DOVETAIL_WORKERS"
    assert origins["host"] == origins["max.body_bytes"] == f"file {file}"
    assert origins["max.fleet_bytes"] == "default"


def test_the_environment_may_name_the_file(file: Path) -> None:
    file.write_text("demo = true\n")
    assert SERVER.load(None, {"DOVETAIL_CONFIG": str(file)}, {}).settings.demo


def test_a_switch_can_be_turned_off_again(file: Path) -> None:
    file.write_text("demo = true\n")
    options = ["serve", "--config", str(file), "--no-demo", "--print-config"]
    assert "demo = false  # flag --demo" in CliRunner().invoke(main, options).output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("prot = 1", "dovetail.toml: unknown key prot; did you mean port?"),
        ("[max]\nbody = 1", "dovetail.toml: unknown key max.body; did you mean max.body_bytes?"),
        ("[sizes]\nbody = 1", "dovetail.toml: unknown key sizes; known are host, port,"),
        ("port = '8778'", "dovetail.toml: port: '8778' is not a whole number, at least 0 and"),
        ("port = 70000", "dovetail.toml: port: 70000 is not a whole number, at least 0 and at"),
        ("policy = 'lax'", "policy: 'lax' is not one of legacy, open, secure"),
        ("demo = 1", "dovetail.toml: demo: 1 is not true or false"),
        ("max = 1", "dovetail.toml: max is a section: write [max]"),
        ("port = ", "dovetail.toml: Invalid value (at end of document)"),
    ],
)
def test_what_a_file_may_not_say(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(BadSettings) as refusal:
        SERVER.load(str(file), {}, {})
    assert complaint in str(refusal.value)
    assert str(file.parent) in str(refusal.value)


@pytest.mark.parametrize(
    ("environment", "flags", "complaint"),
    [
        ({"DOVETAIL_PORT": "x"}, {}, "environment DOVETAIL_PORT: 'x' is not a whole number"),
        ({"DOVETAIL_DEMO": "perhaps"}, {}, "DOVETAIL_DEMO: 'perhaps' is not true or false"),
        ({}, {"max_search_seconds": "0"}, "--max-search-seconds: '0' is not a number, more than 0"),
        ({"DOVETAIL_CONFIG": "/no/such/file"}, {}, "configuration file /no/such/file: "),
    ],
)
def test_what_environment_and_flags_may_not_say(
    environment: dict[str, str], flags: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadSettings) as refusal:
        SERVER.load(None, environment, flags)
    assert complaint in str(refusal.value)


def test_the_command_refuses_what_the_layers_refuse() -> None:
    result = CliRunner().invoke(main, ["serve", "--port", "many"])
    assert result.exit_code == 2
    assert "--port: 'many' is not a whole number" in result.output


def test_the_printed_configuration_is_a_file_that_gives_the_same(file: Path) -> None:
    given = {
        "DOVETAIL_PORT": "9",
        "DOVETAIL_CORS_ORIGIN": 'https://a"b',
        "DOVETAIL_MAX_FLEET_BYTES": "7",
    }
    printed = CliRunner().invoke(main, ["serve", "--print-config"], env=given)
    assert printed.exit_code == 0
    file.write_text(printed.output)
    assert SERVER.load(str(file), {}, {}).settings == SERVER.load(None, given, {}).settings
    assert "port = 9  # environment DOVETAIL_PORT" in printed.output


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:geheim@db/x", "postgresql://me:***@db/x"),
        ("postgresql://me:ge@heim@db/x", "postgresql://me:***@db/x"),
        ("postgresql:///x?host=/run&password=geheim", "postgresql:///x?host=/run&password=***"),
        ("postgresql://me@db:5432/x", "postgresql://me@db:5432/x"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_passwords_are_masked(url: str, shown: str) -> None:
    assert without_passwords(url) == shown
    printed = CliRunner().invoke(main, ["serve", "--database", url, "--print-config"]).output
    assert tomllib.loads(printed)["database"] == shown
    assert "heim" not in printed


def test_the_database_commands_read_the_same_layers(file: Path, tmp_path: Path) -> None:
    file.write_text(f"database = 'sqlite:///{tmp_path}/from-file.db'\n")
    result = CliRunner().invoke(main, ["db", "upgrade", "--config", str(file)])
    assert result.exit_code == 0
    assert (tmp_path / "from-file.db").exists()


def test_every_setting_says_what_it_is_for() -> None:
    unsaid = [
        key
        for layers in (SERVER, *other_daemons().values())
        for key, setting in layers.settings.items()
        if not setting.description.endswith(".")
    ]
    assert unsaid == []


def test_no_two_settings_share_a_name() -> None:
    names = [setting.argument for setting in SERVER.settings.values()]
    assert sorted(set(names)) == sorted(names)


def test_every_rule_set_can_be_chosen() -> None:
    for name in RULE_SETS:
        assert SERVER.load(None, {}, {"policy": name}).settings.policy == name


def test_the_reference_page_is_up_to_date() -> None:
    """If not: `dovetail config reference > docs/configuration.md`."""
    assert (ROOT / "docs/configuration.md").read_text(encoding="utf-8") == page()
