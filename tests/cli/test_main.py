"""The command as a whole: listed, completed and started without importing what is not needed."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from dovetail import __version__
from dovetail.cli.main import VERBS, main
from dovetail.cli.support import exits

HEAVY = {
    "alembic",
    "dovetail.engine",
    "dovetail.ledger",
    "dovetail.rest",
    "httpx2",
    "numpy",
    "psycopg",
    "rich",
    "sqlalchemy",
    "starlette",
    "structlog",
    "uvicorn",
}
CLIENTS = sorted(
    VERBS.keys() - {"serve", "scheduler", "operator", "db", "config", "token", "simulate"}
)


def imported_by(*arguments: str) -> set[str]:
    """The modules that a command leaves behind."""
    code = f"""
import sys
from dovetail.cli.main import main
try:
    main({list(arguments)!r})
finally:
    print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    assert not imported_by("--help") & HEAVY


def test_no_client_command_imports_anything_heavy() -> None:
    code = "from dovetail.cli.main import VERBS, main\nfrom importlib import import_module\n"
    code += f"for name in {CLIENTS!r}: import_module(VERBS[name].module)\n"
    code += "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY


def test_a_question_imports_nothing_heavy(demo: str) -> None:
    asked = imported_by("candidates", "-r", "VCPU:1", "--server", demo, "--token", "admin")
    assert "http.client" in asked
    assert not asked & HEAVY


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command
    assert command.name == name
    assert (command.help or "").partition("\n\n")[0].replace("\n", " ") == VERBS[name].summary


def test_help_tells_the_exit_codes() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    for code, meaning in exits.TABLE:
        assert f"{code}  {meaning}" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert f"_DOVETAIL_COMPLETE={shell}_complete" in script.output


def test_verbs_are_completed() -> None:
    environment = {
        "_DOVETAIL_COMPLETE": "bash_complete",
        "COMP_WORDS": "dovetail ca",
        "COMP_CWORD": "1",
    }
    done = CliRunner().invoke(main, [], prog_name="dovetail", env=environment)
    assert done.output.splitlines() == ["plain,candidates"]


def test_the_version() -> None:
    assert CliRunner().invoke(main, ["version"]).output.startswith(f"dovetail {__version__}\n")
