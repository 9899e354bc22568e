"""Somebody who describes an application over HTTP, and has it deployed."""

from __future__ import annotations

from typing import Any

from tests.rest.intents.client import IntentsClient
from tests.support.intents.rest_documents import Post, Spelling
from tests.support.intents.scenario import Scenario

Json = dict[str, Any]


class Operator(IntentsClient):
    """Somebody who describes an application, and has it deployed."""

    def make(self, wanted: Scenario, spelling: Spelling = Spelling.CANONICAL) -> str:
        """The path of the group."""
        for each in wanted.posts(spelling):
            self.send(each)
        return wanted.group.name

    def send(self, post: Post) -> None:
        if post.file is None:
            reply = self.post(post.path, post.body)
        else:
            assert post.body is not None
            reply = self.form("POST", post.path, post.body, post.file.encode())
        assert reply.status_code == 201, (post.path, reply.text)

    def plan(self, group: str) -> Json:
        reply = self.get(f"{group}/plan")
        assert reply.status_code == 200, reply.text
        found: Json = reply.json()
        return found

    def picked(self, group: str) -> dict[str, list[str]]:
        apps = self.plan(group)["pick"]["apps"]
        return {app: [each["cluster"] for each in of] for app, of in apps.items()}

    def act(self, group: str, action: str) -> Any:
        return self.post(f"{group}/{action}", None)

    def instantiate(self, group: str) -> Json:
        assert self.act(group, "approve").status_code == 202
        reply = self.act(group, "instantiate")
        assert reply.status_code == 202, reply.text
        found: Json = reply.json()
        return found

    def refused(self, group: str) -> Json:
        """What is said to an instantiate that cannot be."""
        assert self.act(group, "approve").status_code == 202
        reply = self.act(group, "instantiate")
        assert reply.status_code == 422, reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        found: Json = reply.json()
        return found

    def status(self, group: str) -> Json:
        reply = self.get(f"{group}/status")
        assert reply.status_code == 200, reply.text
        found: Json = reply.json()
        return found
