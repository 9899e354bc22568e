"""What an installation chooses is in its manifests, everywhere, and an API server takes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from dovetail.cli.run.scheduler import SCHEDULER
from dovetail.kube import manifests
from dovetail.kube.extender.certificates import certificates_text
from dovetail.kube.manifests.installation import Installation
from tests.support.kube.cluster import Cluster

Objects = dict[tuple[str, str], dict[str, Any]]
PARTS = (*manifests.PARTS, "machines-webhook", "extender")
ELSEWHERE = Installation("elsewhere", "registry.example/dovetail:1", 3)


def by_name(chosen: Installation, *parts: str) -> Objects:
    documents = [each for each in yaml.safe_load_all(manifests.text(parts, chosen)) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def pod_of(found: Objects, name: str) -> dict[str, Any]:
    pod: dict[str, Any] = found["Deployment", name]["spec"]["template"]["spec"]
    return pod


def test_what_is_not_chosen_is_as_it_is_written() -> None:
    for part in manifests.PARTS:
        assert manifests.text([part]) == manifests.written(part)


def test_no_name_of_the_usual_namespace_is_left() -> None:
    text = json.dumps([*by_name(ELSEWHERE, *PARTS).values()])
    for words in (
        '"namespace": "dovetail"',
        '"values": ["dovetail"]',
        "dovetail.svc",
        ":dovetail:",
    ):
        assert words not in text
    assert ("Namespace", "elsewhere") in by_name(ELSEWHERE, "scheduler")
    assert ("Namespace", "elsewhere") in by_name(ELSEWHERE, "machines")


@pytest.mark.parametrize("name", ["123", "no", "1e3"])
def test_names_that_look_like_something_else_stay_names(name: str) -> None:
    found = by_name(Installation(name), "extender", "machines-webhook")
    spaces = {each["metadata"].get("namespace", name) for each in found.values()}
    assert spaces == {name}
    assert ("Namespace", name) in found


def test_rights_are_given_where_it_runs() -> None:
    found = by_name(ELSEWHERE, *PARTS)
    for (kind, _), each in found.items():
        if kind in {"RoleBinding", "ClusterRoleBinding"}:
            assert [subject["namespace"] for subject in each["subjects"]] == ["elsewhere"]


def test_namespaces_of_kubernetes_itself_are_left_alone() -> None:
    """Else every pod there would have to keep to the rules of ours."""
    found = by_name(Installation("kube-system"), *PARTS)
    assert not [name for kind, name in found if kind == "Namespace"]


@pytest.mark.parametrize("name", ["dovetail-scheduler", "dovetail-operator"])
def test_replicas_come_first_and_go_one_by_one(name: str) -> None:
    found = by_name(ELSEWHERE, "scheduler", "machines")
    deployment = found["Deployment", name]["spec"]
    assert deployment["replicas"] == 3
    assert pod_of(found, name)["priorityClassName"] == "system-cluster-critical"
    budget = found["PodDisruptionBudget", name]["spec"]
    assert budget["selector"] == deployment["selector"]
    assert budget["maxUnavailable"] == 1, "the only replica may be drained, too"


def test_the_lease_is_where_the_role_allows_it() -> None:
    (container,) = pod_of(by_name(ELSEWHERE, "scheduler"), "dovetail-scheduler")["containers"]
    variable = SCHEDULER.settings["lease.namespace"].variable
    (given,) = [each for each in container["env"] if each["name"] == variable]
    assert given["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}


def test_the_extender_is_the_scheduler_that_serves_it() -> None:
    found = by_name(ELSEWHERE, "extender")
    plain = by_name(ELSEWHERE, "scheduler")
    assert found.keys() == plain.keys() | {("Service", "dovetail-extender")}
    assert by_name(ELSEWHERE, "extender", "scheduler") == found
    pod = pod_of(found, "dovetail-scheduler")
    (container,) = pod["containers"]
    flags = dict(zip(container["args"][1::2], container["args"][2::2], strict=True))
    assert flags.keys() <= {each.flag for each in SCHEDULER.settings.values()}
    (mounted,) = container["volumeMounts"]
    for flag, key in (("cert", "tls.crt"), ("key", "tls.key"), ("client-ca", "ca.crt")):
        assert flags[f"--extender-{flag}"] == f"{mounted['mountPath']}/{key}"
    secrets = [*yaml.safe_load_all(certificates_text(ELSEWHERE, datetime.now(UTC)))]
    assert pod["volumes"][0]["secret"]["secretName"] == secrets[0]["metadata"]["name"]
    service = found["Service", "dovetail-extender"]["spec"]
    template = found["Deployment", "dovetail-scheduler"]["spec"]["template"]
    assert service["selector"] == template["metadata"]["labels"]
    (port,) = service["ports"]
    assert {"name": port["targetPort"], "containerPort": 8888} in container["ports"]
    assert flags["--extender-listen"] == "0.0.0.0:8888"


def configuration(**chosen: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        manifests.text(["kube-scheduler"], Installation("elsewhere", **chosen))
    )
    return found


def test_kube_scheduler_is_told_where_the_extender_is() -> None:
    (extender,) = configuration()["extenders"]
    assert extender["urlPrefix"] == "https://dovetail-extender.elsewhere.svc:8888"
    (extender,) = configuration(address="10.0.0.7:8888")["extenders"]
    assert extender["urlPrefix"] == "https://10.0.0.7:8888"
    assert extender["tlsConfig"]["serverName"] == "dovetail-extender.elsewhere.svc"


def test_kube_scheduler_asks_about_classes_or_about_all_pods() -> None:
    (extender,) = configuration(classes=("gpu",), resources=("a.b/c",))["extenders"]
    assert extender["managedResources"] == [
        {"name": "resourceclass.dovetail.dev/gpu", "ignoredByScheduler": True},
        {"name": "a.b/c"},
    ]
    told = configuration()
    assert "managedResources" not in told["extenders"][0]
    (plugin,) = told["profiles"][0]["pluginConfig"]
    assert plugin["args"] == {"ignoredResourceGroups": ["resourceclass.dovetail.dev"]}


@pytest.mark.parametrize(
    "chosen",
    [Installation(), ELSEWHERE, Installation("kube-system", "dovetail:2", 1)],
    ids=lambda each: each.namespace,
)
def test_an_api_server_takes_all_of_it(own_cluster: Cluster, chosen: Installation) -> None:
    """Namespaces and kinds first, as kubectl would find them; then everything, strictly."""
    cluster = own_cluster
    every = [*yaml.safe_load_all(manifests.text(PARTS, chosen))]
    every += yaml.safe_load_all(certificates_text(chosen, datetime.now(UTC)))
    first = {"Namespace", "CustomResourceDefinition"}
    cluster.apply(*(each for each in every if each["kind"] in first))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    applying = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    told = cluster.kubectl(*applying, given=yaml.safe_dump_all(every)).splitlines()
    assert len(told) == len(every)
    assert all(line.endswith("(server dry run)") for line in told)
    # And for good: replicas get pods, which the namespace's own rules allow.
    cluster.kubectl("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(every))
    pods = ("get", "pods", "-n", chosen.namespace, "-o", "json")

    def made() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(cluster.kubectl(*pods))["items"]
        return found

    cluster.await_that(lambda: len(made()) == 2 * chosen.replicas, "pods of both Deployments")
    for pod in made():
        assert pod["spec"]["priority"] == 2_000_000_000
        assert pod["spec"]["containers"][0]["image"] == chosen.image
