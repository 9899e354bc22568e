"""The acceptance scenario over HTTP: fwall and analytics on four clusters, and variants of it.

Documents are posted, plans, explanations and status read, deployments made and ended; what is held
is looked up in the ledger. Numbers and words are those of the reference, section 8.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from dovetail.core.quantity import parse
from tests.rest.intents.client import named
from tests.rest.intents.operator import Operator
from tests.support.intents import scenario
from tests.support.intents.rest_documents import Post, Spelling
from tests.support.intents.scenario import ANALYTICS, C1, C2, C3, C4, FWALL, Scenario

Json = dict[str, Any]
GPU, QAT = "nvidia.com/gpu", "intel.com/qat"
MEMORY_NEEDS = "core-fwall-RAM-needs"
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
"""The kubeconfig of a cluster that nobody can reach."""


def resources(plan: Json, app: str, kind: str, name: str) -> dict[str, dict[str, Any]]:
    """What the one container of an edited object asks for, by value."""
    (placed,) = (each for each in plan["placements"] if each["app"] == app)
    (found,) = (
        each
        for each in placed["objects"]
        if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    (container,) = found["spec"]["template"]["spec"]["containers"]
    written = container.get("resources", {})
    return {
        key: {resource: parse(str(amount)) for resource, amount in written.get(key, {}).items()}
        for key in ("requests", "limits")
    }


def amounts(**given: str) -> dict[str, Any]:
    names = {"gpu": GPU, "qat": QAT}
    return {names.get(key, key): parse(value) for key, value in given.items()}


def words(found: Json) -> dict[tuple[str, str], str]:
    """By app (or apps) and cluster."""
    return {
        (each.get("app") or "+".join(each["apps"]), each.get("cluster", "")): each["words"]
        for each in found["reasons" if "reasons" in found else "refused"]
    }


# -- the base case ---------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", list(Spelling))
def test_base_candidates_and_pick(operator: Operator, spelling: Spelling) -> None:
    plan = operator.plan(operator.make(scenario.base(), spelling))
    assert plan["candidates"]["candidates"] == [
        {
            FWALL: {"count": 1, "allow": [C1, C2]},
            ANALYTICS: {"count": 1, "allow": [C3, C4]},
        },
        {FWALL: {"count": 1, "allow": [C1]}, ANALYTICS: {"count": 1, "deny": [C1]}},
    ]
    assert plan["candidates"]["more"] == 0
    assert plan["pick"]["apps"] == {
        FWALL: [{"cluster": C1, "score": 9, "rank": 0}],
        ANALYTICS: [{"cluster": C3, "score": 0, "rank": 0}],
    }
    assert plan["pick"]["isProven"]


def test_base_reasons(operator: Operator) -> None:
    found = words(operator.plan(operator.make(scenario.base())))
    assert found[FWALL, C3] == "cpu: need 4 on one node, largest free 3 (n1,n2,n3)"
    assert found[ANALYTICS, C1] == "intel.com/qat: need 1, none"
    assert found[f"{FWALL}+{ANALYTICS}", C2] == "fwall+analytics: cpu"


def test_base_objects(operator: Operator) -> None:
    plan = operator.plan(operator.make(scenario.base()))
    core = resources(plan, FWALL, "StatefulSet", "core-fwall")
    whole = amounts(cpu="4", memory="1000M", gpu="1")
    assert core == {"requests": whole, "limits": whole}
    assert resources(plan, FWALL, "Deployment", "api-server") == {
        "requests": amounts(cpu="1", memory="200M"),
        "limits": amounts(cpu="2"),
    }
    assert resources(plan, ANALYTICS, "StatefulSet", "ai-model") == {
        "requests": amounts(cpu="2"),
        "limits": {},
    }
    assert resources(plan, ANALYTICS, "Deployment", "logger") == {
        "requests": amounts(qat="1"),
        "limits": amounts(qat="1"),
    }
    classes = {
        each["name"]: each["qosClass"] for of in plan["placements"] for each in of["workloads"]
    }
    assert classes == {
        "core-fwall": "Guaranteed",
        "api-server": "Burstable",
        "ai-model": "Burstable",
        "logger": "BestEffort",
    }


def test_base_is_the_same_every_time(operator: Operator) -> None:
    """But for the time at which it is told."""
    group = operator.make(scenario.base())
    plans = [operator.plan(group) for _ in range(3)]
    for each in plans:
        del each["fleet"]
    assert len({orjson.dumps(each) for each in plans}) == 1


def test_base_deployed_and_ended(operator: Operator) -> None:
    group = operator.make(scenario.base())
    assert operator.act(group, "instantiate").status_code == 409
    answer = operator.instantiate(group)
    assert answer["apps"] == {
        FWALL: [{"cluster": C1, "score": 9}],
        ANALYTICS: [{"cluster": C3, "score": 0}],
    }
    assert operator.act(group, "instantiate").status_code == 409
    status = operator.status(group)
    assert status["status"] == "Instantiated"
    fwall, analytics = (each["clusters"][0] for each in status["apps"])
    charged = {each["node"]: each["resources"] for each in fwall["charges"]}
    assert charged["n1"][GPU] == 1
    assert sum(each["cpu"] for each in charged.values()) == 5000
    assert [each["resources"].get(QAT) for each in analytics["charges"]].count(1) == 1
    assert "ageSeconds" in fwall
    assert operator.delete(group).status_code == 409
    assert operator.act(group, "terminate").status_code == 202
    status = operator.status(group)
    assert status["status"] == "Terminated"
    assert all(not each["charges"] for of in status["apps"] for each in of["clusters"])


def test_base_explained(operator: Operator) -> None:
    group = operator.make(scenario.base())
    reply = operator.get(f"{group}/explain?app={FWALL}&cluster={C3.replace('+', '%2B')}")
    assert reply.status_code == 200, reply.text
    (found,) = reply.json()["clusters"]
    assert not found["fits"]
    (why,) = found["excludedBy"]
    assert why["controller"] == "hpa"
    assert why["words"] == "cpu: need 4 on one node, largest free 3 (n1,n2,n3)"
    close = found["hardware"]["explanation"]
    assert close["verdict"] in ("not_now", "never")
    assert close["relaxations"], "what would help is told"
    assert operator.get(f"{group}/explain?app=nothing").status_code == 404


# -- the variants ----------------------------------------------------------------------------------


def away(wanted: Scenario) -> Iterator[Post]:
    """Clusters that are away are registered with a kubeconfig that leads nowhere."""
    for each in wanted.posts():
        name = (each.body or {}).get("metadata", {}).get("name", "")
        if each.path.endswith("/clusters") and name in wanted.away:
            kubeconfig = orjson.dumps(NOWHERE).decode()
            yield Post(path=each.path, body=named(name, kubeconfig=kubeconfig))
        else:
            yield each


@pytest.mark.parametrize("variant", ["cordoned", "away"])
def test_v1_without_c1(operator: Operator, variant: str) -> None:
    wanted = scenario.v1_cordoned() if variant == "cordoned" else scenario.v1_away()
    for each in away(wanted):
        operator.send(each)
    plan = operator.plan(wanted.group.name)
    assert plan["pick"]["apps"][FWALL] == [{"cluster": C2, "score": 0, "rank": 0}]
    assert plan["pick"]["apps"][ANALYTICS][0]["cluster"] in (C3, C4)
    core = resources(plan, FWALL, "StatefulSet", "core-fwall")
    assert GPU not in core["requests"]
    assert GPU not in core["limits"]
    assert [each["cluster"] for each in plan["fleet"]["notReady"]] == (
        [] if variant == "cordoned" else [C1]
    )
    placed = next(each for each in plan["placements"] if each["app"] == FWALL)
    pinned = {each["name"]: each.get("pinned") for each in placed["workloads"]}
    assert pinned["api-server"]["nodes"] == ["n2"]


def test_v2_two_clusters_of_an_app(operator: Operator) -> None:
    group = operator.make(scenario.v2())
    plan = operator.plan(group)
    assert plan["candidates"]["candidates"][0][ANALYTICS] == {"count": 2, "allow": [C3, C4]}
    assert [each["cluster"] for each in plan["pick"]["apps"][ANALYTICS]] == [C3, C4]


def test_v2_more_clusters_than_there_are(operator: Operator) -> None:
    found = operator.refused(operator.make(scenario.v2(4)))
    assert "count 4 > 3 clusters" in found["detail"]


def test_v3_replicas_share_no_gpu(operator: Operator) -> None:
    plan = operator.plan(operator.make(scenario.v3()))
    assert plan["pick"]["apps"][FWALL] == [{"cluster": C1, "score": 0, "rank": 0}]
    assert GPU not in resources(plan, FWALL, "StatefulSet", "core-fwall")["requests"]
    placed = next(each for each in plan["placements"] if each["app"] == FWALL)
    core = next(each for each in placed["objects"] if each["kind"] == "StatefulSet")
    assert core["spec"]["replicas"] == 2
    assert (FWALL, C2) in words(plan)


def test_v4_gpu_is_mandatory(operator: Operator) -> None:
    plan = operator.plan(operator.make(scenario.v4()))
    for each in plan["candidates"]["candidates"]:
        assert each[FWALL] == {"count": 1, "allow": [C1]}
    assert words(plan)[FWALL, C4].startswith(f"{GPU}: need 1")


def test_v5_apps_keep_apart(operator: Operator) -> None:
    group = operator.make(scenario.v5())
    assert operator.picked(group) == {FWALL: [C1], ANALYTICS: [C3]}


def test_v6_apps_together(operator: Operator) -> None:
    group = operator.make(scenario.v6(has_generic=False))
    assert operator.picked(group) == {FWALL: [C4], ANALYTICS: [C4]}


def test_v6_apps_together_where_they_may_not_go(operator: Operator) -> None:
    found = operator.refused(operator.make(scenario.v6()))
    assert found["conflict"]["excluded"]
    assert {(each["cluster"], each["controller"]) for each in found["conflict"]["excluded"]} == {
        (C4, "generic")
    }


def test_v7_one_after_another(operator: Operator) -> None:
    """Six get a place, one of them the GPU; the seventh is told why not."""
    first = scenario.v7(1)
    operator.make(first)
    for number in range(2, 8):
        for each in scenario.v7(number).intent_posts():
            operator.send(each)
    groups = [scenario.v7(number).group.name for number in range(1, 8)]
    taken = [operator.instantiate(group)["apps"][FWALL][0] for group in groups[:6]]
    assert sorted(each["cluster"] for each in taken) == [C1, C1, C2, C4, C4, C4]
    assert sorted(each["score"] for each in taken) == [0, 0, 0, 0, 0, 9]
    found = operator.refused(groups[6])
    assert (FWALL, C3) in words(found)
    assert operator.act(groups[0], "terminate").status_code == 202
    assert operator.act(groups[6], "instantiate").status_code == 202


@pytest.mark.parametrize(("free", "fits"), [("1", True), ("500m", True), ("499m", False)])
def test_v8_half_a_cpu(operator: Operator, free: str, fits: bool) -> None:
    plan = operator.plan(operator.make(scenario.v8(free)))
    api = resources(plan, FWALL, "Deployment", "api-server")
    assert api["requests"]["cpu"] == parse("500m")
    first = plan["candidates"]["candidates"][0]
    assert first[FWALL] == {"count": 1, "allow": [C1, C2] if fits else [C1]}


def test_v9_a_controller_that_is_late(operator: Operator) -> None:
    """Named with its deadline; what others said is not used without it."""
    group = operator.make(scenario.v9())
    late = named("hpa-placement-controller-1", host="127.0.0.1", port=9099, deadline=0.00001)
    operator.made("controllers", late)
    calls = {"hpa-placement-controller-1": "x"}
    operator.made(f"{group}/intents", named("late", intent=calls))
    found = operator.refused(group)
    assert "hpa" in found["detail"]
    assert "1e-05 s" in found["detail"]
    assert operator.status(group)["status"] == "Approved"


@pytest.mark.parametrize(
    ("units", "size"), [("GB", 2 * 10**9), ("GiB", 2 * 2**30), ("MB", 2 * 10**6)]
)
def test_v10_units(operator: Operator, units: str, size: int) -> None:
    plan = operator.plan(operator.make(scenario.v10(units)))
    core = resources(plan, FWALL, "StatefulSet", "core-fwall")
    assert core["requests"]["memory"] == core["limits"]["memory"] == size


def test_v10_unknown_unit(operator: Operator) -> None:
    for each in scenario.v10("XB").posts():
        if each.body is not None and each.body.get("metadata", {}).get("name") == MEMORY_NEEDS:
            reply = operator.post(each.path, each.body)
            assert reply.status_code == 400
            assert "spec.resource.units" in reply.text
            return
        operator.send(each)
    pytest.fail("the requirement was not among them")


# -- what cannot be deployed -----------------------------------------------------------------------


def test_clusters_that_do_not_exist(operator: Operator) -> None:
    group = operator.make(scenario.v7())
    operator.made(f"{group}/generic-placement-intents", named("g"))
    terms = [{"clusterProvider": "p1", "cluster": "c9"}]
    body = named("a", app=FWALL, intent={"anyOf": terms})
    operator.made(f"{group}/generic-placement-intents/g/app-intents", body)
    found = operator.refused(group)
    assert words(found)[FWALL, "p1+c9"] == "no such cluster"


def test_a_chart_that_is_none(operator: Operator) -> None:
    group = operator.make(scenario.v7())
    where = f"{group.rsplit('/', 2)[0]}/apps/{FWALL}"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("no-chart"))
    reply = operator.form("PUT", where, named(FWALL), archive.getvalue())
    assert reply.status_code == 200, reply.text
    found = operator.refused(group)
    assert f"app {FWALL}" in found["detail"]
    assert operator.get(f"{group}/plan").status_code == 422


def test_a_consumer_that_names_nothing(operator: Operator) -> None:
    group = operator.make(scenario.v7())
    path = f"{group}/hpa-intents/fwall-hpa-intent/hpa-resource-consumers"
    operator.made(path, named("lost", kind="Deployment", name="no-such", container="x"))
    found = operator.refused(group)
    assert "no-such" in found["detail"]
    assert "api-server" in found["detail"], "what there is, is told"


def test_a_project_that_is_not_there(operator: Operator) -> None:
    path = "projects/x/composite-apps/y/v1/deployment-intent-groups/z"
    for method, action in (
        ("POST", "approve"),
        ("POST", "instantiate"),
        ("POST", "terminate"),
        ("POST", "update"),
        ("GET", "plan"),
        ("GET", "status"),
        ("GET", f"explain?app={FWALL}"),
    ):
        reply = operator.call(method, f"{path}/{action}")
        assert reply.status_code == 404, (action, reply.text)
