"""Pods as Kubernetes writes them, read as the agent needs them; nonsense is said where it is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dovetail.node.sources.specification import BadPodDocument, is_over, pod_of
from dovetail.node.wire.resource_plugin import ContainerType


def document(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1"}
    return {"metadata": metadata, "spec": {"containers": list(containers) or [named()], **spec}}


def named(name: str = "main", **resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def wants(name: str, requests: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    return named(name, requests=requests, limits=limits)


def test_who_it_is() -> None:
    found = document(runtimeClassName="kata")
    found["metadata"] |= {
        "labels": {"app": "web"},
        "annotations": {"note": "x"},
        "ownerReferences": [{"kind": "Other"}, {"kind": "DaemonSet", "controller": True}],
    }
    pod = pod_of(found)
    assert (pod.uid, pod.namespace, pod.name) == ("u-1", "shop", "web")
    assert (pod.labels, pod.annotations) == ({"app": "web"}, {"note": "x"})
    assert (pod.runtime_class, pod.owner_kind) == ("kata", "DaemonSet")


def test_kinds_of_containers() -> None:
    pod = pod_of(
        document(
            named("first"),
            named("second"),
            initContainers=[named("init"), {"name": "mesh", "restartPolicy": "Always"}],
            ephemeralContainers=[{"name": "debug"}],
        )
    )
    assert [(each.name, each.type, each.index, each.restartable) for each in pod.containers] == [
        ("init", ContainerType.INIT, 0, False),
        # It stays as long as the pod: plugins must not give its CPUs to others.
        ("mesh", ContainerType.SIDECAR, 1, True),
        ("first", ContainerType.MAIN, 0, False),
        ("second", ContainerType.SIDECAR, 1, False),
        ("debug", ContainerType.EPHEMERAL, 0, False),
    ]


@pytest.mark.parametrize(("said", "main"), [("second", "second"), ("nobody", "first")])
def test_an_annotation_may_name_the_main_container(said: str, main: str) -> None:
    found = document(named("first"), named("second"))
    found["metadata"]["annotations"] = {"kubernetes.io/main-container-name": said}
    (chosen,) = (each for each in pod_of(found).containers if each.type is ContainerType.MAIN)
    assert chosen.name == main


def test_quantities_as_text_or_number_and_limits_for_want_of_requests() -> None:
    limits = {"cpu": 2, "memory": "2Gi", "x/y": 1}
    pod = pod_of(document(wants("main", {"cpu": 0.5, "x/y": "0"}, limits)))
    (container,) = pod.containers
    assert container.requests == {"cpu": Fraction(1, 2), "memory": 2**31, "x/y": 0}
    assert container.limits == {"cpu": 2, "memory": 2**31, "x/y": 1}


def test_resources_of_the_pod_itself() -> None:
    pod = pod_of(document(resources={"limits": {"cpu": "4"}}))
    assert pod.requests == pod.limits == {"cpu": 4}


FULL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (document(), "BestEffort"),
        (document(wants("a", {"example.com/gpu": 1}, {})), "BestEffort"),
        (document(wants("a", {"cpu": 0}, {})), "BestEffort"),
        (document(wants("a", {}, FULL)), "Guaranteed"),
        (document(wants("a", FULL, FULL), wants("b", FULL, FULL)), "Guaranteed"),
        (document(wants("a", {"cpu": "500m", "memory": "1Gi"}, FULL)), "Burstable"),
        (document(wants("a", FULL, {})), "Burstable"),
        (document(wants("a", FULL, FULL), named("b")), "Burstable"),
        (document(wants("a", FULL, FULL), initContainers=[named("i")]), "Burstable"),
        (document(wants("a", FULL, {"cpu": 1})), "Burstable"),
        (document(named("a"), resources={"limits": FULL}), "Guaranteed"),
        (document(wants("a", FULL, FULL), resources={"requests": {"cpu": 3}}), "Burstable"),
    ],
)
def test_class_of_qos(found: dict[str, Any], expected: str) -> None:
    assert pod_of(found).qos_class == expected


def test_the_class_that_the_kubelet_tells_counts() -> None:
    assert pod_of({**document(), "status": {"qosClass": "Burstable"}}).qos_class == "Burstable"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running", "Pending", None])
def test_over(phase: str | None) -> None:
    assert is_over({"status": {"phase": phase}}) is (phase in ("Succeeded", "Failed"))


class TestStaticPods:
    """The runtime knows them by a hash."""

    def uid(self, **annotations: str) -> str:
        found = document()
        found["metadata"]["annotations"] = {
            f"kubernetes.io/config.{key}": value for key, value in annotations.items()
        }
        return pod_of(found).uid

    def test_from_a_file(self) -> None:
        assert self.uid(hash="h", source="file") == "h"

    def test_as_the_api_server_mirrors_them(self) -> None:
        assert self.uid(hash="h", mirror="h") == "h"

    def test_a_pod_of_the_api_server_cannot_pass_for_another(self) -> None:
        assert self.uid(hash="somebody-else", source="api") == "u-1"
        assert self.uid(hash="somebody-else") == "u-1"


def without(path: str) -> dict[str, Any]:
    found = document()
    holder, _, name = path.partition(".")
    if name:
        del found[holder][name]
    else:
        del found[holder]
    return found


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "the document is a list; an object is expected"),
        (None, "the document is missing"),
        (without("spec"), "spec is missing; an object is expected"),
        (without("metadata"), "metadata is missing"),
        (without("metadata.name"), "metadata.name is missing; a text is expected"),
        (without("spec.containers"), "spec.containers is missing or empty"),
        (document(containers="x"), "spec.containers is 'x'; a list is expected"),
        (document(containers=[3]), "spec.containers[0] is 3; an object is expected"),
        (document({}), "spec.containers[0].name is missing"),
        (document({"name": 5}), "spec.containers[0].name is 5; a text is expected"),
        (document(named("a"), named("a")), "two containers of one name"),
        (
            document(wants("a", {"cpu": "4x"}, {})),
            "spec.containers[0].resources.requests['cpu']: '4x' is no quantity",
        ),
        (
            document(wants("a", {"cpu": True}, {})),
            "spec.containers[0].resources.requests['cpu'] is True; a quantity",
        ),
        (
            document(wants("a", {}, {"cpu": -1})),
            "spec.containers[0].resources.limits['cpu'] is -1, less than nothing",
        ),
        (document(resources=[]), "spec.resources is a list; an object is expected"),
        (
            {**document(), "metadata": {"name": "a", "labels": {"x": 1}}},
            "metadata.labels.x is 1; a text is expected",
        ),
    ],
)
def test_nonsense_is_said_where_it_is(found: Any, words: str) -> None:
    with pytest.raises(BadPodDocument) as caught:
        pod_of(found)
    assert words in str(caught.value)
