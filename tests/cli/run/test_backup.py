"""`dovetail db backup` and `dovetail db restore`, as typed."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.ledger import open_ledger
from tests.ledger.world import make


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["db", *map(str, arguments)])
    return result.exit_code, result.output


def test_backup_and_restore(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    file = tmp_path / "fleet.backup"
    ledger = open_ledger(source)
    make(ledger, "host", VCPU=8)
    ledger.close()
    code, output = run("backup", file, "--database", source)
    assert (code, "1 providers, 1 inventories" in output) == (0, True)
    assert file.stat().st_mode & 0o077 == 0
    code, output = run("restore", file, "--database", target)
    assert (code, "1 providers, 1 inventories" in output) == (0, True)
    code, output = run("restore", file, "--database", target)
    assert (code, "the ledger is not empty: it has 1 providers" in output) == (6, True)


def test_what_cannot_be_done_is_told_in_a_line(tmp_path: Path) -> None:
    code, output = run("backup", tmp_path / "x", "--database", f"sqlite:///{tmp_path}/no.db")
    assert code == 6
    assert output.startswith("Error: cannot back up the ledger: there are no tables")
    code, output = run("backup", tmp_path / "x", "--database", "postgresql://me:pw@127.0.0.1:1/x")
    assert code == 6
    assert output.startswith("Error: the database cannot be reached")
    assert "pw" not in output
    code, output = run("restore", tmp_path / "x", "--database", f"sqlite:///{tmp_path}/no.db")
    assert code == 6
    assert "Error: cannot read" in output
