"""Documents over HTTP: created, shown, replaced and deleted by the rules of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.intents.documents.kinds import KINDS, DocumentKind
from tests.rest.conftest import Make
from tests.rest.intents.client import (
    APPS,
    CONSUMERS,
    CPU,
    GROUP,
    GROUPS,
    INTENTS,
    REQUIREMENTS,
    IntentsClient,
    make_consumer,
    make_group,
    named,
)
from tests.rest.intents.story import body_of
from tests.support.intents import scenario
from tests.support.intents.rest_documents import Spelling, group_path

Json = dict[str, Any]


def told(reply: Any) -> tuple[int, str]:
    """Status and field of a problem."""
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == reply.status_code
    return reply.status_code, problem.get("field", "")


@pytest.mark.parametrize("prefix", ["/v2", ""])
@pytest.mark.parametrize("spelling", Spelling)
def test_the_example_of_the_specification_is_taken_in_both_spellings(
    serve: Make, spelling: Spelling, prefix: str
) -> None:
    client = IntentsClient(serve(), prefix)
    for post in scenario.base().posts(spelling):
        reply = (
            client.post(post.path, post.body)
            if post.file is None
            else client.form("POST", post.path, post.body or {}, post.file.encode())
        )
        assert reply.status_code == 201, (post.path, reply.text)
        assert reply.headers["location"].startswith(f"{prefix}/{post.path}/")
    intents = client.get(f"{group_path('my-dig1')}/hpa-intents").json()
    assert [each["spec"]["app"] for each in intents] == ["fwall", "analytics"]
    [core, _] = intents[0]["spec"]["resourceConsumers"]
    assert core["spec"] == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "core-fwall",
        "container": "palo-alto-e3000",
    }
    requirements = (
        f"{group_path('my-dig1')}/hpa-intents/fwall-hpa-intent/hpa-resource-consumers"
        "/core-fwall/resource-requirements"
    )
    assert [each["spec"] for each in client.get(requirements).json()] == [
        {
            "allocatable": True,
            "mandatory": True,
            "resource": {"name": "cpu", "requests": 4, "limits": 4},
        },
        {
            "allocatable": True,
            "mandatory": True,
            "resource": {"name": "memory", "requests": 1000, "limits": 1000, "units": "MB"},
        },
        {
            "allocatable": True,
            "mandatory": False,
            "weight": 9,
            "resource": {"name": "nvidia.com/gpu", "limits": 1},
        },
    ]


def test_both_addresses_lead_to_the_same(serve: Make) -> None:
    http = serve()
    IntentsClient(http, "/v2").made("projects", named("p"))
    assert IntentsClient(http, "").get("projects/p").json() == named("p")


def test_a_document_comes_back_as_it_was_sent(intents: IntentsClient) -> None:
    sent = {
        "metadata": {"name": "p", "description": "d", "userData1": "1", "userData2": "2"},
    }
    assert intents.made("projects", sent) == sent
    assert intents.get("projects/p").json() == sent
    assert intents.get("projects").json() == [sent]


def test_lists_are_in_the_order_in_which_things_were_made(intents: IntentsClient) -> None:
    for name in ("c", "a", "b"):
        intents.made("projects", named(name))
    listed = intents.get("projects").json()
    assert [each["metadata"]["name"] for each in listed] == ["c", "a", "b"]


def test_a_list_of_nothing_is_an_empty_list(intents: IntentsClient) -> None:
    make_group(intents)
    for path in ("cluster-providers", "controllers", INTENTS, APPS):
        assert intents.get(path).json() == []


# -- names that clash, parents that are missing, children that are there ------------------------


def test_a_name_that_is_taken_is_refused(intents: IntentsClient) -> None:
    intents.made("projects", named("p"))
    assert told(intents.post("projects", named("p")))[0] == 409
    intents.made("projects/p/composite-apps", named("c", compositeAppVersion="v1"))
    intents.made("projects/p/composite-apps", named("c", compositeAppVersion="v2"))
    again = intents.post("projects/p/composite-apps", named("c", compositeAppVersion="v2"))
    assert told(again)[0] == 409


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("projects/none/composite-apps", named("c", compositeAppVersion="v1")),
        (f"{GROUP}x/hpa-intents", named("i", app="a")),
        (f"{INTENTS}/none/hpa-resource-consumers", named("k", name="d")),
        (f"{CONSUMERS}/none/resource-requirements", named("r", **CPU)),
        ("cluster-providers/none/clusters", named("c")),
        ("projects/a%2Fb/composite-apps", named("c", compositeAppVersion="v1")),
    ],
)
def test_below_what_is_not_there_nothing_is(
    intents: IntentsClient, method: str, path: str, body: Json
) -> None:
    make_consumer(intents)
    reply = intents.call(method, path, body if method == "POST" else None)
    assert told(reply)[0] == 404


def test_what_is_in_the_way_is_named(intents: IntentsClient) -> None:
    make_consumer(intents)
    reply = intents.delete(f"{INTENTS}/i")
    assert told(reply)[0] == 409
    assert reply.json()["detail"].startswith(f"{CONSUMERS}/k is below {INTENTS}/i")


def test_what_is_not_there_is_not_found(intents: IntentsClient) -> None:
    for path in ("projects/p", "cluster-providers/p/clusters/c", REQUIREMENTS + "/r"):
        assert told(intents.get(path))[0] == 404
        assert told(intents.delete(path))[0] == 404
    assert told(intents.put("projects/p", named("p")))[0] == 404
    assert intents.get("projects").json() == []


def test_nothing_goes_before_what_is_below_it(intents: IntentsClient) -> None:
    make_consumer(intents)
    intents.made(REQUIREMENTS, named("r", **CPU))
    upwards = [
        f"{REQUIREMENTS}/r",
        f"{CONSUMERS}/k",
        f"{INTENTS}/i",
        GROUP,
        "projects/p/composite-apps/c/v1",
        "projects/p",
    ]
    for path in reversed(upwards[1:]):
        assert told(intents.delete(path))[0] == 409
    for path in upwards:
        assert intents.delete(path).status_code == 204
        assert intents.get(path).status_code == 404


def test_nothing_goes_while_it_is_referred_to(intents: IntentsClient) -> None:
    make_group(intents)
    intents.made(APPS, named("a"))
    intents.made(INTENTS, named("i", app="a"))
    refused = intents.delete(f"{APPS}/a")
    assert told(refused)[0] == 409
    assert "hpa-intents/i" in refused.json()["detail"]
    assert intents.delete(f"{INTENTS}/i").status_code == 204
    assert intents.delete(f"{APPS}/a").status_code == 204


def test_a_reference_to_what_is_not_there_yet_is_taken(intents: IntentsClient) -> None:
    make_group(intents)
    intents.made(INTENTS, named("i", app="later"))


def test_intents_and_consumers_are_not_replaced_while_something_is_below_them(
    intents: IntentsClient,
) -> None:
    make_consumer(intents)
    intent, consumer = named("i", app="b"), named("k", name="other", container="x")
    assert told(intents.put(f"{INTENTS}/i", intent))[0] == 409
    assert intents.get(f"{INTENTS}/i").json()["spec"]["app"] == "a"
    assert intents.put(f"{CONSUMERS}/k", consumer).json() == consumer
    intents.made(REQUIREMENTS, named("r", **CPU))
    assert told(intents.put(f"{CONSUMERS}/k", named("k", name="third")))[0] == 409
    assert intents.get(f"{CONSUMERS}/k").json() == consumer


def test_put_replaces_all_of_a_document(intents: IntentsClient) -> None:
    make_consumer(intents)
    intents.made(REQUIREMENTS, named("r", **CPU, weight=3))
    replaced = intents.put(f"{REQUIREMENTS}/r", named("r", **CPU))
    assert (replaced.status_code, replaced.json()) == (200, named("r", **CPU))
    assert intents.get(f"{REQUIREMENTS}/r").json() == named("r", **CPU)


def test_a_document_has_the_name_of_its_address(intents: IntentsClient) -> None:
    intents.made("projects", named("p"))
    assert told(intents.put("projects/p", named("q"))) == (400, "metadata.name")


def test_what_is_shown_of_an_intent_can_be_sent_back(intents: IntentsClient) -> None:
    make_consumer(intents)
    shown = intents.get(f"{INTENTS}/i").json()
    assert len(shown["spec"]["resourceConsumers"]) == 1
    assert intents.delete(f"{CONSUMERS}/k").status_code == 204
    assert intents.put(f"{INTENTS}/i", shown).json() == named("i", app="a")


# -- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"  \n", 400),
        (b"{", 422),
        (b"no json", 422),
        (b"\xff", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b'{"metadata": []}', 422),
        (b'{"metadata": {"name": 4}}', 422),
        (b"{}", 400),
        (b"null", 400),
        (b'{"metadata": {}}', 400),
        (b'{"metadata": {"name": ""}}', 400),
        (b'{"metadata": {"name": "a b"}}', 400),
        (b'{"metadata": {"name": "a\\u0000"}}', 400),
        (b'{"metadata": {"name": "a", "description": "\\u0000"}}', 400),
        (b'{"metadata": {"name": "a", "userData1": "%b"}}' % (b"x" * 513), 400),
        (b'{"a":' * 500 + b"1" + b"}" * 500, 400),
        (b"[" * 100_000, 422),
        (b'{"metadata": {"name": "\\ud800"}}', 422),
    ],
)
def test_bodies_that_are_no_documents(intents: IntentsClient, body: bytes, status: int) -> None:
    reply = intents.post("projects", body, content_type="application/json")
    assert told(reply)[0] == status
    assert intents.get("projects").json() == []


def test_a_fault_is_told_with_its_field(intents: IntentsClient) -> None:
    make_consumer(intents)
    wrong = {"allocatable": True, "resource": {"name": "cpu", "requests": 2, "limits": 1}}
    reply = intents.post(REQUIREMENTS, named("r", **wrong))
    assert told(reply) == (400, "spec.resource.requests")
    assert reply.json()["violations"] == [
        {"field": "spec.resource.requests", "message": "is more than limits"}
    ]


def test_an_amount_needs_a_container_to_go_to(intents: IntentsClient) -> None:
    make_consumer(intents)
    intents.made(CONSUMERS, named("bare", kind="Deployment", name="d"))
    requirements = f"{CONSUMERS}/bare/resource-requirements"
    assert told(intents.post(requirements, named("r", **CPU))) == (400, "spec.allocatable")
    label = {"allocatable": False, "resource": {"key": "avx", "value": "true"}}
    intents.made(requirements, named("r", **label))


def test_media_that_is_no_json_is_refused(intents: IntentsClient) -> None:
    reply = intents.post("projects", b"name: p", content_type="application/yaml")
    assert told(reply)[0] == 415
    assert told(intents.get("projects", accept="text/html"))[0] == 406


# -- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [(INTENTS, "intent", "i"), (CONSUMERS, "consumer", "k"), (REQUIREMENTS, "resource", "r")],
)
def test_a_collection_is_asked_for_one_by_name(
    intents: IntentsClient, path: str, query: str, name: str
) -> None:
    make_consumer(intents)
    intents.made(REQUIREMENTS, named("r", **CPU))
    found = intents.get(f"{path}?{query}={name}")
    assert found.json() == intents.get(f"{path}/{name}").json()
    for unknown in ("none", "", "a%2Fb"):
        assert told(intents.get(f"{path}?{query}={unknown}"))[0] == 404
    if query == "resource":
        assert intents.delete(f"{path}?{query}={name}").status_code == 204
        assert intents.get(path).json() == []


def test_parameters_that_nobody_knows_are_refused(intents: IntentsClient) -> None:
    assert told(intents.get("projects?colour=red"))[0] == 400


def test_long_lists_are_shown_in_pages(intents: IntentsClient) -> None:
    names = [f"p{number}" for number in range(7)]
    for name in names:
        intents.made("projects", named(name))
    seen, path = [], "projects?limit=3"
    while path:
        reply = intents.get(path)
        page = [each["metadata"]["name"] for each in reply.json()]
        assert 0 < len(page) <= 3
        seen += page
        link = reply.headers.get("link", "")
        path = link.partition("/v2/")[2].partition(">")[0]
    assert seen == names
    for bad in ("limit=0", "limit=x", "limit=1001", "after=-1", "after=%C2%B2"):
        assert told(intents.get(f"projects?{bad}"))[0] == 400


# -- collections are deleted as a whole ----------------------------------------------------------


def test_a_collection_is_deleted_as_a_whole_or_not_at_all(intents: IntentsClient) -> None:
    make_consumer(intents)
    intents.made(INTENTS, named("bare", app="a"))
    assert told(intents.delete(INTENTS))[0] == 409
    assert len(intents.get(INTENTS).json()) == 2
    assert intents.delete(CONSUMERS).status_code == 204
    assert intents.delete(INTENTS).status_code == 204
    assert intents.get(INTENTS).json() == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_has_the_same_life(intents: IntentsClient, kind: DocumentKind) -> None:
    above = [kind]
    while above[0].parent:
        above.insert(0, KINDS[above[0].parent])
    path = ""
    for each in above:
        path = f"{path}{each.collection}"
        body = body_of(each)
        made = intents.post(path, body)
        assert made.status_code == 201, made.text
        path = f"{made.headers['location'].removeprefix('/v2/')}/"
    one, collection = path.rstrip("/"), made.request.url.path.removeprefix("/v2/")
    assert told(intents.post(collection, body))[0] == 409
    assert intents.get(one).json() == made.json() | intents.get(one).json()
    assert intents.put(one, body).status_code == 200
    assert intents.delete(collection).status_code == 204
    assert told(intents.get(one))[0] == 404
    assert told(intents.put(one, body))[0] == 404


def test_names_of_one_kind_do_not_reach_documents_of_another(intents: IntentsClient) -> None:
    make_group(intents)
    for path in (
        "projects/p%2Fcomposite-apps%2Fc%2Fv1",
        "projects/p/composite-apps/c%2Fv1/deployment-intent-groups",
        f"{GROUPS}%2Fg",
        "projects/..%2Fprojects%2Fp",
    ):
        assert intents.get(path).status_code == 404
        assert intents.delete(path).status_code in (404, 405)
    assert intents.get(GROUP).status_code == 200


def test_an_empty_body_is_told_whatever_its_type(intents: IntentsClient) -> None:
    """curl says form-urlencoded of anything."""
    reply = intents.http.call(
        "POST", "/v2/projects", b"", content_type="application/x-www-form-urlencoded"
    )
    assert told(reply)[0] == 400
