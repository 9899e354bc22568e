"""Callers of a server that is a process of its own, over HTTP."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

from dovetail.rest.intents.multipart import FormPart, write_form
from tests.support.intents.rest_documents import Post

Json = dict[str, Any]


class Caller:
    """One of several servers, over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def call(
        self, method: str, path: str, body: bytes | None = None, media: str = "application/json"
    ) -> tuple[int, Json]:
        request = urllib.request.Request(
            f"{self._url}/v2/{path}",
            body,
            {"X-Auth-Token": "admin", "Content-Type": media},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def post(self, post: Post) -> None:
        content = json.dumps(post.body).encode()
        media = "application/json"
        if post.file is not None:
            media, content = write_form(
                [
                    FormPart(name="metadata", content=content, media_type=media),
                    FormPart(name="file", content=post.file.encode(), file_name="file"),
                ]
            )
        status, said = self.call("POST", post.path, content, media)
        assert status == 201, said
