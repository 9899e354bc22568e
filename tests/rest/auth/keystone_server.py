"""A server that answers as Keystone's tokens API (v3) does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Event, Semaphore
from typing import Any

from tests.rest.auth.clock import Clock
from tests.rest.auth.local_server import LocalServer, Reply

PASSWORD = "not-so-secret"
HOUR = 3600.0


class KeystoneServer:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.tokens: dict[str, dict[str, Any]] = {}
        self.service_tokens: dict[str, float] = {}
        self.logins: list[dict[str, Any]] = []
        self.questions = 0
        self.fails_with: int | None = None
        self.busy_with: set[str] = set()
        """Tokens that it is asked about and has not answered."""
        self.arrived, self.may_answer = Semaphore(0), Event()
        self.may_answer.set()
        self.server = LocalServer(self._answer)
        self.url = f"{self.server.url}/v3"

    def issue(self, token: str, *roles: str, seconds: float = HOUR, **more: Any) -> str:
        self.tokens[token] = self._body(self.clock() + seconds, roles, **more)
        return token

    def revoke(self, token: str) -> None:
        del self.tokens[token]

    def _body(self, expires: float, roles: tuple[str, ...], **more: Any) -> dict[str, Any]:
        return {
            "methods": ["password"],
            "user": {"id": "u-1", "name": "jo", "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": f"id-of-{role}", "name": role} for role in roles],
            "expires_at": datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "project": {"id": "blue", "name": "Blue"},
            **more,
        }

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        assert path.partition("?")[0] == "/v3/auth/tokens"
        if self.fails_with is not None:
            return self.fails_with, {}, {"error": {"code": self.fails_with}}
        return self._login(json.loads(body)) if method == "POST" else self._validate(headers)

    def _login(self, document: dict[str, Any]) -> Reply:
        self.logins.append(document)
        identity = document["auth"]["identity"]
        given = identity.get("password", {}).get("user", {}).get("password")
        given = given or identity.get("application_credential", {}).get("secret")
        if given != PASSWORD:
            return 401, {}, {"error": {"code": 401}}
        token = f"service-{len(self.logins)}"
        self.service_tokens[token] = self.clock() + HOUR
        body = {"token": self._body(self.clock() + HOUR, ("service",))}
        return 201, {"x-subject-token": token}, body

    def _validate(self, headers: Mapping[str, str]) -> Reply:
        if self.clock() >= self.service_tokens.get(headers.get("x-auth-token", ""), 0.0):
            return 401, {}, {"error": {"code": 401}}
        self.questions += 1
        token = headers["x-subject-token"]
        if token.startswith("slow"):
            self.busy_with.add(token)
            self.arrived.release()
            self.may_answer.wait(30)
            self.busy_with.remove(token)
        found = self.tokens.get(token)
        if found is None or self._expired(found):
            return 404, {}, {"error": {"code": 404, "message": "Failed to validate token"}}
        return 200, {}, {"token": found}

    def _expired(self, body: dict[str, Any]) -> bool:
        return datetime.fromisoformat(body["expires_at"]).timestamp() <= self.clock()
