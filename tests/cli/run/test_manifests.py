"""`dovetail manifests`: all parts or some, as documents that kubectl takes; no server needed."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.cli.run.manifests import EVERY_PART
from dovetail.kube.manifests import PARTS


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
    assert listed() == [["PART", "HOLDS"], *map(list, EVERY_PART.items())]
    assert listed("use") == [["PART", "HOLDS"], ["use", PARTS["use"]]]


@pytest.mark.parametrize("name", ["rbac", "crds.yaml", ""])
def test_what_is_no_part_is_refused_with_those_there_are(name: str) -> None:
    found = run(name)
    assert found.exit_code == 2
    assert all(repr(part) in found.stderr for part in PARTS)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--namespace", "Up", "is not a name of a namespace"),
        ("--namespace", "a\nb", "is not a name of a namespace"),
        ("--namespace", "a" * 64, "is not a name of a namespace"),
        ("--image", "Dovetail:1", "is not an image"),
        ("--image", "dovetail:", "is not an image"),
        ("--image", "dovetail\nkind: Pod", "is not an image"),
        ("--image", "dovetail@sha256:abc", "is not an image"),
        ("--replicas", "0", "is not in the range"),
        ("--replicas", "two", "is not a valid integer"),
        ("--extender-address", "10.0.0.1", "is not HOST:PORT"),
        ("--extender-address", "a b:1", "is not HOST:PORT"),
        ("--class", "Gpu", "is not a name of a resource class"),
        ("--resource", "gpu", "is not an extended resource"),
    ],
)
def test_what_cannot_be_chosen_is_refused(option: str, value: str, words: str) -> None:
    found = run("scheduler", option, value)
    assert found.exit_code == 2
    assert words in " ".join(found.stderr.split())
    assert found.stdout == ""


@pytest.mark.parametrize(
    "image",
    [
        "dovetail",
        "dovetail:1.0",
        "localhost:5000/dovetail",
        "registry.example/team/dovetail:v1_2-x",
        f"registry.example:5000/dovetail:1@sha256:{'a1' * 32}",
        "12",
    ],
)
def test_images_are_written_as_they_are_given(image: str) -> None:
    documents = yaml.safe_load_all(run("scheduler", "machines", "--image", image).stdout)
    deployments = [each for each in documents if each["kind"] == "Deployment"]
    pods = [each["spec"]["template"]["spec"] for each in deployments]
    assert [pod["containers"][0]["image"] for pod in pods] == [image, image]


def test_what_is_no_object_is_printed_alone() -> None:
    found = run("crds", "kube-scheduler")
    assert found.exit_code == 2
    assert "print it alone" in found.stderr
