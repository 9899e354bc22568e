"""The Helm chart is the plain manifests with values put in: what it renders is what they have."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail import __version__
from dovetail.cli.run.operator import OPERATOR
from dovetail.kube import manifests
from tests.support.kube import assets
from tests.support.kube.cluster import Cluster
from tests.support.paths import ROOT

CHART = ROOT / "packaging/helm/dovetail-machines"
PLAIN = [part for part in manifests.PARTS if part.startswith("machines")]
KEPT = {"helm.sh/resource-policy": "keep"}
Objects = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def needs_helm() -> None:
    if assets.find("helm") is None:
        pytest.skip("needs Helm, which `make kube` builds")


def helm(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    program = assets.find("helm")
    assert program is not None
    places = {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **places},
    )


@pytest.fixture
def rendering(tmp_path: Path) -> Any:
    def render(*options: str, chart: Path = CHART, namespace: str = "dovetail") -> Objects:
        done = helm("template", "any", chart, "-n", namespace, *options, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return by_name(done.stdout)

    return render


def by_name(text: str) -> Objects:
    documents = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def refusal(tmp_path: Path, *options: str) -> str:
    done = helm("template", "any", CHART, *options, home=tmp_path)
    assert done.returncode
    return done.stderr


def operator_of(objects: Objects) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod and its container."""
    pod = objects["Deployment", "dovetail-operator"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def test_without_values_it_renders_the_plain_manifests(rendering: Any) -> None:
    found = rendering()
    for (kind, _), each in found.items():
        if kind == "CustomResourceDefinition":
            assert each["metadata"].pop("annotations") == KEPT
    expected = by_name(manifests.text(PLAIN))
    del expected["Namespace", "dovetail"]
    assert found == expected


def test_the_webhook_is_the_plain_one_too(rendering: Any) -> None:
    found = rendering("--set", "webhook.enabled=true")
    expected = by_name(manifests.text(["machines-webhook"]))
    assert {key: found[key] for key in expected} == expected
    _, container = operator_of(found)
    assert container["args"][-2:] == ["--webhook-listen", "0.0.0.0:9443"]
    assert {"name": "webhook", "containerPort": 9443} in container["ports"]


def test_it_goes_to_the_namespace_of_the_release(rendering: Any) -> None:
    found = rendering("--set", "webhook.enabled=true", namespace="elsewhere")
    text = json.dumps([*found.values()])
    assert '"namespace": "dovetail"' not in text
    assert '"values": ["dovetail"]' not in text
    binding = found["ValidatingAdmissionPolicyBinding", "operator.machines.imperator.tenzen-y.io"]
    assert binding["spec"]["paramRef"]["namespace"] == "elsewhere"


def test_values_are_put_into_the_deployment(rendering: Any) -> None:
    values = {
        "image": {"repository": "registry.example/dovetail", "tag": "1.2"},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 3,
        "database": {"secret": "ledger", "key": "address"},
        "cluster": "east",
        "stockImage": "busybox",
        "logLevel": "debug",
        "resources": {"requests": {"cpu": "1"}},
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"role": "control"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
    }
    options = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
    found = rendering(*options)
    pod, container = operator_of(found)
    assert found["Deployment", "dovetail-operator"]["spec"]["replicas"] == 3
    assert container["image"] == "registry.example/dovetail:1.2"
    assert container["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "ledger", "key": "address"}
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    assert given.keys() <= {each.variable for each in OPERATOR.settings.values()}
    assert sorted(given.values()) == ["busybox", "debug", "east"]
    assert container["resources"] == values["resources"]
    same = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
    assert {key: pod[key] for key in same} == {key: values[key] for key in same}
    template = found["Deployment", "dovetail-operator"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"a": "b"}


def test_an_image_may_have_a_digest(rendering: Any) -> None:
    _, container = operator_of(rendering("--set", "image.tag=sha256:abc"))
    assert container["image"] == "dovetail@sha256:abc"


def test_certificates_may_come_from_cert_manager(rendering: Any) -> None:
    given = ("webhook.enabled=true", "webhook.certManager.enabled=true")
    found = rendering(
        *(f"--set={each}" for each in given), "--set=webhook.certManager.issuerRef.name=ca"
    )
    certificate = found["Certificate", "dovetail-webhook"]["spec"]
    assert certificate["issuerRef"] == {"name": "ca"}
    assert "dovetail-webhook.dovetail.svc" in certificate["dnsNames"]
    pod, container = operator_of(found)
    flags = {each for each in container["args"] if each.startswith("--")}
    assert "--webhook-certificates" in flags
    assert flags <= {each.flag for each in OPERATOR.settings.values()}
    assert pod["volumes"][0]["secret"]["secretName"] == certificate["secretName"]
    assert ("Secret", "dovetail-webhook") not in found
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = found[kind, "dovetail-webhook"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "dovetail/dovetail-webhook"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--set=repplicas=3"], "additional properties 'repplicas'"),
        (["--set=replicas=two"], "got string, want integer"),
        (["--set=logLevel=loud"], "/logLevel"),
        (["--set=webhook.certManager.enabled=true"], "missing property 'name'"),
        (["--set=injectionPolicy=false"], "by injectionPolicy, webhook.enabled, or both"),
        (["--kube-version=1.35.0"], "since 1.36: set injectionPolicy=false"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_values_that_cannot_work_are_refused(
    tmp_path: Path, options: list[str], reason: str
) -> None:
    assert reason in refusal(tmp_path, *options)


def test_before_1_36_the_webhook_takes_the_place_of_the_policy(rendering: Any) -> None:
    webhook = ("--set=injectionPolicy=false", "--set=webhook.enabled=true")
    found = rendering("--kube-version=1.35.0", *webhook)
    kinds = {kind for kind, _ in found}
    assert "MutatingWebhookConfiguration" in kinds
    assert not any(kind.startswith("MutatingAdmissionPolicy") for kind in kinds)


def test_it_is_linted_and_packaged_whole(rendering: Any, tmp_path: Path) -> None:
    """The manifests in it are links, which a package holds the contents of."""
    linted = helm("lint", CHART, "--strict", home=tmp_path)
    assert linted.returncode == 0, linted.stdout
    packaged = helm("package", CHART, "-d", tmp_path, home=tmp_path)
    assert packaged.returncode == 0, packaged.stderr
    package = tmp_path / f"dovetail-machines-{__version__}.tgz"
    assert rendering(chart=package) == rendering()


@pytest.fixture
def installed(own_cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    own_cluster.make_namespace("elsewhere")
    at = ("-n", "elsewhere", "--kubeconfig", own_cluster.kubeconfig)
    done = helm("install", "machines", CHART, *at, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kubectl label namespace NAME imperator.tenzen-y.io/inject-resource" in done.stdout
    yield own_cluster
    done = helm("uninstall", "machines", *at, home=tmp_path)
    assert done.returncode == 0, done.stderr
    kept = own_cluster.kubectl("get", "crd", "-o", "name")
    assert "machines.imperator.tenzen-y.io" in kept
    left = own_cluster.kubectl("get", "validatingadmissionpolicies", "-o", "name")
    assert "machines.imperator.tenzen-y.io" not in left


def test_it_is_installed_and_what_is_installed_is_in_force(installed: Cluster) -> None:
    refused = {
        "apiVersion": "imperator.tenzen-y.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "ungrouped"},
        "spec": {"nodePool": [], "machineTypes": []},
    }
    creating = ("create", "-f", "-", "--dry-run=server")
    installed.await_that(
        lambda: "names the group" in installed.kubectl(*creating, given=refused, check=False),
        "rules",
    )
    deployed = installed.kubectl("get", "deployment", "dovetail-operator", "-n", "elsewhere")
    assert "dovetail-operator" in deployed


def test_its_version_is_that_of_the_operator() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == __version__
