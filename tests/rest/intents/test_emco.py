"""The switch for EMCO's own status codes, texts and lists: section by section of its behaviour."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.intents.documents.kinds import KINDS
from tests.fuzz.json_noise import encoded, noisy
from tests.rest.intents.client import (
    APPS,
    CONSUMERS,
    CPU,
    GROUP,
    INTENTS,
    REQUIREMENTS,
    IntentsClient,
    make_consumer,
    make_group,
    named,
)
from tests.rest.intents.story import body_of, collection_of, one_of, parents_story

KUBECONFIG = b"clusters: [{name: c, cluster: {server: 'https://c:6443'}}]\n"
NO_PARENT = "Cannot perform requested operation. Parent resource not found"
BLANKS = {"description": "", "userData1": "", "userData2": ""}


def told(reply: Any) -> tuple[int, str]:
    """Status and text of a refusal."""
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.text.endswith("\n")
    return reply.status_code, reply.text.removesuffix("\n")


def packed(name: str = "chart/Chart.yaml", content: bytes = b"name: chart\n") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_what_is_below_a_missing_parent_is_a_conflict(emco: IntentsClient) -> None:
    make_consumer(emco)
    assert told(emco.post(f"{GROUP}x/hpa-intents", named("i", app="a"))) == (409, NO_PARENT)
    below = f"{INTENTS}/none/hpa-resource-consumers"
    assert told(emco.post(below, named("k", name="d"))) == (409, NO_PARENT)
    assert told(emco.post("projects/none/composite-apps", named("c", compositeAppVersion="v"))) == (
        409,
        NO_PARENT,
    )


def test_but_a_requirement_below_a_missing_consumer_is_not_found(emco: IntentsClient) -> None:
    make_consumer(emco)
    below = f"{CONSUMERS}/none/resource-requirements"
    assert told(emco.post(below, named("r", **CPU))) == (404, "Consumer not found")


def test_lists_below_a_missing_parent_are_null(emco: IntentsClient) -> None:
    for path in (INTENTS, CONSUMERS, REQUIREMENTS, "projects"):
        reply = emco.get(path)
        assert (reply.status_code, reply.json()) == (200, None)


def test_but_some_lists_want_their_parent(emco: IntentsClient) -> None:
    listed = emco.get("projects/none/composite-apps")
    assert told(listed) == (404, "Project not found")
    assert told(emco.get("cluster-providers/p/clusters")) == (404, "Cluster provider not found")
    assert emco.get("cluster-providers").json() == []


def test_lists_ignore_queries(emco: IntentsClient) -> None:
    make_consumer(emco)
    reply = emco.get(f"{INTENTS}?intent=none")
    assert [each["metadata"]["name"] for each in reply.json()] == ["i"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("projects/none", "Project not found"),
        (f"{INTENTS}/none", "Intent not found"),
        (f"{CONSUMERS}/none", "Consumer not found"),
        (f"{REQUIREMENTS}/none", "Resource not found"),
    ],
)
def test_what_is_not_there(emco: IntentsClient, path: str, text: str) -> None:
    make_consumer(emco)
    assert told(emco.get(path)) == (404, text)
    assert told(emco.delete(path)) == (404, text)


def test_what_is_not_there_is_deleted_by_others_words(emco: IntentsClient) -> None:
    make_group(emco)
    assert told(emco.delete(f"{APPS}/none")) == (404, "The requested resource not found")


def test_names_that_are_taken(emco: IntentsClient) -> None:
    make_consumer(emco)
    emco.made(REQUIREMENTS, named("r", **CPU))
    for path, body, text in (
        ("projects", named("p"), "Project already exists"),
        (INTENTS, named("i", app="a"), "Intent already exists"),
        (CONSUMERS, named("k", name="d"), "Consumer already exists"),
        (REQUIREMENTS, named("r", **CPU), "Resource already exists"),
    ):
        assert told(emco.post(path, body)) == (409, text)


def test_children_and_references_are_in_the_way(emco: IntentsClient) -> None:
    make_consumer(emco)
    assert told(emco.delete(f"{INTENTS}/i")) == (
        409,
        "Cannot delete parent without deleting child references first",
    )
    assert emco.form("POST", APPS, named("a"), packed()).status_code == 201
    assert told(emco.delete(f"{APPS}/a")) == (
        409,
        "Cannot delete without deleting or updating referencing resources first",
    )


def test_put_makes_what_is_not_there_and_minds_no_children(emco: IntentsClient) -> None:
    make_consumer(emco)
    made = emco.put(f"{INTENTS}/new", named("new", app="b"))
    assert (made.status_code, made.json()["spec"]) == (200, {"app": "b"})
    replaced = emco.put(f"{INTENTS}/i", named("i", app="b"))
    assert (replaced.status_code, replaced.json()["spec"]) == (200, {"app": "b"})
    assert emco.put("controllers/x", named("x", host="h", port=1)).status_code == 201


def test_a_collection_is_deleted_one_by_one(emco: IntentsClient) -> None:
    make_group(emco)
    for name in ("first", "i", "last"):
        emco.made(INTENTS, named(name, app="a"))
    emco.made(CONSUMERS, named("k", name="d"))
    assert told(emco.delete(INTENTS))[0] == 409
    assert [each["metadata"]["name"] for each in emco.get(INTENTS).json()] == ["i", "last"]
    assert emco.delete(f"{GROUP}x/hpa-intents").status_code == 204


def test_names_that_differ(emco: IntentsClient) -> None:
    make_consumer(emco)
    for path, body, text in (
        ("projects/p", named("q"), "Mismatched name in PUT request"),
        (
            f"{INTENTS}/i",
            named("j", app="a"),
            "putHpaIntentHandler .. Mismatched name in PUT request",
        ),
    ):
        assert told(emco.put(path, body)) == (400, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("projects", "Empty body"),
        (INTENTS, "addHpaIntentHandler .. Empty POST body"),
        (REQUIREMENTS, "Empty body"),
    ],
)
def test_empty_bodies(emco: IntentsClient, path: str, text: str) -> None:
    make_consumer(emco)
    assert told(emco.post(path, b"", content_type="application/json")) == (400, text)


@pytest.mark.parametrize("body", [b"{", b"x", b'{"metadata": {"name": 1}}', b"[]"])
def test_what_does_not_decode(emco: IntentsClient, body: bytes) -> None:
    assert told(emco.post("projects", body, content_type="application/json"))[0] == 422


def test_broken_rules_stand_in_lines(emco: IntentsClient) -> None:
    long = {"metadata": {"name": "a b", "description": "x" * 1025}}
    lines = (
        "Invalid Input:",
        "Does not match pattern '^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'",
        "String length must be less than or equal to 1024",
    )
    assert told(emco.post("projects", long)) == (400, "\n".join(lines))
    make_group(emco)
    assert told(emco.post(INTENTS, {"metadata": {"name": "i"}})) == (
        400,
        "Invalid Input:\napp is required",
    )


@pytest.mark.parametrize("amount", ["500m", 1.5])
def test_amounts_that_are_no_whole_numbers(emco: IntentsClient, amount: Any) -> None:
    make_consumer(emco)
    spec = {"allocatable": True, "resource": {"name": "cpu", "requests": amount}}
    assert told(emco.post(REQUIREMENTS, named("r", **spec)))[0] == 422


def test_what_is_absent_is_shown_as_empty_text(emco: IntentsClient) -> None:
    assert emco.made("projects", named("p")) == {"metadata": {"name": "p", **BLANKS}}


def test_an_intent_does_not_show_its_consumers(emco: IntentsClient) -> None:
    make_consumer(emco)
    assert emco.get(f"{INTENTS}/i").json()["spec"] == {"app": "a"}


def test_false_is_not_shown(emco: IntentsClient) -> None:
    make_consumer(emco)
    shown = emco.made(REQUIREMENTS, named("r", **CPU, mandatory=False))
    assert shown["spec"] == CPU


def test_maps_of_controllers_are_listed_without_their_names(emco: IntentsClient) -> None:
    make_group(emco)
    assert emco.get(f"{GROUP}/intents").json() == {"intent": None}
    emco.made(f"{GROUP}/intents", named("x", intent={"a": "b"}))
    assert emco.get(f"{GROUP}/intents").json() == {"intent": [{"a": "b"}]}


def test_apps_come_as_packed_charts(emco: IntentsClient) -> None:
    make_group(emco)
    assert told(emco.form("POST", APPS, named("a"), None)) == (422, "Unable to process file")
    assert told(emco.form("POST", APPS, named("a"), b"kind: Pod")) == (422, "Error in file format")
    assert told(emco.form("POST", APPS, b"", packed())) == (400, "Empty body")
    assert emco.form("POST", APPS, named("a"), packed()).status_code == 201
    assert emco.form("PUT", f"{APPS}/a", named("a"), packed()).status_code == 201


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"app": "a", "intent": {"allOf": [{"cluster": "c"}]}},
            "Missing clusterProvider in an intent",
        ),
        (
            {"app": "a", "intent": {"allOf": [{"clusterProvider": "p"}]}},
            "Missing cluster or clusterLabel",
        ),
        ({"intent": {}}, "Missing app for the intent"),
    ],
)
def test_placement_intents_have_words_of_their_own(
    emco: IntentsClient, spec: dict[str, Any], text: str
) -> None:
    make_group(emco)
    emco.made(f"{GROUP}/generic-placement-intents", named("x"))
    path = f"{GROUP}/generic-placement-intents/x/app-intents"
    assert told(emco.post(path, named("y", **spec))) == (400, text)


def test_bent_documents_are_refused_in_plain_text(emco: IntentsClient) -> None:
    """By EMCO's rules, too, nothing that a client sends is a fault of the server."""
    for method, path, body in parents_story():
        kind = next(each for each in KINDS.values() if collection_of(each) == path)
        file = KUBECONFIG if kind.name == "cluster" else packed()
        made = emco.form(method, path, body, file) if kind.file else emco.post(path, body)
        assert made.status_code == 201, (path, made.text)

    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from([*KINDS.values()]))
        body = encoded(data.draw(noisy(body_of(kind))))
        method = data.draw(st.sampled_from(["POST", "PUT"]))
        path = collection_of(kind) if method == "POST" else one_of(kind)
        reply = (
            emco.form(method, path, body, packed())
            if kind.file
            else emco.call(method, path, body, content_type="application/json")
        )
        assert reply.status_code in {200, 201, 400, 404, 409, 422}, (body, reply.text)
        if reply.status_code >= 400:
            told(reply)

    check()
