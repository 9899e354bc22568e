"""A client of the door of intents: documents and forms, below /v2 or without it."""

from __future__ import annotations

from typing import Any

import httpx2
import orjson

from dovetail.rest.intents.multipart import FormPart, write_form
from tests.rest.client import Client

Json = dict[str, Any]


class IntentsClient:
    def __init__(self, http: Client, prefix: str = "/v2") -> None:
        self.http, self.prefix = http, prefix

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        return self.http.call(method, f"{self.prefix}/{path}", body, **headers)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return self.call("PUT", path, body, **headers)

    def delete(self, path: str, **headers: str) -> httpx2.Response:
        return self.call("DELETE", path, **headers)

    def form(
        self, method: str, path: str, document: Json | bytes, file: bytes | None, **headers: str
    ) -> httpx2.Response:
        content = document if isinstance(document, bytes) else orjson.dumps(document)
        parts = [FormPart(name="metadata", content=content, media_type="application/json")]
        if file is not None:
            parts.append(FormPart(name="file", content=file, file_name="file"))
        media, body = write_form(parts)
        return self.call(method, path, body, content_type=media, **headers)

    def made(self, path: str, body: Any) -> Json:
        """POST what has to succeed."""
        reply = self.post(path, body)
        assert reply.status_code == 201, reply.text
        found: Json = reply.json()
        return found


def named(name: str, /, **spec: Any) -> Json:
    return {"metadata": {"name": name}, **({"spec": spec} if spec else {})}


APPS = "projects/p/composite-apps/c/v1/apps"
GROUPS = "projects/p/composite-apps/c/v1/deployment-intent-groups"
GROUP = f"{GROUPS}/g"
INTENTS = f"{GROUP}/hpa-intents"
CONSUMERS = f"{INTENTS}/i/hpa-resource-consumers"
REQUIREMENTS = f"{CONSUMERS}/k/resource-requirements"
GROUP_SPEC = {"compositeProfile": "profile", "version": "r1", "logicalCloud": "cloud"}
CPU = {"allocatable": True, "resource": {"name": "cpu", "requests": 1}}


def make_group(client: IntentsClient) -> None:
    """A project, a composite app and a group in it."""
    client.made("projects", named("p"))
    client.made("projects/p/composite-apps", named("c", compositeAppVersion="v1"))
    client.made(GROUPS, named("g", **GROUP_SPEC))


def make_consumer(client: IntentsClient) -> None:
    """The same, with a hardware intent and a consumer."""
    make_group(client)
    client.made(INTENTS, named("i", app="a"))
    client.made(CONSUMERS, named("k", kind="Deployment", name="d", container="x"))
