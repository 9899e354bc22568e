"""`dovetail manifests`: all parts or some, as documents that kubectl takes; no server needed."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.kube.manifests import OPTIONAL_PARTS, PARTS


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["manifests", *arguments])


def objects(*parts: str) -> list[tuple[str, str]]:
    """Kind and name of each."""
    found = run(*parts)
    assert found.exit_code == 0, found.output
    documents = [each for each in yaml.safe_load_all(found.stdout) if each is not None]
    return [(each["kind"], each["metadata"]["name"]) for each in documents]


def test_each_part_is_printed_by_its_name() -> None:
    assert objects("crds") == [("CustomResourceDefinition", "resourceclasses.dovetail.dev")]
    assert ("ValidatingAdmissionPolicy", "use.resourceclasses.dovetail.dev") in objects("use")


def test_all_of_them_are_printed_one_after_the_other() -> None:
    assert objects() == [each for part in PARTS for each in objects(part)]
    assert objects("use", "crds") == objects("use") + objects("crds")
    assert objects("crds", "crds") == objects("crds")


def test_what_is_optional_is_printed_when_it_is_asked_for() -> None:
    webhook = ("MutatingWebhookConfiguration", "dovetail-webhook")
    assert webhook in objects("machines-webhook")
    assert webhook not in objects()


def listed(*parts: str) -> list[list[str]]:
    return [line.split(maxsplit=1) for line in run("--list", *parts).stdout.splitlines()]


def test_they_are_listed_with_what_they_hold() -> None:
    assert listed() == [["PART", "HOLDS"], *map(list, (PARTS | OPTIONAL_PARTS).items())]
    assert listed("use") == [["PART", "HOLDS"], ["use", PARTS["use"]]]


@pytest.mark.parametrize("name", ["rbac", "crds.yaml", ""])
def test_what_is_no_part_is_refused_with_those_there_are(name: str) -> None:
    found = run(name)
    assert found.exit_code == 2
    assert all(repr(part) in found.stderr for part in PARTS)
