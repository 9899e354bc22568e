"""Where the API server is and how to show who we are: lightkube reads the configuration.

That is a kubeconfig, or a pod's service account, with certificates, tokens, token files that get
rotated, and commands that print tokens.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from urllib.parse import urlsplit

import httpx2
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from yaml import YAMLError

from dovetail.core.errors import DovetailError
from dovetail.kube.wire import Address

UNAUTHORIZED = 401
AUTOMATIC = "the configuration of Kubernetes"


class BadConfiguration(DovetailError):
    """No way to the API server is given, or none that can be used."""


class Credentials:
    """The header that says who we are. Client certificates are part of the connection."""

    def __init__(self, auth: httpx2.Auth | None) -> None:
        self._auth = auth
        self._header: str | None = None
        self._making = asyncio.Lock()

    async def header(self, *, refused: str | None = None) -> str:
        """The header's value, or "". One that was `refused` is read or made anew."""
        if self._auth is None:
            return ""
        async with self._making:
            if self._header is None or self._header == refused:
                self._header = await made(self._auth, renew=refused is not None)
            return self._header


async def made(auth: httpx2.Auth, *, renew: bool) -> str:
    """What `auth` puts into a request; if it is to renew that, after the server said no."""
    request = httpx2.Request("GET", "https://unused")
    async with aclosing(auth.async_auth_flow(request)) as flow:
        try:
            await anext(flow)
            if renew:
                await flow.asend(httpx2.Response(UNAUTHORIZED, request=request))
        except StopAsyncIteration:
            pass
        except (ConfigError, OSError) as error:
            raise BadConfiguration(f"no credentials: {error}") from error
    return request.headers.get("Authorization", "")


def access(kubeconfig: str | None) -> tuple[Address, Credentials]:
    """As `kubeconfig` says; without one, as the pod's service account, $KUBECONFIG or the user's
    own file say, the first that is there."""
    try:
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        config = found.get()
        assert config is not None
        user = config.user or User()
        address = address_of(config, user)
        return address, Credentials(user_auth(user))
    except (ConfigError, ValueError, OSError, YAMLError) as error:
        raise BadConfiguration(f"{kubeconfig or AUTOMATIC}: {error}") from error
    except (KeyError, TypeError) as error:
        # lightkube takes the outermost shape of the file for granted.
        raise BadConfiguration(f"{kubeconfig or AUTOMATIC}: no kubeconfig: {error!r}") from error


def address_of(config: SingleConfig, user: User) -> Address:
    url = urlsplit(config.cluster.server)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(f"server {config.cluster.server!r} is no URL with http or https")
    if url.scheme == "http":
        return Address(url.hostname, url.port or 80, url.path.rstrip("/"))
    tls = verify_cluster(config.cluster, user, config.abs_file)
    return Address(url.hostname, url.port or 443, url.path.rstrip("/"), tls)
