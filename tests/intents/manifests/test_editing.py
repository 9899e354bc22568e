"""Objects edited for a cluster: what an intent owns, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest

from dovetail.core.quantity import parse
from dovetail.intents.group import AnyRequirement, GroupApp, HpaIntent, ResourceConsumer
from dovetail.intents.manifests.editing import EditedApp, edited
from dovetail.intents.manifests.errors import Uneditable, UnknownContainer, UnknownWorkload
from dovetail.intents.manifests.exclusivity import exclusivity_of
from dovetail.intents.manifests.grants import AppGrants, ConsumerGrant, WorkloadPin
from dovetail.intents.manifests.workloads import KINDS, pods_of
from tests.intents.manifests.charts import amount, app, consumer, container, label, workload
from tests.support.intents import scenario
from tests.support.intents.hardware import GPU

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def needs(who: ResourceConsumer, *requirements: AnyRequirement) -> ResourceConsumer:
    return ResourceConsumer(
        name=who.name,
        kind=who.kind,
        object_name=who.object_name,
        container=who.container,
        replicas=who.replicas,
        within_one=who.within_one,
        requirements=requirements,
    )


def edit(
    of: GroupApp,
    *consumers: ResourceConsumer,
    optional: Iterable[str] = (),
    pins: Iterable[WorkloadPin] = (),
    **grant: Any,
) -> EditedApp:
    grants = AppGrants(
        deployment="d1",
        consumers=tuple(
            ConsumerGrant(intent="i", consumer=each.name, optional=frozenset(optional), **grant)
            for each in consumers
        ),
        pins=tuple(pins),
    )
    intents = [HpaIntent(name="i", app=of.name, consumers=consumers)]
    return edited(of, intents, grants, "default")


def template(of: EditedApp, index: int = 0) -> Json:
    manifest = of.objects[index]
    found: Any = manifest
    for key in KINDS[manifest["kind"]].template:
        found = found[key]
    assert isinstance(found, dict)
    return found


def resources(of: EditedApp, name: str = "main") -> Json:
    spec = template(of)["spec"]
    every = [*spec.get("initContainers", []), *spec["containers"]]
    (found,) = [each for each in every if each["name"] == name]
    return dict(found["resources"])


def terms(of: EditedApp) -> list[Json]:
    found = template(of)["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert isinstance(found, list)
    return found


# -- the acceptance scenario


def placed(app_name: str, *optional: str) -> dict[str, tuple[Json, Json, str]]:
    """By workload: requests, limits and QoS class on a cluster with these optional ones."""
    group = scenario.base().group
    (own,) = [each for each in group.apps if each.name == app_name]
    grants = AppGrants(
        deployment="d1",
        consumers=(
            ConsumerGrant(
                intent="fwall-hpa-intent", consumer="core-fwall", optional=frozenset(optional)
            ),
        )
        if optional
        else (),
    )
    found = edited(own, group.hpa, grants, "default")
    made = pods_of(GroupApp(name=app_name, objects=found.objects), "default")
    consumers = {c.object_name: c for each in group.hpa for c in each.consumers}
    shown = {}
    for each in made:
        if each.name in consumers:
            (target,) = [
                one
                for one in template(found, each.object_index)["spec"]["containers"]
                if one["name"] == consumers[each.name].container
            ]
            given = target["resources"]
            shown[each.name] = (
                {k: parse(v) for k, v in given.get("requests", {}).items()},
                {k: parse(v) for k, v in given.get("limits", {}).items()},
                exclusivity_of(each.pod).qos,
            )
    return shown


def quantities(**written: str) -> Json:
    return {name.replace("__", "/").replace("_", "."): parse(v) for name, v in written.items()}


def test_the_objects_of_the_acceptance_scenario() -> None:
    exact = quantities(cpu="4", memory="1000M", nvidia_com__gpu="1")
    fwall = placed("fwall", "core-fwall-gpu-needs")
    assert fwall["core-fwall"] == (exact, exact, "Guaranteed")
    assert fwall["api-server"] == (
        quantities(cpu="1", memory="200M"),
        quantities(cpu="2"),
        "Burstable",
    )
    analytics = placed("analytics")
    assert analytics["ai-model"] == (quantities(cpu="2"), {}, "Burstable")
    qat = quantities(intel_com__qat="1")
    assert analytics["logger"] == (qat, qat, "BestEffort")


def test_an_optional_device_is_written_only_where_it_was_granted() -> None:
    """EMCO wrote it on every cluster, also where there was none (V1)."""
    requests, limits, _ = placed("fwall")["core-fwall"]
    assert GPU not in requests
    assert GPU not in limits


# -- resources


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_that_makes_pods_is_edited(kind: str) -> None:
    """EMCO took every consumer for a Deployment."""
    found = edit(app(workload(kind)), needs(consumer(kind), amount("cpu", "2", "3")))
    assert resources(found) == {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "intel.com/qat", "hugepages-2Mi"])
def test_what_cannot_be_overcommitted_gets_limits_equal_to_requests(resource: str) -> None:
    found = edit(app(workload("Pod")), needs(consumer("Pod"), amount(resource, "2")))
    assert resources(found) == {"requests": {resource: "2"}, "limits": {resource: "2"}}


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage", "kubernetes.io/batch"])
def test_other_resources_get_no_limit_that_nobody_asked_for(resource: str) -> None:
    found = edit(app(workload("Pod")), needs(consumer("Pod"), amount(resource, "2")))
    assert resources(found) == {"requests": {resource: "2"}}


def test_a_chart_limit_below_the_new_request_is_raised_and_told() -> None:
    small = container(requests={"cpu": "100m"}, limits={"cpu": "500m", "memory": "1Gi"})
    found = edit(app(workload("Deployment", "web", small)), needs(consumer(), amount("cpu", "2")))
    assert resources(found) == {
        "requests": {"cpu": "2"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    assert [each.why for each in found.edits] == [
        "requirement cpu-needs of consumer web",
        "a limit of 500m is below the request: raised (requirement cpu-needs of consumer web)",
    ]


def test_a_chart_limit_above_the_new_request_stays() -> None:
    large = container(limits={"cpu": "8"})
    found = edit(app(workload("Deployment", "web", large)), needs(consumer(), amount("cpu", "2")))
    assert resources(found) == {"requests": {"cpu": "2"}, "limits": {"cpu": "8"}}


def test_other_resources_of_the_chart_survive() -> None:
    there = container(requests={"memory": "1Gi", "acme.com/nic": 1}, limits={"acme.com/nic": 1})
    found = edit(app(workload("Deployment", "web", there)), needs(consumer(), amount("cpu", "2")))
    assert resources(found)["requests"] == {"memory": "1Gi", "acme.com/nic": 1, "cpu": "2"}
    assert resources(found)["limits"] == {"acme.com/nic": 1}


def test_a_quantity_that_is_the_same_stays_as_it_was_written() -> None:
    there = container(requests={"cpu": 2, "memory": "1024Mi"})
    found = edit(
        app(workload("Deployment", "web", there)),
        needs(consumer(), amount("cpu", "2"), amount("memory", "1Gi")),
    )
    assert resources(found) == {"requests": {"cpu": 2, "memory": "1024Mi"}}
    assert not found.edits


@pytest.mark.parametrize(
    ("resource", "asked", "written"),
    [
        ("cpu", "500m", "500m"),
        ("cpu", "1500m", "1500m"),
        ("cpu", "2048", "2048"),
        ("memory", "1000M", "1G"),
        ("memory", "200M", "200M"),
        ("memory", "1Gi", "1Gi"),
        ("memory", "7", "7"),
        ("nvidia.com/gpu", "1000", "1000"),
    ],
)
def test_how_amounts_are_written(resource: str, asked: str, written: str) -> None:
    found = edit(app(workload("Pod")), needs(consumer("Pod"), amount(resource, asked)))
    assert resources(found)["requests"] == {resource: written}


def test_of_several_requirements_on_one_resource_the_largest_counts() -> None:
    """A mandatory minimum, and more if there is some."""
    web = needs(
        consumer(),
        amount("cpu", "2", "2"),
        amount("cpu", "4", name="more", mandatory=False, weight=5),
    )
    both = edit(app(workload("Deployment")), web, optional=["more"])
    assert resources(both) == {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}
    assert resources(edit(app(workload("Deployment")), web))["requests"] == {"cpu": "2"}
    turned = needs(consumer(), *reversed(web.requirements))
    assert resources(edit(app(workload("Deployment")), turned, optional=["more"])) == resources(
        both
    )


def test_init_containers_and_sidecars_are_edited_by_name() -> None:
    init = [{**container("proxy"), "restartPolicy": "Always"}]
    found = edit(
        app(workload("Deployment", initContainers=init)),
        needs(consumer(container="proxy"), amount("cpu", "1")),
    )
    assert resources(found, "proxy") == {"requests": {"cpu": "1"}}
    assert "resources" not in template(found)["spec"]["containers"][0]


def test_what_the_pod_requests_as_a_whole_is_raised_with_its_containers() -> None:
    whole = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2"}}
    pair = workload(
        "Pod", "web", container("a", requests={"cpu": "1"}), container("b"), resources=whole
    )
    found = edit(app(pair), needs(consumer("Pod", container="b"), amount("cpu", "3", "3")))
    assert template(found)["spec"]["resources"] == {
        "requests": {"cpu": "4", "memory": "4Gi"},
        "limits": {"cpu": "3"},
    }


# -- node rules


def test_a_label_with_one_value_becomes_a_node_selector() -> None:
    chart = workload("Deployment", nodeSelector={"disk": "ssd", "zone": "b"})
    found = edit(app(chart), needs(consumer(), label("zone", "a")))
    assert template(found)["spec"]["nodeSelector"] == {"disk": "ssd", "zone": "a"}
    (told,) = found.edits
    assert (told.path, told.before, told.after) == (
        "spec.template.spec.nodeSelector[zone]",
        "b",
        "a",
    )
    assert told.why == "requirement zone-needs of consumer web; the chart had 'b'"


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("In", ("a", "b")),
        ("NotIn", ("a",)),
        ("Exists", ()),
        ("DoesNotExist", ()),
        ("Gt", ("8",)),
        ("Lt", ("8",)),
    ],
)
def test_operators_become_required_affinity(operator: str, values: tuple[str, ...]) -> None:
    found = edit(
        app(workload("Pod")), needs(consumer("Pod"), label("k", *values, operator=operator))
    )
    expression = {"key": "k", "operator": operator, **({"values": list(values)} if values else {})}
    assert terms(found) == [{"matchExpressions": [expression]}]


def affinity(*there: Json) -> Json:
    return {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(there)}},
        "podAntiAffinity": {"kept": True},
    }


ON_A: Json = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ON_N9: Json = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n9"]}]}
GPU_NODE: Json = {"key": "gpu", "operator": "Exists"}


def test_operators_are_anded_into_every_term_that_is_there() -> None:
    chart = workload("Pod", affinity=affinity(ON_A, ON_N9, {}))
    found = edit(app(chart), needs(consumer("Pod"), label("gpu", operator="Exists")))
    assert terms(found) == [
        {"matchExpressions": [*ON_A["matchExpressions"], GPU_NODE]},
        {**ON_N9, "matchExpressions": [GPU_NODE]},
        {},
    ]
    assert template(found)["spec"]["affinity"]["podAntiAffinity"] == {"kept": True}


def test_an_optional_label_becomes_a_preference_with_its_weight() -> None:
    other = {"weight": 3, "preference": ON_A}
    chart = workload("Pod", affinity={"nodeAffinity": {PREFERRED: [other]}})
    wanted = label("turbo", "true", mandatory=False, weight=7, name="turbo")
    found = edit(app(chart), needs(consumer("Pod"), wanted), optional=["turbo"])
    expression = {"key": "turbo", "operator": "In", "values": ["true"]}
    assert template(found)["spec"]["affinity"]["nodeAffinity"] == {
        PREFERRED: [other, {"weight": 7, "preference": {"matchExpressions": [expression]}}]
    }
    assert "nodeSelector" not in template(found)["spec"]


def test_two_values_of_one_label_are_both_asked_for() -> None:
    """No node has both, and nothing is pretended."""
    wanted = [label("zone", "a"), label("zone", "b", name="other")]
    found = edit(app(workload("Pod")), needs(consumer("Pod"), *wanted))
    assert template(found)["spec"]["nodeSelector"] == {"zone": "a"}
    assert terms(found) == [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    ]


def pin(*nodes: str, index: int = 0) -> WorkloadPin:
    return WorkloadPin(object_index=index, nodes=nodes, why="core-fwall needs n1")


def named(node: str) -> Json:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def test_a_pin_is_a_term_for_each_node() -> None:
    """Of a workload without any consumer, too. A field of a term takes a single name."""
    found = edit(app(workload("Deployment")), pins=[pin("n1", "n2")])
    assert terms(found) == [{"matchFields": [named("n1")]}, {"matchFields": [named("n2")]}]
    assert [each.why for each in found.edits] == ["core-fwall needs n1"]


def test_a_pin_leaves_no_way_around_it() -> None:
    chart = workload("Pod", affinity=affinity(ON_A, ON_N9, {}))
    found = edit(app(chart), pins=[pin("n1", "n2")])
    assert terms(found) == [
        {**ON_A, "matchFields": [named("n1")]},
        {**ON_A, "matchFields": [named("n2")]},
        {"matchFields": [named("n9"), named("n1")]},
        {},
    ]


def test_a_gang_stays_within_the_fabric_it_was_given() -> None:
    gang = needs(consumer(within_one="acme.com/fabric"), amount("cpu", "1"))
    found = edit(app(workload("Deployment")), gang, within_one="f7")
    expression = {"key": "acme.com/fabric", "operator": "In", "values": ["f7"]}
    assert terms(found) == [{"matchExpressions": [expression]}]
    with pytest.raises(Uneditable, match=r"consumer web: which acme.com/fabric it stays within"):
        edit(app(workload("Deployment")), gang)


# -- replicas


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.replicas])
@pytest.mark.parametrize("chart_has", [None, 5])
def test_replicas_are_written_whether_the_chart_has_them_or_not(
    kind: str, chart_has: int | None
) -> None:
    """EMCO wrote them only where the object had the field."""
    found = edit(app(workload(kind, replicas=chart_has)), consumer(kind, replicas=3))
    (made,) = pods_of(app(*found.objects), "default")
    assert made.count == 3
    (told,) = found.edits
    assert (told.before, told.after, told.why) == (chart_has, 3, "replicas of consumer web")


def test_replicas_that_nobody_speaks_of_stay() -> None:
    chart = workload("Deployment", replicas=5)
    assert edit(app(chart), needs(consumer())).objects[0]["spec"]["replicas"] == 5


def test_what_has_no_replicas_is_given_none() -> None:
    assert (
        "replicas"
        not in edit(app(workload("DaemonSet")), consumer("DaemonSet", replicas=1)).objects[0][
            "spec"
        ]
    )
    with pytest.raises(Uneditable, match="2 replicas: a DaemonSet makes a pod on each node"):
        edit(app(workload("DaemonSet")), consumer("DaemonSet", replicas=2))


# -- what is not there


def test_an_object_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(
        UnknownWorkload,
        match="consumer db: there is no StatefulSet db among the app's workloads: Deployment web",
    ):
        edit(app(workload("Deployment")), consumer("StatefulSet", "db"))


def test_a_container_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(UnknownContainer, match="Deployment web: no container 'db': there are main"):
        edit(app(workload("Deployment")), needs(consumer(container="db"), amount("cpu", "1")))


def test_grants_for_consumers_that_are_not_there() -> None:
    grants = AppGrants(deployment="d1", consumers=(ConsumerGrant(intent="i", consumer="ghost"),))
    with pytest.raises(Uneditable, match="not there: ghost of i"):
        edited(app(workload("Deployment")), [], grants, "default")
    with pytest.raises(Uneditable, match="pinned, but no workload: object 3"):
        edit(app(workload("Deployment")), pins=[pin("n1", index=3)])


def test_intents_of_other_apps_are_not_ours() -> None:
    other = HpaIntent(name="i", app="other", consumers=(needs(consumer(), amount("cpu", "9")),))
    found = edited(app(workload("Deployment")), [other], AppGrants(deployment="d1"), "default")
    assert not found.edits


# -- labels


def test_objects_and_pods_carry_the_labels_of_the_deployment() -> None:
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    job = workload("CronJob")
    del job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]
    found = edit(app(service, workload("Deployment"), workload("Pod", "one"), job))
    ours = {"dovetail.dev/deployment": "d1", "dovetail.dev/app": "shop"}
    assert found.objects[0]["metadata"] == {"name": "web", "labels": ours}
    assert found.objects[1]["metadata"]["labels"] == {"app": "web", **ours}
    assert template(found, 1)["metadata"]["labels"] == {"app": "web", **ours}
    assert found.objects[1]["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert found.objects[2]["metadata"]["labels"] == {"app": "one", **ours}
    assert template(found, 3)["metadata"] == {"labels": ours}
    assert not found.edits


def test_names_of_apps_that_are_too_long_for_a_label() -> None:
    long = app(workload("Pod"), name="a" * 100)
    value = edit(long).objects[0]["metadata"]["labels"]["dovetail.dev/app"]
    assert len(value) == 63
    other = app(workload("Pod"), name="a" * 101)
    assert edit(other).objects[0]["metadata"]["labels"]["dovetail.dev/app"] != value


# -- what nobody owns


def test_what_is_given_is_not_changed_and_unknown_fields_survive() -> None:
    """EMCO turned the template into the types of one version of Kubernetes, and lost the rest."""
    chart = workload("Deployment", fromTheFuture={"a": [1, None, {"b": "c"}]}, nothing=None)
    chart["spec"]["template"]["spec"]["containers"][0]["novel"] = [{"x": 1.5}]
    before = copy.deepcopy(chart)
    found = edit(
        app(chart),
        needs(consumer(replicas=4), amount("cpu", "1"), label("zone", "a")),
        pins=[pin("n1")],
    )
    assert chart == before
    assert template(found)["spec"]["fromTheFuture"] == {"a": [1, None, {"b": "c"}]}
    assert template(found)["spec"]["nothing"] is None
    assert template(found)["spec"]["containers"][0]["novel"] == [{"x": 1.5}]


def test_every_edit_is_told() -> None:
    found = edit(
        app(workload("CronJob")), needs(consumer("CronJob", replicas=2), amount("cpu", "500m", "1"))
    )
    job = "spec.jobTemplate.spec"
    main = f"{job}.template.spec.containers[main].resources"
    assert [(each.where, each.path, each.before, each.after) for each in found.edits] == [
        ("CronJob web", f"{main}.requests[cpu]", None, "500m"),
        ("CronJob web", f"{main}.limits[cpu]", None, "1"),
        ("CronJob web", f"{job}.parallelism", None, 2),
    ]
