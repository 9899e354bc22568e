"""`dovetail token`: what it prints is an entry that the server understands."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.rest.auth.tokens import entries, fingerprint


@pytest.mark.parametrize("user", ["ops", 'quo"te', "back\\slash", "line\nbreak", "Zoë \U0001f41d"])
def test_the_entry_holds_the_hash_of_the_token_that_is_shown(tmp_path: Path, user: str) -> None:
    made = CliRunner().invoke(
        main, ["token", user, "--role", "admin", "--role", "reader", "--project", "blue"]
    )
    (tmp_path / "tokens.toml").write_text(made.stdout, encoding="utf-8")
    (entry,) = entries(tmp_path / "tokens.toml")
    assert (entry.user, entry.roles, entry.project) == (user, ("admin", "reader"), "blue")
    assert entry.sha256 == fingerprint(made.stderr.split()[-1])
