"""An OpenID Connect issuer: discovery, published keys, and tokens signed with them."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

from tests.rest.auth.clock import Clock
from tests.rest.auth.local_server import LocalServer, Reply

AUDIENCE = "dovetail"


class Issuer:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.published: list[Key] = []
        self.fetches = 0
        self.fetching, self.may_answer = Event(), Event()
        self.may_answer.set()
        self.server = LocalServer(self._answer)
        self.url = self.server.url
        self.keys_are_at: str | None = f"{self.url}/keys"
        self.key = self.rotate("first")

    def rotate(self, name: str) -> Key:
        """Sign with a new key from now on, and publish it with the ones before."""
        self.key = ECKey.generate_key("P-256", {"kid": name, "use": "sig"})
        self.published.append(self.key)
        return self.key

    def token(
        self, key: Key | None = None, *, header: Mapping[str, Any] | None = None, **claims: Any
    ) -> str:
        signing = key or self.key
        algorithm = "RS256" if isinstance(signing, RSAKey) else "ES256"
        sent = {"alg": algorithm, "kid": signing.kid, **(header or {})}
        stated = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "jo",
            "exp": int(self.clock()) + 600,
            "roles": ["admin"],
            **claims,
        }
        kept = {name: value for name, value in stated.items() if value is not None}
        named = {name: value for name, value in sent.items() if value is not None}
        return jwt.encode(named, kept, signing, algorithms=[named["alg"]])

    def _answer(self, _method: str, path: str, _headers: Mapping[str, str], _body: bytes) -> Reply:
        if path == "/.well-known/openid-configuration":
            return 200, {}, {"issuer": self.url, "jwks_uri": self.keys_are_at}
        self.fetches += 1
        found = [key.as_dict(private=False) for key in self.published]
        self.fetching.set()
        self.may_answer.wait(30)
        return 200, {}, {"keys": found}
