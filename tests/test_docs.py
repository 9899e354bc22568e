"""The pages cannot drift: what they name exists, and numbered tests have their row in a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from dovetail.machines.selling.waiting import WaitReason
from tests.support.paths import ROOT

PACKAGE = ROOT / "src/dovetail"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MAPS = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/glossary.md",
    ROOT / "docs/specifications.md",
    *sorted((ROOT / "docs/decisions").glob("*.md")),
    *sorted((ROOT / "docs/ambiguities").glob("*.md")),
]
"""Pages whose every path is one of the project's."""

CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[A-Za-z0-9_.{},*-]+(?:/[A-Za-z0-9_.{},*-]*)+")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
BRACES = re.compile(r"\{([^{}]*)\}")
NUMBERED = re.compile(r"def (test_(?:(row|defect|inconsistency)_)?(\d+)_\w*)")
TABLE_ROW = re.compile(r"^\| (\d+) \|", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def expanded(path: str) -> Iterator[str]:
    """`a/{b,c}.py` as `a/b.py` and `a/c.py`."""
    choices = [found.split(",") for found in BRACES.findall(path)]
    for each in product(*choices):
        rest = iter(each)
        yield BRACES.sub(lambda _, rest=rest: next(rest), path)  # type: ignore[misc]


def paths_in(text: str) -> Iterator[str]:
    tops = {each.name for each in (*PACKAGE.iterdir(), *ROOT.iterdir()) if each.is_dir()}
    for code in CODE.findall(text):
        if PATH.fullmatch(code) and code.split("/")[0] in tops:
            yield from expanded(code)


@pytest.mark.parametrize("page", MAPS, ids=name)
def test_every_path_that_a_map_names_exists(page: Path) -> None:
    missing = [
        path
        for path in paths_in(page.read_text(encoding="utf-8"))
        if not any(list(base.glob(path)) for base in (PACKAGE, ROOT))
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def numbered_tests(*folders: str) -> Iterator[tuple[str, int]]:
    for folder in folders:
        root = ROOT / "tests" / folder
        for path in [root] if root.is_file() else sorted(root.rglob("test_*.py")):
            for found in NUMBERED.finditer(path.read_text(encoding="utf-8")):
                yield f"{found[2] or 'differential'}", int(found[3])


@pytest.mark.parametrize(
    ("page", "kind", "folders", "untested"),
    [
        ("resource-classes", "row", ["core", "devices", "kube", "service"], set()),
        ("qos-resource-manager", "defect", ["node"], {10}),
        ("placement", "differential", ["differential/test_defects.py"], set()),
        ("machines", "inconsistency", ["machines", "kube"], {16}),
        ("intents", "row", ["intents", "rest/intents"], set()),
    ],
)
def test_numbered_tests_and_rows_of_the_tables_belong_together(
    page: str, kind: str, folders: list[str], untested: set[int]
) -> None:
    text = (ROOT / "docs/ambiguities" / f"{page}.md").read_text(encoding="utf-8")
    rows = [int(number) for number in TABLE_ROW.findall(text)]
    tested = {number for of, number in numbered_tests(*folders) if of == kind}
    assert rows == sorted(set(rows))
    assert tested == set(rows) - untested


def test_every_reason_to_wait_has_a_row_that_says_what_to_do() -> None:
    page = (ROOT / "docs/machines-operator.md").read_text(encoding="utf-8")
    rows = [line.partition(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert not [each for each in WaitReason if not any(f"`{each}`" in row for row in rows)]


@pytest.mark.parametrize(
    ("module", "begin"),
    [
        ("kube/machines/metrics.py", "machines_"),
        ("kube/mirror/metrics.py", "mirror_"),
        ("service/intents/controllers/metrics.py", "controller_"),
    ],
)
def test_every_metric_of_a_daemon_is_on_its_page(module: str, begin: str) -> None:
    page = (ROOT / "docs/operation.md").read_text(encoding="utf-8")
    source = (PACKAGE / module).read_text(encoding="utf-8")
    names = re.findall(rf'"({begin}\w+)"', source)
    assert names
    assert not [each for each in names if f"`dovetail_{each}`" not in page]


MACHINES = ("machines", "kube/machines", "kube/manifests/machines", "service")


def named_tests(kind: str, folders: Sequence[str] = MACHINES) -> set[str]:
    """What comes after the kind in the names of tests."""
    name = re.compile(rf"def test_{kind}_(\d+|[a-z])_")
    paths = [path for each in folders for path in (ROOT / "tests" / each).rglob("test_*.py")]
    return {found for path in paths for found in name.findall(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize(
    ("kind", "row", "untested"),
    [
        ("letter", r"^\| ([a-z]) \|", {"p"}),
        ("defect", r"^\| defect (\d+) \|", set()),
    ],
)
def test_letters_and_defects_of_machines_have_their_tests(
    kind: str, row: str, untested: set[str]
) -> None:
    text = (ROOT / "docs/ambiguities/machines.md").read_text(encoding="utf-8")
    rows = re.findall(row, text, re.MULTILINE)
    assert len(rows) == len(set(rows)) >= 10
    assert named_tests(kind) == set(rows) - untested


@pytest.mark.parametrize(
    ("kind", "row", "number"),
    [("fault", r"^\| ([a-z]) \|", 9), ("ask", r"^\| ask (\d+) \|", 10)],
)
def test_faults_and_asks_of_intents_have_their_tests(kind: str, row: str, number: int) -> None:
    text = (ROOT / "docs/ambiguities/intents.md").read_text(encoding="utf-8")
    rows = re.findall(row, text, re.MULTILINE)
    assert len(rows) == len(set(rows)) == number
    assert named_tests(kind, ("intents", "rest/intents")) == set(rows)


def test_upstreams_tests_that_cannot_fail_are_written_anew() -> None:
    assert named_tests("vacuous") == {"1", "2", "3"}


def test_every_decision_is_dated_has_a_status_and_is_in_the_index() -> None:
    folder = ROOT / "docs/decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in sorted(folder.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^\* Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE), path.name
        assert re.search(r"^\* Status: (accepted|superseded by \d{3})$", text, re.MULTILINE)
        assert "## Alternatives" in text, path.name
        assert f"({path.name})" in index, path.name


FAULT_TESTS = (
    "tests/rest/server/test_postgresql_faults.py",
    "tests/rest/server/test_sqlite_faults.py",
    "tests/cli/run/test_database_faults.py",
)


def test_every_fault_of_the_database_that_operators_read_of_has_its_test() -> None:
    page = (ROOT / "docs/operation.md").read_text()
    section = page.partition("\n## Faults\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"`(test_\w+)`", section))
    written = set(re.findall(r"^def (test_\w+)", "".join(map(text_of, FAULT_TESTS)), re.MULTILINE))
    heads = ("| PostgreSQL |", "| SQLite |")
    assert all("`test_" in row for row in rows if not row.startswith(heads))
    assert named <= written


def text_of(path: str) -> str:
    return (ROOT / path).read_text()
