"""Admission webhooks on loopback are reachable from the test bed's API server."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from tests.support.kube.cluster import Cluster


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refusal = {"uid": review["request"]["uid"], "allowed": False}
        answer = {**review, "response": {**refusal, "status": {"message": "not on my watch"}}}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """The test says what went wrong."""


@contextmanager
def a_webhook(cluster: Cluster) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*cluster.authority.issue("webhook"))
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def configuration(cluster: Cluster, url: str, namespace: str) -> dict[str, Any]:
    ca = base64.b64encode(cluster.authority.certificate.read_bytes()).decode()
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    labels = {"kubernetes.io/metadata.name": namespace}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "refuses.dovetail.dev",
                "clientConfig": {"url": url, "caBundle": ca},
                "rules": [rule],
                "namespaceSelector": {"matchLabels": labels},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }
        ],
    }


def test_a_webhook_on_loopback_is_asked(cluster: Cluster, namespace: str) -> None:
    with a_webhook(cluster) as url:
        cluster.apply(configuration(cluster, url, namespace))
        creating = ("create", "-n", namespace, "configmap", "--dry-run=server", "any")
        try:
            cluster.await_that(
                lambda: "not on my watch" in cluster.kubectl(*creating, check=False), "refusal"
            )
        finally:
            cluster.kubectl("delete", "validatingwebhookconfiguration", namespace)
