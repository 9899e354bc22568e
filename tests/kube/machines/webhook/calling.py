"""The manifest of the webhook for a cluster without a network of services: it is called by URL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from dovetail.kube import manifests

NAME, NAMESPACE = "dovetail-webhook", "dovetail"
HOST = "127.0.0.1"


def documents(port: int) -> Iterator[dict[str, Any]]:
    for each in yaml.safe_load_all(manifests.text(["machines-webhook"])):
        for webhook in each.get("webhooks", ()):
            service = webhook["clientConfig"].pop("service")
            assert (service["name"], service["namespace"]) == (NAME, NAMESPACE)
            webhook["clientConfig"]["url"] = f"https://{HOST}:{port}{service['path']}"
        yield each
