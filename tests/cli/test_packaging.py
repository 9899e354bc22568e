"""What is shipped beside the package agrees with what the command understands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

from click.testing import CliRunner

from dovetail.cli.main import main
from dovetail.cli.run.settings import SERVER
from tests.support.paths import ROOT

PACKAGING = ROOT / "packaging"
UNIT = (PACKAGING / "dovetail.service").read_text(encoding="utf-8")


def test_the_example_configuration_is_understood() -> None:
    path = PACKAGING / "dovetail.toml"
    config, origins = SERVER.load(str(path), {}, {})
    assert config.policy == "secure"
    assert origins["tokens"] == f"file {path}"


def test_the_unit_starts_a_command_that_exists() -> None:
    line = re.search(r"^ExecStart=\S+/dovetail (.*)$", UNIT, re.MULTILINE)
    assert line is not None
    words = shlex.split(line[1].replace("/etc/dovetail", str(PACKAGING)))
    result = CliRunner().invoke(main, [*words, "--print-config"])
    assert result.exit_code == 0, result.output


def test_the_container_sets_only_variables_that_exist() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    used = set(re.findall(r"\bDOVETAIL_[A-Z_]+", text))
    assert used
    assert used <= {setting.variable for setting in SERVER.settings.values()}


def test_pages_install_what_can_be_installed() -> None:
    """No index has the name: it is the wheel that is installed, everywhere."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *PACKAGING.rglob("*")]
    for page in pages:
        if page.is_file() and "__pycache__" not in page.parts:
            text = page.read_text(encoding="utf-8")
            found = re.search(r"pip3? install (?:-\S+ )*['\"]?dovetail\b", text)
            assert found is None, f"{page.name}: {found}"


def test_the_container_is_of_the_wheel_and_of_hashed_packages() -> None:
    text = (PACKAGING / "Containerfile").read_text(encoding="utf-8")
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
    assert "COPY dist/dovetail-*.whl" in text


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        # Without systemd the form is all that can be looked at.
        ConfigParser(strict=False, interpolation=None).read_string(UNIT)
        return
    unit = tmp_path / "dovetail.service"
    unit.write_text(re.sub(r"^ExecStart=.*$", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
