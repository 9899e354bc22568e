"""Any chart, any intent: only what an intent owns changes, and what was packed is what runs."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dovetail.core.quantity import parse
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    DeviceRequirement,
    GroupApp,
    HpaIntent,
    LabelRequirement,
    ResourceConsumer,
)
from dovetail.intents.manifests.diffs import diff_of
from dovetail.intents.manifests.editing import edited, granted_requirements
from dovetail.intents.manifests.grants import (
    AppGrants,
    ConsumerGrant,
    DeviceAccess,
    DeviceSource,
    WorkloadPin,
)
from dovetail.intents.manifests.requirements import is_overcommittable
from dovetail.intents.manifests.workloads import KINDS, pods_of, with_requirements, workload_of
from dovetail.podfit.pod_request import PodRequest, pod_request_of
from tests.intents.manifests.charts import amount, app, label, workload
from tests.intents.manifests.test_claims import LARGE

Json = dict[str, Any]

QUANTITY = st.sampled_from(["1", "2", "500m", "1Gi", "3", "1000M", 2])
PIECES = st.sampled_from(["1", "2", 3])
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage")
KEYS = st.sampled_from(["zone", "gpu", "acme.com/fabric"])
VALUES = st.sampled_from(["a", "b", "8"])
UNKNOWN = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pqr"), inner),
    max_leaves=4,
)


def amounts() -> st.SearchStrategy[Json]:
    """What a chart may say: equal requests and limits of what cannot be overcommitted."""
    plain = st.dictionaries(st.sampled_from(["cpu", "memory"]), QUANTITY, max_size=2)
    pieces = st.dictionaries(st.just("nvidia.com/gpu"), PIECES, max_size=1)
    return st.builds(
        lambda requests, limits, extended: {
            "requests": {**requests, **extended},
            "limits": {**limits, **extended},
        },
        plain,
        plain,
        pieces,
    )


EXPRESSION = st.fixed_dictionaries({"key": KEYS, "operator": st.just("In")}).flatmap(
    lambda each: st.lists(VALUES, min_size=1, max_size=2).map(lambda v: {**each, "values": v})
)
TERM = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(EXPRESSION, max_size=2),
        "matchFields": st.just([{"key": "metadata.name", "operator": "In", "values": ["n2"]}]),
    },
)


def affinity(terms: list[Json], unknown: object) -> Json:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    found: Json = {"podAffinity": {"unknown": unknown}}
    return {**found, "nodeAffinity": {required: {"nodeSelectorTerms": terms}}} if terms else found


@st.composite
def charts(draw: st.DrawFn) -> Json:
    containers = [
        {"name": name, "image": name, "novel": draw(UNKNOWN), "resources": draw(amounts())}
        for name in draw(st.sampled_from([("main",), ("main", "side")]))
    ]
    kind = draw(st.sampled_from(list(KINDS)))
    more: Json = {"novel": draw(UNKNOWN)}
    if draw(st.booleans()):
        more["nodeSelector"] = draw(st.dictionaries(KEYS, VALUES, max_size=2))
    if draw(st.booleans()):
        more["affinity"] = affinity(draw(st.lists(TERM, max_size=3)), draw(UNKNOWN))
    if draw(st.booleans()):
        more["initContainers"] = [{"name": "init", "novel": draw(UNKNOWN)}]
    return workload(kind, "web", *containers, replicas=draw(st.sampled_from([None, 2])), **more)


@st.composite
def requirements(draw: st.DrawFn, number: int) -> AnyRequirement:
    more: Json = {"name": f"r{number}", "mandatory": draw(st.booleans())}
    kind = draw(st.sampled_from(["amount", "label", "device"]))
    if kind == "label":
        operator = draw(st.sampled_from(["In", "NotIn", "Exists", "Gt"]))
        values = [] if operator == "Exists" else ["8"] if operator == "Gt" else [draw(VALUES)]
        return label(
            draw(KEYS), *values, operator=operator, weight=draw(st.integers(1, 10)), **more
        )
    if kind == "device":
        return DeviceRequirement(count=draw(st.integers(1, 3)), class_name="large", **more)
    resource = draw(st.sampled_from(RESOURCES))
    requests = draw(st.sampled_from(["1", "2", "4"]))
    limits = draw(st.sampled_from([None, "4", "8"]))
    return amount(resource, requests, limits, **more)


@st.composite
def consumers(draw: st.DrawFn, chart: Json, number: int) -> ResourceConsumer:
    names = ["main", "init"] if "initContainers" in str(chart) else ["main"]
    return ResourceConsumer(
        name=f"c{number}",
        kind=chart["kind"],
        object_name="web",
        container=draw(st.sampled_from(names)),
        replicas=draw(st.sampled_from([None, 1, 3])) if KINDS[chart["kind"]].replicas else None,
        requirements=tuple(draw(requirements(at)) for at in range(draw(st.integers(0, 3)))),
    )


SOURCES = (
    DeviceSource(access=DeviceAccess.CLASS, name="large", scheduler="dovetail"),
    DeviceSource(access=DeviceAccess.CLASS, definition=LARGE),
    DeviceSource(access=DeviceAccess.CLAIM, name="gpu.example.com", definition=LARGE),
    DeviceSource(access=DeviceAccess.CLAIM, definition=LARGE),
)


class Case:
    """A chart, consumers of it, and what they were granted."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.app = app(draw(charts()))
        count = draw(st.integers(0, 2))
        self.consumers = tuple(
            draw(consumers(dict(self.app.objects[0]), at)) for at in range(count)
        )
        self.grants = AppGrants(
            deployment="d1",
            consumers=tuple(
                ConsumerGrant(
                    intent="i",
                    consumer=each.name,
                    optional=frozenset(
                        one.name for one in each.requirements if draw(st.booleans())
                    ),
                    devices={one.name: draw(st.sampled_from(SOURCES)) for one in each.requirements},
                )
                for each in self.consumers
            ),
            pins=draw(
                st.sampled_from(
                    [(), (WorkloadPin(object_index=0, nodes=("n1", "n2"), why="planned"),)]
                )
            ),
        )

    def edited(self, of: GroupApp | None = None) -> GroupApp:
        intents = [HpaIntent(name="i", app="shop", consumers=self.consumers)]
        return replace(
            self.app, objects=edited(of or self.app, intents, self.grants, "default").objects
        )


