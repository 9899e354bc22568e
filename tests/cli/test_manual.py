"""Manual pages: one for each command, with all its options."""

from __future__ import annotations

from dovetail.cli.main import VERBS, main
from dovetail.cli.manual import pages


def test_every_command_has_a_page() -> None:
    found = dict(pages(main, "dovetail"))
    assert {f"dovetail-{name}.1" for name in VERBS} <= found.keys()
    assert "dovetail-db-upgrade.1" in found
    for name, text in found.items():
        sections = [line for line in text.splitlines() if line.startswith(".SH")]
        assert sections[:2] == [".SH NAME", ".SH SYNOPSIS"], name
        assert ".SH EXIT STATUS" in sections


def test_a_page_says_what_help_says() -> None:
    found = dict(pages(main, "dovetail"))
    completion = found["dovetail-completion.1"]
    assert "\\- Print the completion script of a shell." in completion
    assert '.nf\nbash:  eval "$(dovetail completion bash)"     in ~/.bashrc' in completion
    assert "\\fB\\-\\-server URL\\fP" in found["dovetail-tree.1"]
    assert ".BR dovetail\\-whatif (1)\nAsk about a fleet that might be." in found["dovetail.1"]
