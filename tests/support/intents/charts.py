"""The objects of fwall and analytics, as their charts render them: what the intents edit, and much
that they must not touch."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def fwall_objects() -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "fwall"},
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "fwall-rules", "labels": {"app": "fwall"}},
            "data": {"rules.conf": "default deny\nallow tcp 443\n", "mode": "0644"},
        },
        _service("core-fwall", 8443, headless=True),
        _workload(
            "StatefulSet",
            "core-fwall",
            "palo-alto-e3000",
            fields={
                "serviceName": "core-fwall",
                "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
            },
            pod={
                "serviceAccountName": "fwall",
                "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["panorama.example.com"]}],
                "volumes": [
                    {"name": "rules", "configMap": {"name": "fwall-rules"}},
                    {"name": "flows", "emptyDir": {"sizeLimit": "64Mi"}},
                ],
            },
            container={
                "image": "registry.example.com/fwall/palo-alto-e3000:10.2.4",
                "securityContext": {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
                "volumeMounts": [
                    {"name": "rules", "mountPath": "/etc/fwall", "readOnly": True},
                    {"name": "flows", "mountPath": "/var/lib/flows"},
                ],
                "startupProbe": {"tcpSocket": {"port": 8443}, "failureThreshold": 30},
            },
        ),
        _service("api-server", 8080),
        _workload(
            "Deployment",
            "api-server",
            "nginx",
            fields={
                "progressDeadlineSeconds": 300,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            },
            pod={"terminationGracePeriodSeconds": 45, "enableServiceLinks": False},
            container={
                "image": "nginx:1.27",
                "env": [{"name": "CORE", "value": "https://core-fwall:8443"}],
                "resources": {},
                "lifecycle": {"preStop": {"exec": {"command": ["nginx", "-s", "quit"]}}},
            },
        ),
    ]


def analytics_objects() -> list[Json]:
    return [
        _service("ai-model", 9000),
        _workload(
            "StatefulSet",
            "ai-model",
            "openvino",
            fields={"serviceName": "ai-model", "minReadySeconds": 5},
            pod={"dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
            container={
                "image": "openvino/model_server:2024.4",
                "args": ["--model_name=flows", "--model_path=/models/flows"],
                "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": 9000}},
            },
        ),
        _workload(
            "Deployment",
            "logger",
            "logger",
            fields={"paused": False},
            pod={"securityContext": {"runAsNonRoot": True, "runAsUser": 65532}},
            container={
                "image": "fluent/fluent-bit:3.1",
                "terminationMessagePolicy": "FallbackToLogsOnError",
            },
        ),
    ]


def _workload(
    kind: str, name: str, container_name: str, *, fields: Json, pod: Json, container: Json
) -> Json:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": {"meta.helm.sh/release-name": "r1", "example.com/owner": "edge-team"},
        },
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            **fields,
            "template": {
                "metadata": {
                    "labels": dict(labels),
                    "annotations": {"prometheus.io/scrape": "true"},
                },
                "spec": {**pod, "containers": [{"name": container_name, **container}]},
            },
        },
    }


def _service(name: str, port: int, *, headless: bool = False) -> Json:
    spec: Json = {
        "selector": {"app.kubernetes.io/name": name},
        "ports": [{"name": "main", "port": port, "targetPort": port}],
    }
    if headless:
        spec["clusterIP"] = "None"
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