CASES = st.composite(Case)()


@given(CASES)
@settings(max_examples=150)
def test_what_is_given_is_never_changed(case: Case) -> None:
    before = copy.deepcopy(case.app)
    case.edited()
    assert case.app == before


@given(CASES)
@settings(max_examples=150)
def test_editing_is_idempotent(case: Case) -> None:
    once = case.edited()
    assert case.edited(once) == once


@given(CASES)
@settings(max_examples=150)
def test_what_an_intent_does_not_own_survives(case: Case) -> None:
    assert unowned(case.edited().objects[0]) == unowned(case.app.objects[0])


@given(CASES)
@settings(max_examples=150)
def test_the_pod_that_runs_is_the_pod_that_was_packed(case: Case) -> None:
    """But for our labels, for pins, and for optional labels: those were packed as if they had to
    hold, and are preferences in the object."""
    (packed,) = pods_of(case.app, "default")
    for each, grant in zip(case.consumers, case.grants.consumers, strict=True):
        wanted = [
            one
            for one in granted_requirements(each, grant)
            if one.mandatory or not isinstance(one, LabelRequirement)
        ]
        assert workload_of([packed], each) is packed
        packed = with_requirements(packed, each, wanted)
    case.grants = replace(case.grants, pins=())
    running = pods_of(case.edited(), "default")[0]
    assert running.count == packed.count
    assert comparable(running.pod) == comparable(packed.pod)


@given(CASES)
@settings(max_examples=100)
def test_a_diff_shows_nothing_where_nothing_changed(case: Case) -> None:
    objects = case.edited().objects
    assert diff_of(objects, copy.deepcopy(objects)) == ""
    assert "dovetail.dev/deployment" in diff_of(case.app.objects, objects)


def comparable(pod: Any) -> PodRequest:
    request = pod_request_of(pod)
    labels = {k: v for k, v in request.labels.items() if not k.startswith("dovetail.dev/")}
    selectable = replace(request.selectable, labels=tuple(sorted(labels.items())))
    return replace(request, labels=labels, selectable=selectable, preferred_nodes=())


def unowned(manifest: Any) -> Json:
    """The object without all that an intent may write."""
    found: Json = copy.deepcopy(dict(manifest))
    _drop_labels(found)
    kind = KINDS[found["kind"]]
    if kind.replicas:
        parent = _at(found, kind.replicas[:-1])
        parent.pop(kind.replicas[-1], None)
    template = _at(found, kind.template)
    _drop_labels(template)
    spec = template["spec"]
    for key in ("nodeSelector", "schedulerName", "resourceClaims"):
        spec.pop(key, None)
    affinity = spec.pop("affinity", {})
    affinity.pop("nodeAffinity", None)
    for each in (*spec["containers"], *spec.get("initContainers", [])):
        each.pop("resources", None)
    return {"object": found, "affinity": affinity}


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value[key]
    return value


def _drop_labels(owner: Json) -> None:
    labels = owner.get("metadata", {}).get("labels", {})
    for key in ("dovetail.dev/deployment", "dovetail.dev/app"):
        labels.pop(key, None)


@given(CASES)
@settings(max_examples=150)
def test_what_the_api_server_would_refuse_is_never_written(case: Case) -> None:
    """A request above its limit; limits of extended resources that are not their requests."""
    spec = pods_of(case.edited(), "default")[0].pod.spec
    granted = {
        each.container: {
            one.resource
            for one in each.requirements
            if isinstance(one, AllocatableRequirement) and one.mandatory
        }
        for each in case.consumers
    }
    for each in (*spec.containers, *spec.init_containers):
        for name in granted.get(each.name, ()):
            limit = each.resources.limits.get(name)
            request = parse(str(each.resources.requests[name]))
            assert limit is None or request <= parse(str(limit))
            if not is_overcommittable(name):
                assert limit is not None
                assert request == parse(str(limit))
