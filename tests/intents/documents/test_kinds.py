"""The registry: paths, references, and shapes that describe what they read."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from dovetail.intents.documents.errors import BadDocument
from dovetail.intents.documents.kinds import KINDS, DocumentKind, NoSuchName
from dovetail.intents.documents.shapes import DocumentFindings

GROUP = "projects/p/composite-apps/c/v1/deployment-intent-groups/g"
TERM = {"clusterProvider": "p1", "cluster": "c1"}


def read(kind: str, body: Any, *, is_emco: bool = False) -> dict[str, Any]:
    findings = DocumentFindings(is_emco=is_emco)
    found: dict[str, Any] = KINDS[kind].shape.read(body, "", findings)
    findings.raise_any()
    return found


def body(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n"}, "spec": spec}


def test_parents_come_before_what_is_below_them() -> None:
    seen: set[str] = set()
    for kind in KINDS.values():
        assert kind.parent is None or kind.parent in seen
        seen.add(kind.name)


def test_no_two_kinds_share_a_path() -> None:
    templates = [kind.template() for kind in KINDS.values()]
    assert len(set(templates)) == len(templates)


def test_a_path_has_the_names_of_all_above() -> None:
    params = {
        "project": "p",
        "compositeApp": "c",
        "compositeAppVersion": "v1",
        "deploymentIntentGroup": "g",
        "hpaIntent": "i",
    }
    kind = KINDS["hpa-intent"]
    assert kind.path(params) == f"{GROUP}/hpa-intents/i"
    assert kind.parent_path(params) == GROUP


@pytest.mark.parametrize(
    "name", ["", "a/b", "../p", ".", "a\n", "-a", "a-", "a" * 129, "ä", "a b", "a%2Fb"]
)
def test_a_name_that_no_document_can_have_leads_nowhere(name: str) -> None:
    """Else a name with a slash in it would reach the document of another kind."""
    with pytest.raises(NoSuchName):
        KINDS["project"].path({"project": name})


@pytest.mark.parametrize(
    ("kind", "path", "document", "targets"),
    [
        (
            "hpa-intent",
            f"{GROUP}/hpa-intents/i",
            body(app="a"),
            ["projects/p/composite-apps/c/v1/apps/a"],
        ),
        (
            "app-intent",
            f"{GROUP}/generic-placement-intents/x/app-intents/y",
            body(
                app="a",
                intent={"allOf": [TERM, {"anyOf": [{**TERM, "cluster": "c2"}]}], "anyOf": [TERM]},
            ),
            [
                "projects/p/composite-apps/c/v1/apps/a",
                "cluster-providers/p1/clusters/c1",
                "cluster-providers/p1/clusters/c2",
                "cluster-providers/p1/clusters/c1",
            ],
        ),
        (
            "deployment-intent-group",
            GROUP,
            body(compositeProfile="f", version="r", logicalCloud="l"),
            [
                "projects/p/composite-apps/c/v1/composite-profiles/f",
                "projects/p/logical-clouds/l",
            ],
        ),
        (
            "group-intent",
            f"{GROUP}/intents/x",
            body(intent={"genericPlacementIntent": "g", "hpa-placement-controller-1": "i"}),
            ["controllers/hpa-placement-controller-1"],
        ),
        (
            "cluster-reference",
            "projects/p/logical-clouds/l/cluster-references/r",
            body(clusterProvider="p1", cluster="c1"),
            ["cluster-providers/p1/clusters/c1"],
        ),
    ],
)
def test_what_documents_refer_to(
    kind: str, path: str, document: dict[str, Any], targets: list[str]
) -> None:
    read_document = read(kind, document)
    assert list(KINDS[kind].references(path, read_document)) == targets


def test_terms_of_placement_in_the_older_spelling() -> None:
    old = {"provider-name": "p1", "cluster-label-name": "edge"}
    found = read("app-intent", body(**{"app-name": "a", "intent": {"anyOf": [old]}}))
    assert found["spec"] == {
        "app": "a",
        "intent": {"anyOf": [{"clusterProvider": "p1", "clusterLabel": "edge"}]},
    }


def test_count_may_stand_in_the_intent_too() -> None:
    inside = read("app-intent", body(app="a", intent={"anyOf": [TERM], "count": 2}))
    beside = read("app-intent", body(app="a", intent={"anyOf": [TERM]}, count=2))
    assert inside == beside
    assert inside["spec"]["count"] == 2


def test_preference_is_a_list_of_terms_or_of_lists_of_them() -> None:
    found = read("app-intent", body(app="a", intent={}, preference=[TERM, [TERM, TERM]]))
    assert found["spec"]["preference"] == [[TERM], [TERM, TERM]]


@pytest.mark.parametrize(
    ("term", "emco"),
    [
        ({"cluster": "c1"}, "clusterProvider is required"),
        ({"clusterProvider": "p1"}, "cluster is required"),
        ({**TERM, "clusterLabel": "l"}, "Must not validate the schema (not)"),
    ],
)
def test_a_term_names_clusters_in_one_way(term: dict[str, str], emco: str) -> None:
    with pytest.raises(BadDocument) as caught:
        read("app-intent", body(app="a", intent={"allOf": [term]}))
    [violation] = caught.value.violations
    assert violation.field.startswith("spec.intent.allOf[0].cluster")
    assert violation.emco == emco


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"app": "a", "deny": ["a"]}, "spec.app"),
        ({"app": "a", "deny": ["b"], "require": ["b"]}, "spec.deny"),
        ({"app": "a", "allow": "b"}, "spec.allow"),
    ],
)
def test_affinity_that_contradicts_itself(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(BadDocument) as caught:
        read("affinity-intent", body(**spec))
    assert caught.value.field == field


def test_a_cluster_is_known_in_one_way() -> None:
    with pytest.raises(BadDocument):
        read("cluster", body(kubeconfigRef="a", snapshot={}))


@pytest.mark.parametrize("name", ["", "a b", "a\n", "é", "-", "a" * 129])
def test_names_of_all_kinds_are_checked(name: str) -> None:
    for kind in KINDS.values():
        if kind.name != "cluster-label":
            with pytest.raises(BadDocument) as caught:
                read(kind.name, {"metadata": {"name": name}, "spec": {}})
            assert "metadata.name" in {each.field for each in caught.value.violations}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_shape_describes_itself_as_a_sound_schema(kind: DocumentKind) -> None:
    jsonschema_rs.meta.validate(kind.shape.schema())
